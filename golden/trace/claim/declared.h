#pragma once

#include <string>
#include <string_view>

#include "golden/bounds/number/declared.h"
#include "golden/trace/read/dump.h"
#include "weights/base/error.h"

namespace shardproof::candidate {

/// What a trace, or one of its values, says of arithmetic (docs/trace-format.md).
struct Arithmetic {
  bounds::Declared bounds;
  bool exact = false;  ///< the bits of the exact regime are claimed
  bool said = false;   ///< `arithmetic` is there: else the least is claimed
};

/// Of a trace whose case keeps values as `act`. Throws Error("dump_attribute", ...): name and value
/// of what cannot mean anything, and what is legal.
Arithmetic read_arithmetic(const dump::Attributes& file, bounds::Format act);
/// Of a value: what it says in place of what the trace says.
Arithmetic read_arithmetic(const dump::Attributes& value, Arithmetic of_trace);
/// Whether a value says anything of its own.
bool says_arithmetic(const dump::Attributes& value);

/// An attribute that cannot mean anything.
[[noreturn]] void reject_attribute(std::string_view name, std::string_view value,
                                   std::string_view why);
/// A whole number from `least` to `most`; rejects others.
int whole_number(std::string_view name, std::string_view value, int least, int most);

}  // namespace shardproof::candidate
