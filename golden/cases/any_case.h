#pragma once

// For tests by RapidCheck. It alone of the public headers needs it, and no library of ours links to
// it: who includes this links to rapidcheck.
#include <rapidcheck.h>

#include <ostream>

#include "golden/cases/cases.h"

namespace shardproof {

/// How RapidCheck prints a counterexample: as the line that reproduces it.
inline void showValue(const Case& c, std::ostream& os) {
  os << "shardproof verify --case \"" << print_case(c) << "\"";
}

/// A random case of the library's own stream, of any regime, shrunk by the library's own steps.
inline rc::Gen<Case> any_case() {
  return [](const rc::Random& random, int) {
    rc::Random source = random;
    const Case drawn = cases::draw(source.next(), 0);
    return rc::shrinkable::shrinkRecur(
        drawn, [](const Case& c) { return rc::seq::fromContainer(cases::simpler(c)); });
  };
}

}  // namespace shardproof
