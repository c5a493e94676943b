#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "golden/compare/case_padding.h"
#include "golden/judge/expected.h"
#include "golden/trace/write/trace.h"
#include "golden/verify/observers.h"
#include "golden/verify/verify.h"

namespace shardproof {

inline const char* const kCase =
    "torus=2x1x3 model=palm-tiny,layers=2,E=12,F=12,H=6,Q=2,V=12 prefill=ws2d:heads "
    "decode=ws2d:batch prompt=3 chunk=2 gen=3 seed=5";

template <class Values>
std::string as_bytes(const Values& values) {
  std::string bytes(values.size() * sizeof(values[0]), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

inline std::string group_of(const Torus& torus, int chip) {
  return "chips/" + std::to_string(torus.coordinate(chip, Axis::x)) + "_" +
         std::to_string(torus.coordinate(chip, Axis::y)) + "_" +
         std::to_string(torus.coordinate(chip, Axis::z));
}

/// Keeps what a run shows, and what the oracle says of it.
class Keeper : public Observer {
 public:
  struct Kept {
    ValueDecl declared;
    std::string op;
    Sharded value;
    Expected expected;
  };

  explicit Keeper(const OracleMemo::Known* known, DimPadding padding = {})
      : known_(known), padding_(std::move(padding)) {}

  void observe(const Scope& scope, const Program& program, const Op* op, const ValueDecl& declared,
               const Sharded& value) override {
    if (op == nullptr) return;
    const std::string id = scope.step(program, declared.name);
    order.push_back(id);
    Expected expected;
    if (known_ != nullptr)
      expected = as_placed(expected_value(known_->answer, known_->stored, scope, declared.role,
                                          value.shape(), padding_),
                           declared.role, whole_letters(declared.layout), padding_);
    expected.bits = expected.bits.copy();  // they outlive the oracle's answer
    kept.emplace(id, Kept{.declared = declared,
                          .op = op->to_string(),
                          .value = value,
                          .expected = std::move(expected)});
  }

  std::vector<std::string> order;
  std::map<std::string, Kept> kept;

 private:
  const OracleMemo::Known* known_;
  DimPadding padding_;
};

inline std::string bytes_of_whole(const Sharded& value) {
  return std::holds_alternative<ChipArrays<std::int32_t>>(value.data())
             ? as_bytes(assemble_int(value).data)
             : as_bytes(assemble(value).data);
}

struct Traced {
  Judgement judgement;
  Keeper keeper;
};

inline Traced trace_case(const Case& c, const std::filesystem::path& target,
                         bool against_oracle = true, FaultHooks faults = {},
                         Findings::Until until = Findings::Until::first) {
  OracleMemo memo;
  const auto known = memo.get(c);
  Traced traced{.judgement = {},
                .keeper = Keeper(against_oracle ? known.get() : nullptr, dim_padding(c))};
  Trace trace(make_typed_plan(c), target);
  Observers both({&trace, &traced.keeper});
  VerifyOptions options;
  options.observer = &both;
  options.faults = std::move(faults);
  options.until = until;
  traced.judgement = verify_case(c, memo, options);
  if (traced.judgement.difference()) trace.expect(traced.judgement.difference()->step, *known);
  trace.write(traced.judgement.difference() ? traced.judgement.explanation() : "complete");
  return traced;
}

}  // namespace shardproof
