// Partial sums that nothing but one reduction reads are not made, and no bit depends on it.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/numeric/contract.h"
#include "tests/engine/hostile_terms.h"
#include "tests/engine/run_program.h"

namespace shardproof {
namespace {

/// Sees which partial values are left lazy, and reads them itself if it is to.
class Watcher : public Observer {
 public:
  explicit Watcher(bool reads) : reads_(reads) {}
  void observe(const Scope&, const Program&, const Op*, const ValueDecl& declared,
               const Sharded& value) override {
    if (value.holds_partial() && value.partial().lazy != nullptr) lazy += declared.name + " ";
  }
  bool reads_partials() const override { return reads_; }

  std::string lazy;

 private:
  bool reads_;
};

constexpr const char* kLazyProgram = R"(
  input ids : BL is input ids
  input table : V_zyE_x is weight embed
  input x : BLE_zy is in
  input w : E_zyF_x is weight w_gate
  input v : E_zyF_x is weight w_up
  e : BLE_x partialsum-yz = embed_lookup(ids, table) is raw embed
  eb : B_zyLE_x = reduce_scatter(e, B, zy) is raw embed
  f : BLE_x partialsum-yz = embed_lookup(ids, table) is raw embed
  fe : BLE_xzy = reduce_scatter(f, E, zy) is raw embed
  h : BLF_x partialsum-yz = einsum(BLE,EF->BLF; x, w) is raw gate
  hf : BLF_xzy = reduce_scatter(h, F, zy) is raw gate
  g : BLF_x partialsum-yz = einsum(BLE,EF->BLF; x, w) is raw gate
  gr : BLF_x = all_reduce(g, yz) is raw gate
  y : BLF_x partialsum-yz = einsum(BLE,EF->BLF + BLE,EF->BLF; x, w; x, v) is raw gate
  yb : B_zyLF_x = reduce_scatter(y, B, zy) is raw gate
  two : BLF_x partialsum-yz = einsum(BLE,EF->BLF; x, w) is raw gate
  tz : BLF_x partialsum-y = all_reduce(two, z) is raw gate
  ty : BLF_x = all_reduce(tz, y) is raw gate
  read : BLF_x partialsum-yz = einsum(BLE,EF->BLF; x, w) is raw gate
  r1 : BLF_x = all_reduce(read, yz) is raw gate
  r2 : BLF_xzy = reduce_scatter(read, F, zy) is raw gate
  output eb, fe, hf, gr, yb, ty, r1, r2
)";

/// Of more rows than one tile of a product or lookup has.
class LazyPartials : public testing::Test {
 protected:
  const Torus torus{2, 2, 3};
  const Program program = parse_program("test", kLazyProgram);
  std::map<std::string, Shape> shapes{{"ids", {12, 31}},
                                      {"table", {12, 24}},
                                      {"x", {12, 31, 24}},
                                      {"w", {24, 48}},
                                      {"v", {24, 48}}};
  std::map<std::string, Type> types = check(program, shapes, torus);
  Threads threads{3};

  std::map<std::string, SharedValue> inputs(HostileTerms::Kind kind, std::uint64_t seed) const {
    std::map<std::string, SharedValue> made;
    HostileTerms draw(seed);
    std::mt19937_64 ids(seed);
    for (const ValueDecl& input : program.inputs) {
      const Shape& shape = shapes.at(input.name);
      if (input.name == "ids") {
        IntTensor t(shape);
        for (std::int32_t& id : t.data) id = static_cast<std::int32_t>(ids() % 12);
        made[input.name] = shared(shard(t, input.layout, torus));
        continue;
      }
      Tensor t(shape);
      std::size_t i = 0;
      while (i < t.data.size()) {
        const DotTerms terms = draw.draw(kind, 24);
        const auto& from = input.name == "x" ? terms.x : terms.y;
        for (std::size_t k = 0; k < from.size() && i < t.data.size(); ++k) t.data[i++] = from[k];
      }
      if (input.name == "table") t.data[0] = -0.0F;
      made[input.name] = shared(shard(t, input.layout, torus));
    }
    return made;
  }

  std::map<std::string, SharedValue> run(const std::map<std::string, SharedValue>& given,
                                         Observer& observer, const Hazards& hazards = {},
                                         const FaultHooks* faults = nullptr) {
    Execution execution = any_execution(threads, &observer, hazards);
    execution.types = &types;
    execution.faults = faults;
    return execute(program, given, execution);
  }

  /// The bits of all outputs, or the error that ends the run.
  std::string bits_of_run(const std::map<std::string, SharedValue>& given, Observer& observer) {
    std::string bits;
    try {
      for (const auto& [name, value] : run(given, observer))
        for (const Buffer<float>& chip : std::as_const(*value).f32())
          bits.append(reinterpret_cast<const char*>(chip.data()), chip.size() * sizeof(float));
    } catch (const Error& error) {
      return error.what();
    }
    return bits;
  }
};

TEST_F(LazyPartials, HaveTheBitsOfThoseThatAreMade) {
  for (const HostileTerms::Kind kind : HostileTerms::kKinds)
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
      const auto given = inputs(kind, seed);
      Watcher blind(false), reader(true);
      EXPECT_EQ(bits_of_run(given, blind), bits_of_run(given, reader))
          << HostileTerms::name(kind) << ", seed " << seed;
      EXPECT_EQ(reader.lazy, "");
    }
}

TEST_F(LazyPartials, AreSummedFromEveryChipOnce) {
  const auto given = inputs(HostileTerms::Kind::normal, 1);
  Watcher blind(false);
  const auto outputs = run(given, blind);
  const Tensor x = assemble(*given.at("x")), w = assemble(*given.at("w"));
  for (const char* name : {"hf", "gr"}) {
    const Tensor sums = assemble(*outputs.at(name));
    for (std::size_t i = 0; i < sums.data.size(); ++i)
      ASSERT_EQ(sums.data[i],
                exact_dot(x.data.data() + i / 48 * 24, 1, w.data.data() + i % 48, 48, 24))
          << name << " " << i;
  }
  const Tensor table = assemble(*given.at("table")), rows = assemble(*outputs.at("eb"));
  const IntTensor ids = assemble_int(*given.at("ids"));
  for (std::size_t i = 0; i < rows.data.size(); ++i)
    ASSERT_EQ(rows.data[i], table.data[static_cast<std::size_t>(ids.data[i / 24]) * 24 + i % 24]);
}

TEST_F(LazyPartials, AreThoseThatOneReductionReadsAndNobodyElse) {
  Watcher blind(false);
  EXPECT_EQ(run(inputs(HostileTerms::Kind::normal, 1), blind).size(), 8U);
  EXPECT_EQ(blind.lazy, "e f h g y ");
}

TEST_F(LazyPartials, AreMadeWhereHazardsOrFaultsAreToMeetThem) {
  const auto given = inputs(HostileTerms::Kind::normal, 1);
  std::vector<Hazards> each(5);
  each[0].poison = each[1].replicas = each[2].alone = each[3].fresh_nan = true;
  each[4].order = 1;
  for (const Hazards& hazards : each) {
    Watcher blind(false);
    run(given, blind, hazards);
    EXPECT_EQ(blind.lazy, "");
  }
  Watcher blind(false);
  FaultHooks faults;
  faults.result = [](const Scope&, const Program&, const Op&, const ValueDecl&, Sharded&) {};
  run(given, blind, {}, &faults);
  EXPECT_EQ(blind.lazy, "");
}

}  // namespace
}  // namespace shardproof
