#include "engine/program/liveness.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace shardproof {
namespace {

/// A value and how long it is needed, in op indices.
struct Value {
  std::string_view name;
  bool partial = false;   ///< a partial sum at run time; the declaration may be wrong in a program
                          ///< that is run without a type check
  bool asked = false;     ///< result of an op, read by one, or an output
  std::size_t read = 0;   ///< last op that needs its own numbers
  std::size_t terms = 0;  ///< for a partial sum: last op that may need its terms
};

/// The values of a program by number, and the operands and results of each op as such numbers.
class Values {
 public:
  explicit Values(const Program& program) {
    for (const ValueDecl& input : program.inputs)
      of(input.name).partial = input.layout.is_partial();
    args.resize(program.ops.size());
    results.resize(program.ops.size());
    for (std::size_t i = 0; i < program.ops.size(); ++i) {
      const Op& op = program.ops[i];
      for (const std::string& name : op.args) args[i].push_back(number(name));
      const bool moves = op_row(op.kind).only_moves && !op.args.empty();
      for (const ValueDecl& result : op.results) {
        results[i].push_back(number(result.name));
        all[results[i].back()].partial =
            result.layout.is_partial() || (moves && all[args[i][0]].partial);
      }
    }
  }

  Value& of(std::string_view name) { return all[number(name)]; }

  std::vector<Value> all;
  std::vector<std::vector<std::size_t>> args, results;

 private:
  std::size_t number(std::string_view name) {
    const auto [at, is_new] = numbers_.try_emplace(name, all.size());
    if (is_new) all.push_back({name});
    return at->second;
  }

  std::unordered_map<std::string_view, std::size_t> numbers_;
};

}  // namespace

std::map<std::string, std::size_t> needed_until(const Program& program) {
  Values values(program);
  const std::size_t end = program.ops.size();
  const auto read = [](Value& value, std::size_t until) {
    value.asked = true;
    value.read = std::max(value.read, until);
  };
  for (const std::string& name : program.outputs) {
    read(values.of(name), end);
    values.of(name).terms = end;
  }
  for (std::size_t i = end; i-- > 0;) {
    std::size_t until = i;  // last op that needs this op's operands
    for (const std::size_t result : values.results[i]) {
      Value& value = values.all[result];
      read(value, i);
      if (value.partial) until = std::max(until, value.terms);
    }
    for (const std::size_t arg : values.args[i]) {
      Value& value = values.all[arg];
      read(value, value.partial ? i : until);
      if (value.partial) value.terms = std::max(value.terms, until);
    }
  }
  std::map<std::string, std::size_t> needed;
  for (const Value& value : values.all)
    if (value.asked) needed.emplace(value.name, value.read);
  return needed;
}

Liveness::Liveness(const Program& program) : needed(needed_until(program)) {
  for (std::size_t i = 0; i < program.ops.size(); ++i)
    for (const std::string& name : program.ops[i].args) last_use[name] = i;
  for (const std::string& name : program.outputs) last_use[name] = program.ops.size();
}

}  // namespace shardproof
