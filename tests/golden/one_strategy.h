#pragma once

#include "golden/verify/verify.h"

namespace shardproof {

/// The phases' programs are the same.
inline Case of_one_strategy() {
  return parse_case(
      "torus=2x1x3 gen=3 prompt=5 chunk=2 model=palm-tiny,layers=2,E=12,F=12,H=6,Q=2,V=12");
}

inline Judgement verified(const Case& c, const VerifyOptions& options) {
  OracleMemo memo;
  return verify_case(c, memo, options);
}

}  // namespace shardproof
