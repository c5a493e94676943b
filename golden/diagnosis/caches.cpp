// Faults of the contents of cache slots.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "golden/diagnosis/detail/edits.h"
#include "golden/diagnosis/detail/trial.h"
#include "weights/base/detail/index.h"
#include "weights/model/registry.h"
#include "weights/text/rules.h"

namespace shardproof::diagnosis {
namespace {

/// A candidate for the contents of a row's slot: a vector of some tensor, or zeros.
struct Source {
  std::string words;
  std::shared_ptr<const bounds::IntervalTensor> tensor;  ///< null: zeros
  std::size_t begin = 0;                                 ///< first element of the vector
  bool unrotated = false;
};

/// Returns the right value, with unknown numbers where elements are not judged.
std::shared_ptr<const bounds::IntervalTensor> opened(const Question& q) {
  bounds::IntervalTensor right = q.expected();
  for (std::size_t i = 0; i < right.size(); ++i) right.set(i, q.expected_at(i));
  return std::make_shared<const bounds::IntervalTensor>(std::move(right));
}

/// The values that a cache is appended to of, by their names.
struct Cached {
  std::string fresh, unrotated;  ///< `unrotated` is empty if nothing is rotated
};

class Caches : Trial {
 public:
  Caches(const Question& q, Search& search)
      : Trial(q, search),
        B_(at(q.shape()[0])),
        M_(at(q.shape()[1])),
        width_(at(element_count(q.shape())) / (B_ * M_)),
        cells_(B_ * M_) {
    const bounds::TextLines& lines = q.step().graph().lines();
    const auto named = [&](const std::string& name) {
      return lines.line_of({q.place().pass, q.place().layer, name});
    };
    for (const TextLine& line : lines.text().section(TextSection::layer).lines) {
      if (!is_call(line.expression, ModelOp::append)) continue;
      std::string fresh = line.expression.args[0].text, unrotated;
      const auto operand = [&](const TextLine* of) { return of->expression.args[0].text; };
      if (named(fresh) != nullptr && is_call(named(fresh)->expression, ModelOp::bf16))
        fresh = operand(named(fresh));
      if (named(fresh) != nullptr)
        for (const std::string& read : reads_of(lines.text(), *named(fresh)).now)
          if (named(read) != nullptr && is_call(named(read)->expression, ModelOp::turn))
            unrotated = operand(named(read));
      caches_[line.name] = {fresh, unrotated};
    }
  }

  void run() {
    // Slots dealt to the chips in another order are already explained.
    if (search_.explained_everywhere()) return;
    // Skips right chips: they say nothing about the slots of wrong ones.
    for (int chip = 0; chip < q_.chips(); ++chip)
      for (std::size_t i = 0; !q_.right(chip) && i < q_.elements(); ++i)
        cells_[q_.global(chip, i) / width_].emplace_back(chip, i);
    const auto held = std::make_shared<std::vector<Source>>();
    std::size_t wrong = 0, unrotated = 0;
    std::string words;
    for (std::size_t b = 0; b < B_; ++b)
      for (std::size_t m = 0; m < M_; ++m) {
        const Source right{"", expected_, (b * M_ + m) * width_};
        if (holds(b * M_ + m, right)) {
          held->push_back(right);
          continue;
        }
        std::optional<Source> found = source_of(b, m);
        if (!found) return;
        if (wrong++ == 0) words = fmt::format("slot {} of row {} holds {}", m, b, found->words);
        unrotated += found->unrotated ? 1U : 0U;
        held->push_back(std::move(*found));
      }
    if (wrong > 1) words += fmt::format("; {} slots of {} are wrong", wrong, B_ * M_);
    search_.consider({.fault = unrotated == wrong ? "position off" : "stale slot",
                      .detail = words,
                      .at = q_.logical([held, width = width_](std::size_t g) {
                        const Source& s = (*held)[g / width];
                        if (s.tensor == nullptr) return bounds::FunctionValue{};
                        const std::size_t i = s.begin + g % width;
                        return bounds::FunctionValue{s.tensor->center[i], s.tensor->radius[i], 0.0};
                      })});
  }

 private:
  bool holds(std::size_t cell, const Source& s) const {
    return std::all_of(cells_[cell].begin(), cells_[cell].end(), [&](const auto& e) {
      bounds::FunctionValue v;
      if (s.tensor != nullptr) {
        const std::size_t i = s.begin + q_.global(e.first, e.second) % width_;
        v = {s.tensor->center[i], s.tensor->radius[i], 0.0};
      }
      return q_.fits(e.first, e.second, v);
    });
  }

  std::shared_ptr<const bounds::IntervalTensor> value(const std::string& id) {
    if (!q_.source(id)) return nullptr;
    auto& known = values_[id];
    if (known == nullptr) known = std::make_shared<const bounds::IntervalTensor>(q_.value(id));
    return known;
  }

  std::optional<Source> source_of(std::size_t b, std::size_t m) {
    std::optional<Source> found;
    const auto one = [&](std::string words, std::shared_ptr<const bounds::IntervalTensor> tensor,
                         std::size_t begin, bool unrotated = false) {
      if (found || (tensor != nullptr && begin + width_ > tensor->size())) return;
      // Padding is never a source.
      if (tensor != nullptr && open({tensor->center[begin], tensor->radius[begin], 0.0})) return;
      Source s{std::move(words), std::move(tensor), begin, unrotated};
      if (holds(b * M_ + m, s)) found = std::move(s);
    };
    one("zeros: it is not written", nullptr, 0);
    for (std::size_t k = 1; k < M_; ++k)
      for (const std::size_t other : {m + k, m - k})
        if (other < M_)
          one(fmt::format("what belongs in slot {}", other), expected_, (b * M_ + other) * width_);
    const PassPlan& pass = q_.replay().pass(q_.place().pass);
    const auto add = [&](const std::string& name, std::int64_t layer, bool cache,
                         const std::string& words = "that of ", bool unrotated = false) {
      std::string id = checkpoint_id(pass.name, layer, name);
      // A cache that this pass has yet to append to still equals that of the preceding pass.
      if (cache && !q_.source(id) && !pass.previous.empty())
        id = checkpoint_id(pass.previous, layer, name);
      const auto tensor = value(id);
      if (tensor == nullptr) return;
      const std::size_t M = at(tensor->shape[1]);
      if (cache && m >= M) return;
      // Slot of the row's first token; tokens of its prefix are in another cache.
      const std::int64_t start = q_.replay().position(pass, b, 0) - pass.prefix.length;
      if (cache) return one(words + id, tensor, (b * M + m) * width_);
      const auto token = static_cast<std::int64_t>(m) - start;
      if (token >= 0 && token < pass.L)
        one(words + id, tensor, (b * at(pass.L) + at(token)) * width_, unrotated);
    };
    const std::int64_t layer = q_.place().layer;
    const Cached& own = caches_.at(q_.name());
    if (!own.unrotated.empty()) add(own.unrotated, layer, false, "what is not rotated, of ", true);
    for (const auto& [name, other] : caches_) {
      if (name == q_.name()) continue;
      if (!other.unrotated.empty()) add(other.unrotated, layer, false);
      add(other.fresh, layer, false);
      add(name, layer, true);
    }
    for (std::int64_t of = 0; of < q_.config().layers; ++of)
      if (of != layer) {
        add(q_.name(), of, true);
        add(own.fresh, of, false);
      }
    for (std::size_t row = 0; row < B_; ++row)
      if (row != b)
        one(fmt::format("what belongs in row {}", row), expected_, (row * M_ + m) * width_);
    return found;
  }

  std::size_t B_, M_, width_;
  std::map<std::string, Cached> caches_;
  std::vector<std::vector<std::pair<int, std::size_t>>> cells_;  // elements of each slot
  std::shared_ptr<const bounds::IntervalTensor> expected_ = opened(q_);
  std::map<std::string, std::shared_ptr<const bounds::IntervalTensor>> values_;
};

}  // namespace

void try_caches(const Question& q, Search& search, const Row&) {
  if (q.step().lines().back().letters.starts_with("BM")) Caches(q, search).run();
}

}  // namespace shardproof::diagnosis
