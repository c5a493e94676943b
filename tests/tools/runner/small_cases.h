#pragma once

// Cases that take no time, and a run of them that is wrong.
#include <string>

#include "golden/verify/verify.h"

namespace shardproof::tools {

inline const char* const kSmall =
    "model=palm-tiny,layers=1,E=12,F=12,H=6,Q=2,V=12 batch=6 prompt=2 gen=2";

inline Case small(const std::string& torus) {
  return parse_case(std::string(kSmall) + " torus=" + torus);
}

inline VerifyOptions with_a_fault() {
  VerifyOptions options;
  options.faults.result = [](const Scope& scope, const Program&, const Op& op, const ValueDecl&,
                             Sharded& value) {
    if (op.kind == OpKind::swiglu && scope.pass != "prefill.c0") value.f32_of(0)[0] += 1.0F;
  };
  return options;
}

}  // namespace shardproof::tools
