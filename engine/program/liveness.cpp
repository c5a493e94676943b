#include "engine/program/liveness.h"

#include <algorithm>

namespace shardproof {
namespace {

/// Which values carry summands when the program runs; a declaration may lie in a program that is
/// run without a type check.
std::map<std::string, bool> partial_values(const Program& program) {
  std::map<std::string, bool> partial;
  for (const ValueDecl& input : program.inputs) partial[input.name] = input.layout.is_partial();
  for (const Op& op : program.ops) {
    const bool moves = op_row(op.kind).only_moves;
    for (const ValueDecl& result : op.results)
      partial[result.name] = result.layout.is_partial() || (moves && partial[op.args[0]]);
  }
  return partial;
}

}  // namespace

std::map<std::string, std::size_t> needed_until(const Program& program) {
  std::map<std::string, bool> partial = partial_values(program);
  std::map<std::string, std::size_t> read;   // until when the value's own numbers are needed
  std::map<std::string, std::size_t> terms;  // until when what a partial is a sum of is
  for (const std::string& name : program.outputs) read[name] = terms[name] = program.ops.size();
  for (std::size_t i = program.ops.size(); i-- > 0;) {
    const Op& op = program.ops[i];
    std::size_t until = i;  // until when this op's operands are needed
    for (const ValueDecl& result : op.results) {
      read[result.name] = std::max(read[result.name], i);
      if (partial[result.name]) until = std::max({until, terms[result.name], i});
    }
    for (const std::string& arg : op.args) {
      const bool complete = !partial[arg];
      read[arg] = std::max(read[arg], complete ? until : i);
      if (!complete) terms[arg] = std::max(terms[arg], until);
    }
  }
  return read;
}

}  // namespace shardproof
