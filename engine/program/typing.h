#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/layout/type.h"
#include "engine/program/program.h"
#include "engine/shards/finding.h"
#include "weights/base/error.h"

namespace shardproof {

/// The types of an op's results, from its operands alone; declared layouts play no part. Throws
/// Error with the label of the broken typing rule, e.g. "all_gather_c3" (all are listed in
/// docs/typing.md), "program_c4" (wrong number of operands) and "program_c6" (a partial maximum
/// that another op than all_reduce by max takes).
std::vector<Type> infer(const Op& op, const std::vector<Type>& args, const Torus& torus);

/// Throws Error("program_c5", ...) unless the layout's letters are the dims of the value's role,
/// in that order.
void check_dims(const ValueDecl& result, const ModelRows* rows = nullptr);

/// Types every value of the program, given its inputs' global shapes, before anything runs. Throws
/// the first finding: what infer throws, naming the step, and "program_c1" (a value used before it
/// is defined), "program_c2" (a name defined twice), "program_c3" (a declared layout that is not
/// what the op returns), "program_c4" (wrong number of operands or results), "program_c5" (a layout
/// whose letters are not those of the value's role), "local_c1" (a dim that does not divide).
std::map<std::string, Type> check(const Program& program,
                                  const std::map<std::string, Shape>& inputs, const Torus& torus);
/// Types every value of the program, with findings of the detector "types" in place of Errors: the
/// first, or those of all steps whose operands have types. Returns the types of the values that
/// have one.
std::map<std::string, Type> check(const Program& program,
                                  const std::map<std::string, Shape>& inputs, const Torus& torus,
                                  Findings& findings);

}  // namespace shardproof
