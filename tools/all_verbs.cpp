#include "tools/command/verbs.h"

namespace shardproof::tools {

std::span<const AddVerb> verbs_of_program() {
  static constexpr AddVerb kVerbs[]{add_verify, add_explain, add_run,    add_compare, add_trace,
                                    add_golden, add_faults,  add_plan,   add_weights, add_intensity,
                                    add_cost,   add_paper,   add_layout, add_list};
  return kVerbs;
}

}  // namespace shardproof::tools
