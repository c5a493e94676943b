#include "golden/faults/detail/stale.h"

#include <map>
#include <memory>
#include <tuple>

#include "golden/faults/detail/numbers.h"

namespace shardproof::faults {
namespace {

/// What a step returned before: in the pass before, or in the layer before.
class History {
 public:
  /// What the same step made in the layer before, of this pass; null in layer 0.
  const Sharded* layer_before(const Here& here) const {
    return find({here.scope.layer - 1, here.scope.pass, here.declared.name});
  }
  /// What it made in the pass before; null in the first.
  const Sharded* pass_before(const Here& here) const {
    return find({here.scope.layer, here.scope.previous, here.declared.name});
  }
  void keep(const Here& here, const Sharded& value) {
    made_.insert_or_assign({here.scope.layer, here.scope.pass, here.declared.name}, value);
  }

 private:
  using Key = std::tuple<int, std::string, std::string>;
  const Sharded* find(const Key& key) const {
    const auto at = made_.find(key);
    return at == made_.end() ? nullptr : &at->second;
  }
  std::map<Key, Sharded> made_;
};

}  // namespace

ResultEdit stale(Before before, bool half_of_one_chip) {
  auto history = std::make_shared<History>();
  return [=](const Here& here, Sharded& value) {
    const Sharded right = value;
    const Sharded* const old =
        before == Before::pass ? history->pass_before(here) : history->layer_before(here);
    if (old != nullptr && old->local() == value.local() &&
        old->data().index() == value.data().index()) {
      const int last = value.torus().chips() - 1;
      on_numbers(*old, value, [&](const auto& chips, const auto& to) {
        for (int chip = 0; chip < right.torus().chips(); ++chip) {
          if (half_of_one_chip && chip != last) continue;
          const auto out = to(chip);
          const std::size_t end = half_of_one_chip ? (out.size() + 1) / 2 : out.size();
          for (std::size_t i = 0; i < end; ++i) out[i] = chips[static_cast<std::size_t>(chip)][i];
        }
      });
    }
    history->keep(here, right);
  };
}

}  // namespace shardproof::faults
