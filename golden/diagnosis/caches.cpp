// Faults of the contents of cache slots.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "golden/diagnosis/detail/edits.h"
#include "golden/diagnosis/detail/other_tokens.h"
#include "golden/diagnosis/detail/trial.h"
#include "weights/base/detail/index.h"
#include "weights/model/registry.h"
#include "weights/text/rules.h"

namespace shardproof::diagnosis {
namespace {

/// A candidate for the contents of a row's slot, or of a head in it: numbers of some tensor, or
/// zeros.
struct Source {
  std::string words;
  std::shared_ptr<const bounds::IntervalTensor> tensor;  ///< null: zeros
  std::size_t begin = 0;                                 ///< its first element
  bool unrotated = false;
  std::optional<std::size_t> slot = std::nullopt;  ///< of the row, if it is right there
  std::optional<std::size_t> head = std::nullopt;  ///< of another head
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
        K_(heads(q)),
        width_(at(element_count(q.shape())) / (B_ * M_)),
        found_(at(q.chips())) {
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
      if (!q_.right(chip) && !find(chip)) return;
    const std::map<std::size_t, Source>* first = nullptr;
    std::size_t unrotated = 0, of_heads = 0, wrong = 0;
    bool alike = true;
    for (const auto& of : found_)
      for (const auto& [cell, source] : of) {
        if (first == nullptr) first = &of;
        const Source& known = all_.try_emplace(cell, source).first->second;
        alike = alike && known.words == source.words;
        unrotated += source.unrotated ? 1U : 0U;
        of_heads += source.slot == cell / K_ % M_ ? 1U : 0U;
        ++wrong;
      }
    if (first == nullptr) return;
    std::string words;
    if (!alike) {
      const auto chip = static_cast<int>(first - found_.data());
      words = fmt::format("on chip {} ", q_.torus().name(chip));
    }
    words += words_of(alike ? all_ : *first);
    search_.consider({.fault = unrotated == wrong  ? "position off"
                               : of_heads == wrong ? "head order"
                                                   : "stale slot",
                      .detail = words,
                      .at = [*this](int chip, std::size_t local) -> bounds::FunctionValue {
                        const std::size_t g = q_.global(chip, local);
                        const auto& of = q_.right(chip) ? all_ : found_[at(chip)];
                        const auto source = of.find(g / unit());
                        if (source == of.end()) return q_.expected_at(g);
                        return number(source->second, g % unit());
                      }});
  }

 private:
  /// Returns how many heads a slot has; 1 if it has none.
  static std::size_t heads(const Question& q) {
    const char letter = q.step().lines().back().letters.at(2);
    return q.rank() == 4 && q.step().graph().heads(letter) ? at(q.shape()[2]) : 1;
  }
  std::size_t unit() const { return width_ / K_; }

  static bounds::FunctionValue number(const Source& source, std::size_t i) {
    if (source.tensor == nullptr) return {};
    return {source.tensor->center[source.begin + i], source.tensor->radius[source.begin + i], 0.0};
  }

  /// Finds the source of each wrong head of each slot of a chip: the whole slot's, if it has one.
  bool find(int chip) {
    cells_.clear();
    for (std::size_t i = 0; i < q_.elements(); ++i)
      cells_[q_.global(chip, i) / unit()].push_back(i);
    for (auto next = cells_.begin(); next != cells_.end();) {
      const std::size_t slot = next->first / K_;
      std::vector<std::size_t> all, wrong;
      for (; next != cells_.end() && next->first / K_ == slot; ++next) {
        all.push_back(next->first);
        if (!holds(chip, next->first, Source{"", expected_, next->first * unit()}))
          wrong.push_back(next->first);
      }
      if (!wrong.empty() && !known(chip, wrong) && !find_slot(chip, slot, all) &&
          !find_heads(chip, slot, wrong))
        return false;
    }
    return true;
  }

  /// What another chip has in these places a chip mostly has, too.
  bool known(int chip, const std::vector<std::size_t>& cells) {
    for (int other = 0; other < chip; ++other) {
      const auto& of = found_[at(other)];
      if (!std::all_of(cells.begin(), cells.end(), [&](std::size_t cell) {
            const auto source = of.find(cell);
            return source != of.end() && holds(chip, cell, source->second);
          }))
        continue;
      for (const std::size_t cell : cells) found_[at(chip)].emplace(cell, of.at(cell));
      return true;
    }
    return false;
  }

  bool find_slot(int chip, std::size_t slot, const std::vector<std::size_t>& cells) {
    const auto of_head = [&](Source source, std::size_t cell) {
      source.begin += cell % K_ * unit();
      return source;
    };
    const auto attempt = [&](const Source& source) {
      const bool found = std::all_of(cells.begin(), cells.end(), [&](std::size_t cell) {
        return holds(chip, cell, of_head(source, cell));
      });
      for (const std::size_t cell : cells)
        if (found) found_[at(chip)].emplace(cell, of_head(source, cell));
      return found;
    };
    return each_source(slot / M_, slot % M_, attempt) || each_token(slot % M_, attempt);
  }

  bool find_heads(int chip, std::size_t slot, const std::vector<std::size_t>& cells) {
    for (const std::size_t cell : cells) {
      const std::size_t own = cell % K_;
      bool found = false;
      const auto attempt = [&](const Source& source) {
        // The right slot has other heads, what comes from elsewhere first the same one.
        for (std::size_t k = source.slot == slot % M_ ? 1 : 0; k < K_ && !found; ++k) {
          Source one = source;
          const std::size_t head = (own + k) % K_;
          one.begin += one.tensor == nullptr ? 0 : head * unit();
          if (k > 0) one.head = head;
          one.words = k == 0 ? fmt::format("in head {} {}", own, source.words)
                             : fmt::format("in head {} what belongs in head {}{}", own, head,
                                           source.slot == slot % M_ ? "" : ", of " + source.words);
          found = holds(chip, cell, one);
          if (found) found_[at(chip)].emplace(cell, std::move(one));
        }
        return found;
      };
      const Source right{"", expected_, slot * width_, false, slot % M_};
      if (K_ == 1 || (!attempt(right) && !each_source(slot / M_, slot % M_, attempt))) return false;
    }
    return true;
  }

  bool holds(int chip, std::size_t cell, const Source& source) const {
    const auto locals = cells_.find(cell);
    return std::all_of(locals->second.begin(), locals->second.end(), [&](std::size_t local) {
      return q_.fits(chip, local, number(source, q_.global(chip, local) % unit()));
    });
  }

  /// The first wrong slot and how many there are; or by how much all are shifted.
  std::string words_of(const std::map<std::size_t, Source>& of) const {
    std::set<std::size_t> slots;
    std::set<std::optional<std::size_t>> heads;
    std::optional<std::size_t> by;
    const PassPlan& pass = q_.replay().pass(q_.place().pass);
    bool shifted = true;
    for (const auto& [cell, source] : of) {
      const std::size_t slot = cell / K_, m = slot % M_;
      slots.insert(slot);
      heads.insert(source.head);
      // Old slots may be shifted in a ring.
      const auto old = at(q_.replay().position(pass, slot / M_, 0) - pass.prefix.length);
      const std::size_t ring = m < old ? old : M_;
      shifted = shifted && source.slot && *source.slot < ring && !source.head;
      if (!shifted) continue;
      const std::size_t d = (m + ring - *source.slot) % ring;
      shifted = d == by.value_or(d);
      by = d;
    }
    const auto& [cell, source] = *of.begin();
    std::string words =
        fmt::format("slot {} of row {} holds {}", cell / K_ % M_, cell / K_ / M_, source.words);
    if (slots.size() > 1) words += fmt::format("; {} slots of {} are wrong", slots.size(), B_ * M_);
    if (slots.size() > 1 && shifted)
      words = fmt::format("slots are shifted by {}: {}", *by, words);
    else if (of.size() > 1 && heads.size() == 1 && *heads.begin())
      words += fmt::format(", and hold what belongs in head {}", **heads.begin());
    return words;
  }

  std::shared_ptr<const bounds::IntervalTensor> value(const std::string& id) {
    if (!q_.source(id)) return nullptr;
    auto& known = values_[id];
    if (known == nullptr) known = std::make_shared<const bounds::IntervalTensor>(q_.value(id));
    return known;
  }

  /// Calls visit(source of a whole slot) until it returns true; returns whether it does.
  template <class Visit>
  bool each_source(std::size_t b, std::size_t m, Visit&& visit) {
    bool found = false;
    const auto one = [&](std::string words, std::shared_ptr<const bounds::IntervalTensor> tensor,
                         std::size_t begin, bool unrotated = false,
                         std::optional<std::size_t> slot = std::nullopt) {
      if (found || (tensor != nullptr && begin + width_ > tensor->size())) return;
      // Padding is never a source.
      if (tensor != nullptr && open({tensor->center[begin], tensor->radius[begin], 0.0})) return;
      found = visit(Source{std::move(words), std::move(tensor), begin, unrotated, slot});
    };
    one("zeros: it is not written", nullptr, 0);
    for (std::size_t k = 1; k < M_; ++k)
      for (const std::size_t other : {m + k, m - k})
        if (other < M_)
          one(fmt::format("what belongs in slot {}", other), expected_, (b * M_ + other) * width_,
              false, other);
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

  /// Likewise what each token of the vocabulary has in a slot.
  template <class Visit>
  bool each_token(std::size_t m, Visit&& visit) {
    auto& of_slot = of_tokens_[m];
    if (!of_slot) {
      const PassPlan& pass = q_.replay().pass(q_.place().pass);
      auto all = tokens_.at(q_.id_of(caches_.at(q_.name()).fresh),
                            static_cast<std::int64_t>(m) + pass.prefix.length);
      of_slot = std::make_shared<const bounds::IntervalTensor>(all ? std::move(*all)
                                                                   : bounds::IntervalTensor());
    }
    for (std::size_t t = 0; (t + 1) * width_ <= of_slot->size(); ++t)
      if (visit(Source{fmt::format("what token {} has there, as of a rejected draft", t), of_slot,
                       t * width_}))
        return true;
    return false;
  }

  std::size_t B_, M_, K_, width_;
  OtherTokens tokens_{q_};
  std::map<std::size_t, std::shared_ptr<const bounds::IntervalTensor>> of_tokens_;
  std::map<std::string, Cached> caches_;
  // Heads of slots, counted through: a chip's elements, and the sources of wrong ones by chip and
  // of all chips.
  std::map<std::size_t, std::vector<std::size_t>> cells_;
  std::vector<std::map<std::size_t, Source>> found_;
  std::map<std::size_t, Source> all_;
  std::shared_ptr<const bounds::IntervalTensor> expected_ = opened(q_);
  std::map<std::string, std::shared_ptr<const bounds::IntervalTensor>> values_;
};

}  // namespace

void try_caches(const Question& q, Search& search, const Row&) {
  if (q.step().lines().back().letters.starts_with("BM")) Caches(q, search).run();
}

}  // namespace shardproof::diagnosis
