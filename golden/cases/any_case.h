#pragma once

// For tests that use RapidCheck. This is the only public header that needs it, and none of our
// libraries links to it: a target that includes this header links to rapidcheck.
#include <rapidcheck.h>

#include <ostream>

#include "golden/cases/cases.h"

namespace shardproof {

/// Prints a RapidCheck counterexample as the command line that reproduces it.
inline void showValue(const Case& c, std::ostream& os) {
  os << "shardproof verify --case \"" << print_case(c) << "\"";
}

/// Generates a random case of any regime from the library's own stream, shrunk by its own steps.
inline rc::Gen<Case> any_case() {
  return [](const rc::Random& random, int) {
    rc::Random source = random;
    const Case drawn = cases::draw(source.next(), 0);
    return rc::shrinkable::shrinkRecur(
        drawn, [](const Case& c) { return rc::seq::fromContainer(cases::simpler(c)); });
  };
}

}  // namespace shardproof
