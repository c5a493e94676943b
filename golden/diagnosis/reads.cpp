// Attention that reads other contents of its caches than the dump shows.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "golden/diagnosis/detail/edits.h"
#include "golden/diagnosis/detail/trial.h"
#include "weights/base/detail/index.h"
#include "weights/model/registry.h"

namespace shardproof::diagnosis {
namespace {

using bounds::IntervalTensor;
using Ids = std::vector<std::string>;

/// The most numbers that all candidates of one value are computed from.
constexpr double kNumbers = 0x1p28;

class Reads : Trial {
 public:
  Reads(const Question& q, Search& search, const Row& row, bool shown)
      : Trial(q, search), row_(row) {
    for (const std::string& id : caches_of(q))
      if (const bounds::Derivation::Place place = q.replay().place_of(id);
          place.pass == q.place().pass && place.layer == q.place().layer) {
        if (shown && !q.replay().dumped(id)) {
          caches_.clear();
          return;
        }
        caches_.push_back(id);
      }
    std::sort(caches_.begin(), caches_.end());  // keys before values
    if (caches_.empty()) return;
    const Shape& shape = q.value(caches_[0]).shape;
    B_ = shape[0], M_ = shape[1];
    for (const std::string& id : caches_) {
      const Shape& of = q.value(id).shape;
      if (of[0] != B_ || of[1] != M_) {
        caches_.clear();
        return;
      }
      numbers_ += static_cast<double>(q.expected().size() * static_cast<std::size_t>(std::max(
                                                                M_, element_count(of) / B_ / M_)));
    }
  }

  void run() {
    if (caches_.empty()) return;
    try_other_layers();
    const PassPlan& pass = q_.replay().pass(q_.place().pass);
    if (pass.cached > 0)
      try_slots("zeros before the pass's own slots", 0, [&](std::int64_t b, std::int64_t m) {
        return m < q_.replay().position(pass, at(b), 0) - pass.prefix.length ? kZero : b;
      });
    for (std::int64_t count = M_; count > 0; --count)
      for (std::int64_t first = 0; first + count <= M_; ++first) try_range(first, count);
  }

 private:
  static constexpr std::int64_t kZero = -1;
  /// Returns the row whose contents stand in a slot of a row, or kZero.
  using Rows = std::function<std::int64_t(std::int64_t row, std::int64_t slot)>;

  void try_range(std::int64_t first, std::int64_t count) {
    const auto in = [=](std::int64_t m) { return m >= first && m < first + count; };
    const std::string slots = count == 1 ? fmt::format("slot {}", first)
                                         : fmt::format("slots {} to {}", first, first + count - 1);
    const auto parameters = static_cast<int>(M_ - count);
    try_slots("zeros in " + slots, parameters,
              [=](std::int64_t b, std::int64_t m) { return in(m) ? kZero : b; });
    for (std::int64_t by = 1; by < B_; ++by) {
      // Rows may hold the same in a slot, as of one token in the first layer: then a range that is
      // one slot shorter explains the value, too, and other layers tell which it is.
      again_ = explaining_.contains({first - 1, count + 1, by}) ||
               explaining_.contains({first, count + 1, by});
      const std::size_t explanations = search_.names().size();
      try_slots(B_ == 2 ? "the other row in " + slots
                        : fmt::format("row (b + {}) mod {} in place of row b in {}", by, B_, slots),
                parameters,
                [=, B = B_](std::int64_t b, std::int64_t m) { return in(m) ? (b + by) % B : b; });
      if (search_.names().size() > explanations) explaining_.insert({first, count, by});
    }
    again_ = false;
  }

  /// Returns whether the dump's exponentials are 0 wherever the slots would hold zeros: a mask
  /// hides these keys then, as exponentials of zeros are not 0.
  bool masked(const Rows& rows) const {
    const std::optional<bounds::Derivation::Place> of = dumped_exponentials(q_);
    if (!of || of->name == q_.name()) return false;
    const IntervalTensor& e = q_.replay().value(q_.id_of(of->name));
    const std::string& letters = q_.step().graph().lines().line_of(*of)->letters;
    const PassPlan& pass = q_.replay().pass(of->pass);
    bool any = false;
    for (std::size_t i = 0; i < e.size(); ++i) {
      const std::size_t b = index_in(letters, e.shape, i, 'B'),
                        m = index_in(letters, e.shape, i, 'M');
      const std::int64_t slot = static_cast<std::int64_t>(m) - pass.prefix.length;
      if (slot < 0 || slot >= M_ || rows(static_cast<std::int64_t>(b), slot) != kZero ||
          m >= bounds::Derivation::visible(pass, b, index_in(letters, e.shape, i, 'L')))
        continue;
      if (e.center[i] != 0.0) return false;
      any = true;
    }
    return any;
  }

  void try_slots(const std::string& words, int parameters, const Rows& rows) {
    each_of_caches([&](const Ids& ids) {
      const auto contents = [&](const std::string& id) {
        const IntervalTensor& right = q_.value(id);
        IntervalTensor read = right;
        const std::size_t width = right.size() / at(B_ * M_);
        for (std::int64_t b = 0; b < B_; ++b)
          for (std::int64_t m = 0; m < M_; ++m)
            if (const std::int64_t row = rows(b, m); row != b)
              for (std::size_t i = 0; i < width; ++i)
                read.set(at(b * M_ + m) * width + i,
                         row == kZero ? bounds::Number{0.0, 0.0, 0.0}
                                      : right.number(at(row * M_ + m) * width + i));
        return read;
      };
      try_contents(words, parameters, ids, contents, [this, rows] { return masked(rows); });
    });
  }

  void try_other_layers() {
    const bounds::Derivation& replay = q_.replay();
    for (std::int64_t layer = 0; layer < q_.place().layer; ++layer) {
      const auto there = [&](const std::string& id) {
        return checkpoint_id(q_.place().pass, layer, replay.place_of(id).name,
                             q_.config().rows.get());
      };
      each_of_caches([&](const Ids& ids) {
        for (const std::string& id : ids) {
          const std::string of = there(id);
          if ((replay.dumped(of) && !q_.source(of)) || q_.value(of).shape != q_.value(id).shape)
            return;
        }
        try_contents(fmt::format("layer{}'s contents", layer), static_cast<int>(layer), ids,
                     [&](const std::string& id) { return q_.value(there(id)); });
      });
    }
  }

  /// Calls `what` with all caches, and with each alone.
  void each_of_caches(const std::function<void(const Ids&)>& what) {
    what(caches_);
    if (caches_.size() > 1)
      for (const std::string& id : caches_) what({id});
  }

  void try_contents(const std::string& words, int parameters, const Ids& ids,
                    const std::function<IntervalTensor(const std::string& id)>& contents,
                    std::function<bool()> refuted = {}) {
    if (search_.explained_everywhere() && !again_) return;
    Candidate c = candidate(row_, words, names_of(q_, ids));
    c.parameters += parameters + (ids.size() == caches_.size() ? 0 : 1);
    if (!search_.wants(c) || (left_ -= numbers_) < 0) return;
    c.refuted = std::move(refuted);
    Values values;
    for (const std::string& id : ids) values.emplace_back(id, contents(id));
    try_values(std::move(c), std::move(values));
  }

  const Row& row_;
  Ids caches_;
  std::int64_t B_ = 0, M_ = 0;
  double numbers_ = 0.0, left_ = kNumbers;
  std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t>> explaining_;  // first, count, by
  bool again_ = false;  // tries what explains the value, too
};

}  // namespace

void try_reads(const Question& q, Search& search, const Row& row) {
  if (q.replay().dumped(q.id()) && !q.step().calls(ModelOp::append))
    Reads(q, search, row, true).run();
}

void try_reads_of_any(const Question& q, Search& search, const Row& row) {
  if (!q.step().calls(ModelOp::append)) Reads(q, search, row, false).run();
}

}  // namespace shardproof::diagnosis
