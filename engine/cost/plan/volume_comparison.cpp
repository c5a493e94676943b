#include "engine/cost/plan/volume_comparison.h"

#include <algorithm>

#include "engine/cost/paper/calibration.h"
#include "engine/cost/work/paper_volumes.h"
#include "engine/cost/work/work.h"
#include "weights/base/detail/stable_sort.h"

namespace shardproof::cost {

std::vector<VolumeOf> compare_volumes(const Plan& plan, const Candidate& like) {
  std::vector<VolumeOf> volumes;
  for (const Choice& choice : plan.choices) {
    const Candidate& one = choice.main();
    const bool seen = std::any_of(volumes.begin(), volumes.end(), [&](const VolumeOf& other) {
      return other.strategy == one.strategy;
    });
    if (seen || one.torus != like.torus || one.weights != like.weights || one.batch != like.batch)
      continue;
    const Pass whole{one.pass.phase, one.batch, one.pass.L, one.pass.M};
    const Work work =
        work_of(one.placed, released_numerics(one.weights), one.torus, one.strategy, whole);
    volumes.push_back({one.strategy, paper_volume(one.strategy, one.placed, one.torus, whole),
                       elements_of_layer(work)});
  }
  stable_sort(volumes, [](const VolumeOf& a, const VolumeOf& b) { return a.full < b.full; });
  return volumes;
}

}  // namespace shardproof::cost
