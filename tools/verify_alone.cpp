#include "tools/command/verbs.h"

namespace shardproof::tools {

std::span<const AddVerb> verbs_of_program() {
  static constexpr AddVerb kVerbs[]{add_verify};
  return kVerbs;
}

}  // namespace shardproof::tools
