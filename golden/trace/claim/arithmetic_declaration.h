#pragma once

#include <string>
#include <string_view>

#include "golden/bounds/number/declared_arithmetic.h"
#include "golden/trace/read/dump.h"
#include "weights/base/error.h"

namespace shardproof::dump {

/// The arithmetic that a trace, or one of its values, declares (docs/trace-format.md).
struct Arithmetic {
  bounds::DeclaredArithmetic bounds;
  bool exact = false;  ///< claims the bits of the exact regime
  bool said = false;   ///< `arithmetic` is declared; otherwise the weakest claim is assumed
};

/// Reads the declarations of a trace whose case stores values as `act`. Throws
/// Error("dump_attribute", ...) with a meaningless attribute's name and value, and the legal ones.
Arithmetic read_arithmetic(const dump::Attributes& file, NumberFormat act);
/// Reads the declarations of a value, which override those of the trace.
Arithmetic read_arithmetic(const dump::Attributes& value, Arithmetic of_trace);
/// Returns whether a value declares arithmetic of its own.
bool says_arithmetic(const dump::Attributes& value);

/// Throws Error("dump_attribute", ...) for a meaningless attribute.
[[noreturn]] void reject_attribute(std::string_view name, std::string_view value,
                                   std::string_view why);
/// Reads a whole number from `least` to `most`; rejects anything else.
int whole_number(std::string_view name, std::string_view value, int least, int most);

}  // namespace shardproof::dump
