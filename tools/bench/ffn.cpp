#include "tools/bench/ffn.h"

#include <cmath>
#include <random>
#include <set>

#include "engine/program/liveness.h"
#include "engine/program/typing.h"

namespace shardproof::bench {
namespace {

constexpr const char* kInputs = R"(
  input x : BLE_xzy is in
  input w1 : E_xF_zy is weight w_gate
  input w2 : F_zyE_x is weight w_out
  xg : BLE_x = all_gather(x, E, zy) is in
  h : BLF_zy partialsum-x = einsum(BLE,EF->BLF; xg, w1) is raw gate
  hr : BLF_zyx = reduce_scatter(h, F, x) is raw gate
)";
constexpr const char* kActivation = R"(
  a : BLF_zyx = add(hr, hr) is hidden
  ag : BLF_zy = all_gather(a, F, x) is hidden
)";
constexpr const char* kNoActivation = R"(
  ag : BLF_zy = all_gather(hr, F, x) is hidden
)";
constexpr const char* kOutput = R"(
  y : BLE_x partialsum-yz = einsum(BLF,FE->BLE; ag, w2) is raw block_out
  yr : BLE_xzy = reduce_scatter(y, E, zy) is raw block_out
  output yr
)";

Tensor normal(const Shape& shape, double scale, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> draw(0.0, scale);
  Tensor t(shape);
  for (float& v : t.data) v = static_cast<float>(draw(random));
  return t;
}

/// Returns the bytes of a value's shards over all chips, counting a shared buffer once.
std::int64_t bytes(const Sharded& value) {
  std::int64_t total = 0;
  const auto add = [&](const auto& chips) {
    std::set<const void*> counted;
    for (std::size_t chip = 0; chip < chips.size(); ++chip)
      if (const auto& buffer = chips[chip]; counted.insert(chips.identity(chip)).second)
        total += static_cast<std::int64_t>(buffer.size() * sizeof(buffer[0]));
  };
  if (const auto* partial = std::get_if<Partial>(&value.data())) {
    add(partial->values);
    add(partial->bounds);
    add(partial->origins);
  } else if (const auto* f32 = std::get_if<ChipArrays<float>>(&value.data())) {
    add(*f32);
  } else {
    add(value.i32());
  }
  return total;
}

class Sizes : public Observer {
 public:
  void observe(const Scope&, const Program&, const Op*, const ValueDecl& declared,
               const Sharded& value) override {
    of[declared.name] = bytes(value);
  }
  std::map<std::string, std::int64_t> of;
};

}  // namespace

Ffn::Ffn(std::int64_t tokens)
    : tokens_(tokens),
      x_(normal({tokens, 1, E}, 1.0, 1)),
      w1_(normal({E, F}, 1.0 / std::sqrt(static_cast<double>(E)), 2)),
      w2_(normal({F, E}, 1.0 / std::sqrt(static_cast<double>(F)), 3)) {}

SimulatedFfn::SimulatedFfn(const Ffn& ffn, const Torus& torus, Regime regime, bool activation,
                           Threads& threads)
    : config_(parse_model("palm-tiny")),
      regime_(regime),
      threads_(threads),
      program_(parse_program(
          "ffn", std::string(kInputs) + (activation ? kActivation : kNoActivation) + kOutput)) {
  const std::map<std::string, const Tensor*> tensors{
      {"x", &ffn.x()}, {"w1", &ffn.w1()}, {"w2", &ffn.w2()}};
  std::map<std::string, Shape> shapes;
  for (const ValueDecl& input : program_.inputs) {
    const Tensor& tensor = *tensors.at(input.name);
    shapes[input.name] = tensor.shape;
    inputs_[input.name] = std::make_shared<Sharded>(shard(tensor, input.layout, torus));
  }
  types_ = check(program_, shapes, torus);
}

SharedValue SimulatedFfn::run() const {
  Execution execution{config_, threads_, nullptr, {}};
  execution.types = &types_;
  execution.numerics.regime = regime_;
  return execute(program_, inputs_, execution).at("yr");
}

std::int64_t SimulatedFfn::peak_bytes() const {
  Sizes sizes;
  Execution execution{config_, threads_, &sizes, {}};
  execution.types = &types_;
  execution.numerics.regime = regime_;
  execute(program_, inputs_, execution);
  const auto until = needed_until(program_);
  std::map<std::string, std::size_t> made;
  for (std::size_t i = 0; i < program_.ops.size(); ++i) made[program_.ops[i].results[0].name] = i;
  std::int64_t most = 0;
  for (std::size_t i = 0; i < program_.ops.size(); ++i) {
    std::int64_t now = 0;
    for (const auto& [name, size] : sizes.of)
      if (inputs_.contains(name) || (made.at(name) <= i && i <= until.at(name))) now += size;
    most = std::max(most, now);
  }
  return most;
}

Torus torus_of(int chips) {
  if (chips == 8) return Torus(2, 2, 2);
  if (chips == 64) return Torus(4, 4, 4);
  if (chips == 256) return Torus(8, 8, 4);
  return Torus(1, 1, chips);
}

}  // namespace shardproof::bench
