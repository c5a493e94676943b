// Faults of the contents of cache slots.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "golden/diagnosis/detail/families.h"
#include "golden/diagnosis/detail/what_if.h"
#include "weights/base/detail/index.h"
#include "weights/model/registry.h"

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

class Caches : Family {
 public:
  Caches(const Question& q, Search& search)
      : Family(q, search),
        B_(at(q.shape()[0])),
        M_(at(q.shape()[1])),
        width_(at(q.shape()[2] * q.shape()[3])),
        cells_(B_ * M_) {}

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
    const std::string other = q_.name() == "k_cache" ? "v_cache" : "k_cache";
    const auto add = [&](std::string_view name, std::int64_t layer, const std::string& words,
                         bool unrotated = false) {
      const bool cache = name.ends_with("_cache");
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
    const std::int64_t own = q_.place().layer;
    if (q_.name() == "k_cache" && rotates(q_.config()))
      add("k", own, "what is not rotated, of ", true);
    add(q_.name() == "k_cache" ? "v" : "k", own, "that of ");
    if (q_.name() == "v_cache" && rotates(q_.config())) add("k_rot", own, "that of ");
    add(other, own, "that of ");
    for (std::int64_t layer = 0; layer < q_.config().layers; ++layer)
      if (layer != own) {
        add(q_.name(), layer, "that of ");
        add(q_.name() == "v_cache" ? "v" : rotates(q_.config()) ? "k_rot" : "k", layer, "that of ");
      }
    for (std::size_t row = 0; row < B_; ++row)
      if (row != b)
        one(fmt::format("what belongs in row {}", row), expected_, (row * M_ + m) * width_);
    return found;
  }

  std::size_t B_, M_, width_;
  std::vector<std::vector<std::pair<int, std::size_t>>> cells_;  // elements of each slot
  std::shared_ptr<const bounds::IntervalTensor> expected_ = opened(q_);
  std::map<std::string, std::shared_ptr<const bounds::IntervalTensor>> values_;
};

}  // namespace

void try_caches(const Question& q, Search& search) {
  if (q.name() == "k_cache" || q.name() == "v_cache") Caches(q, search).run();
}

}  // namespace shardproof::diagnosis
