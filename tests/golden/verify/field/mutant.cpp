#include "tests/golden/verify/field/mutant.h"

#include <gtest/gtest.h>

#include <bit>

#include "golden/faults/detail/numbers.h"
#include "tests/golden/changed_plan.h"
#include "weights/base/error.h"

namespace shardproof {
namespace {

template <class T>
void append_bits(const ChipArrays<T>& chips, std::vector<std::uint64_t>& bits) {
  for (const auto& chip : chips)
    for (const T& v : chip)
      if constexpr (std::is_same_v<T, FieldElement>)
        bits.insert(bits.end(), v.lane.begin(), v.lane.end());
      else
        bits.push_back(std::bit_cast<std::uint32_t>(v));
}

/// Whether the text had it.
bool replace_all(std::string& text, const std::string& from, const std::string& to) {
  bool found = false;
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
    found = true;
  }
  return found;
}

}  // namespace

std::vector<std::uint64_t> bits_of(const Sharded& value) {
  std::vector<std::uint64_t> bits;
  if (value.holds_field())
    append_bits(value.field().values, bits);
  else if (value.stores_int32())
    append_bits(value.i32(), bits);
  else
    append_bits(value.f32(), bits);
  return bits;
}

void LatestValues::observe(const Scope&, const Program&, const Op*, const ValueDecl& declared,
                           const Sharded& value) {
  latest_[declared.name] = std::make_shared<Sharded>(value);
  const Role& role = declared.role;
  if (role.kind == Role::Kind::checkpoint && (role.name == "logits" || role.name == "token"))
    outputs_.push_back(bits_of(value));
}

Case small_case(const std::string& line) {
  std::string model = "palm-tiny,layers=1,E=24,F=24,H=12,K=1,Q=4,V=48,positions=16";
  if (const auto at = line.find("K="); at != std::string::npos)
    model.replace(model.find("K=1"), 3, line.substr(at, line.find(' ', at) - at));
  std::string rest = line;
  if (const auto at = line.find("K="); at != std::string::npos)
    rest.erase(at, line.find(' ', at) - at);
  return parse_case("model=" + model + " batch=12 prompt=2 gen=3 seed=7 " + rest);
}

void edit_layers(RunPlan& plan, const Edits& edits) {
  std::string of_prefill = print_program(plan.prefill.layer);
  std::string of_decode = print_program(plan.decode.layer);
  for (const auto& [from, to] : edits) {
    const bool first = replace_all(of_prefill, from, to);
    const bool second = replace_all(of_decode, from, to);
    EXPECT_TRUE(first || second) << from << "\n" << of_prefill;
  }
  plan.prefill.layer = parse_program("layer", of_prefill);
  plan.decode.layer = parse_program("layer", of_decode);
}

Outcome run_with(const Mutant* mutant, const Case& c, OracleMemo& memo, const Weights* weights) {
  LatestValues shown;
  VerifyOptions options;
  options.weights = weights;
  options.observer = &shown;
  options.until = Findings::Until::all;
  FaultHooks own;
  if (mutant != nullptr) {
    if (mutant->hooks) mutant->hooks(c, shown, own);
    options.faults = own;
    options.faults.result = [&](const Scope& scope, const Program& program, const Op& op,
                                const ValueDecl& declared, Sharded& value) {
      if (own.result) own.result(scope, program, op, declared, value);
      faults::believe(declared.layout, c.numerics.regime, value);
    };
  }
  const auto planted = [&](RunPlan& plan) {
    if (mutant != nullptr) edit_layers(plan, mutant->planted);
  };
  const Judgement judgement = judge_changed(c, planted, memo, Typing::unchecked, options);
  return {judgement, shown.outputs()};
}

}  // namespace shardproof
