// What a writer does in another way, declared: right. Undeclared: different.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/golden/trace/written.h"

namespace shardproof::dump {
namespace {

/// Changes the numbers of all values of some names.
template <class Change>
std::vector<Written> changed(const ExactRun& run, const std::vector<std::string>& names,
                             Change&& by) {
  std::vector<Written> values = run.values();
  for (Written& w : values)
    for (const std::string& name : names)
      if (w.name.ends_with("." + name)) by(w);
  return values;
}

/// Right with the attribute in any layout, different without it.
void expect_needed(const ExactRun& run, const std::vector<Written>& values, const std::string& name,
                   const std::string& attribute, const std::string& arithmetic) {
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    std::mt19937_64 random(seed);
    dump::Dump d = run.trace(values, arithmetic, seed == 0 ? nullptr : &random);
    d.attributes[name] = attribute;
    const Verdict right = run.judged(d);
    EXPECT_EQ(right.count(Fit::different), 0) << name << " " << seed;
    EXPECT_EQ(right.compared, right.whole);
    d.attributes.erase(name);
    EXPECT_GT(run.judged(d).count(Fit::different), 0) << name;
  }
}

/// The row-major place of an index.
std::size_t place(const Shape& index, const Shape& shape) {
  std::int64_t at = 0;
  for (std::size_t d = 0; d < index.size(); ++d) at = at * shape[d] + index[d];
  return static_cast<std::size_t>(at);
}

/// Every number times this, as f32.
auto scaled(double by) {
  return [by](Written& w) {
    for (double& v : w.numbers) v = f32(v * by);
  };
}

TEST(Conventions, HeadsInAnotherOrder) {
  const ExactRun run(kLine);
  const std::int64_t order[] = {4, 2, 0, 5, 1, 3};
  const std::vector<Written> values =
      changed(run, {"q", "q_rot", "score", "max", "exp", "denom", "attn"}, [&](Written& w) {
        const Written from = w;
        for (std::size_t i = 0; i < w.numbers.size(); ++i) {
          Shape index = global_index(w.shape, static_cast<std::int64_t>(i));
          index[2] = order[index[2]];
          w.numbers[i] = from.numbers[place(index, w.shape)];
        }
      });
  for (const char* arithmetic : {"exact", "f32"})
    expect_needed(run, values, "heads", "4,2,0,5,1,3", arithmetic);
}

TEST(Conventions, InterleavedChannels) {
  const ExactRun run(kLine);
  const std::vector<Written> values =
      changed(run, {"q", "k", "q_rot", "k_rot", "k_cache"}, [&](Written& w) {
        const Written from = w;
        const std::size_t Q = 4;
        for (std::size_t i = 0; i < w.numbers.size(); ++i) {
          const std::size_t c = i % Q;
          w.numbers[i] = from.numbers[i - c + (c % 2 * Q / 2 + c / 2)];
        }
      });
  expect_needed(run, values, "rope_pairs", "interleaved", "exact");
}

TEST(Conventions, OtherBases) {
  for (const bool two : {false, true}) {  // the model's
    std::string line = kLine;
    if (two) line.insert(line.find(" batch"), ",softmax=base2");
    const ExactRun run(line);
    const auto other = scaled(two ? 0.6931471805599453 : 1.4426950408889634);
    const char* const said = two ? "e" : "2";
    expect_needed(run, changed(run, {"score", "max"}, other), "score_base", said, "f32");
    expect_needed(run, changed(run, {"logits"}, other), "logits_base", said, "f32");
    if (!two) continue;
    // Base 2 is its own: said or not, and with the bits of the exact regime.
    dump::Dump own = run.trace(run.values(), "exact", nullptr);
    EXPECT_EQ(run.judged(own).count(Fit::different), 0);
    own.attributes["score_base"] = own.attributes["logits_base"] = "2";
    EXPECT_EQ(run.judged(own).count(Fit::different), 0);
  }
}

TEST(Conventions, GainsFoldedIntoTheNextWeight) {
  const ExactRun run(kLine);
  const std::vector<Written> values = changed(run, {"norm", "final_norm"}, [&](Written& w) {
    const bool last = w.name.ends_with("final_norm");
    const std::size_t at = w.name.find("layer");
    const Tensor& gain = *run.weights().at(
        last ? "final_norm" : w.name.substr(at, w.name.rfind('.') - at) + ".norm");
    for (std::size_t i = 0; i < w.numbers.size(); ++i)
      w.numbers[i] = f32(w.numbers[i] / static_cast<double>(gain.data[i % gain.data.size()]));
  });
  expect_needed(run, values, "norm_gain", "folded", "f32");
}

TEST(Conventions, MaskedSlotsOfAnything) {
  const ExactRun run(kLine);
  const std::vector<Written> values = changed(run, {"score", "exp"}, [&](Written& w) {
    const std::size_t H = 6, M = static_cast<std::size_t>(w.shape[3]);
    for (std::size_t i = 0; i < w.numbers.size(); ++i) {
      const std::size_t token = i / M / H % static_cast<std::size_t>(w.shape[1]);
      const std::size_t before = M - static_cast<std::size_t>(w.shape[1]);
      if (i % M > before + token) w.numbers[i] = -1e30;
    }
  });
  expect_needed(run, values, "masked", "any", "exact");
}

/// A value longer than the model's along a dim, with something in the rest.
Written padded(const Written& w, char letter, std::int64_t by) {
  Written out = w;
  const std::size_t dim = w.dims.find(letter);
  out.shape[dim] += by;
  out.numbers.assign(static_cast<std::size_t>(element_count(out.shape)), 77.0);
  for (std::size_t i = 0; i < w.numbers.size(); ++i)
    out.numbers[place(global_index(w.shape, static_cast<std::int64_t>(i)), out.shape)] =
        w.numbers[i];
  return out;
}

TEST(Conventions, PaddedDims) {
  const ExactRun run(kLine);
  for (const auto& [name, letter] :
       {std::pair{"k_cache", 'M'}, std::pair{"v_cache", 'M'}, std::pair{"score", 'M'},
        std::pair{"gate", 'B'}, std::pair{"attn", 'H'}, std::pair{"logits", 'V'}})
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      std::vector<Written> values;
      for (const Written& w : run.values())
        if (w.name.ends_with("." + std::string(name))) {
          values.push_back(padded(w, letter, 6));
          values.back().attributes["padded"] = std::string(1, letter);
        }
      std::mt19937_64 random(seed);
      const dump::Dump d = run.trace(values, "exact", seed == 0 ? nullptr : &random);
      const Verdict v = run.judged(d);
      EXPECT_EQ(v.count(Fit::equal), std::ssize(values)) << name;
      EXPECT_EQ(v.exit_code(), 0);
    }
}

TEST(Conventions, FusedValues) {
  const ExactRun run(kLine);
  // [B, L, 6 + 2 + 2 heads, Q]
  Written fused{"decode.1.layer0.qkv", "BLHQ", {6, 1, 10, 4}, {}, {}};
  const Tensor q = run.value("decode.1.layer0.q"), k = run.value("decode.1.layer0.k"),
               v = run.value("decode.1.layer0.v");
  /// Of a row's numbers the part z of as many.
  const auto row_of_all = [&](std::size_t b, std::size_t z, std::size_t parts) {
    std::vector<double> row;
    for (const auto& [t, heads] : {std::pair{&q, 6U}, std::pair{&k, 2U}, std::pair{&v, 2U}}) {
      const std::size_t count = heads * 4 / parts;
      for (std::size_t i = 0; i < count; ++i)
        row.push_back(static_cast<double>(t->data[(b * parts + z) * count + i]));
    }
    return row;
  };
  for (std::size_t b = 0; b < 6; ++b)
    for (const double number : row_of_all(b, 0, 1)) fused.numbers.push_back(number);
  fused.attributes = {{"fused", "q,k,v"}, {"along", "H"}, {"layout", "BLHQ, BLKQ, BLKQ"}};
  const Verdict whole = run.judged(std::vector{fused}, "exact");
  EXPECT_EQ(whole.count(Fit::equal), 3);
  EXPECT_EQ(whole.compared, 3);
  // On chips: heads and key heads over z, each chip's shard a row of shards.
  dump::Dump d = run.trace({}, "exact");
  dump::Value value;
  value.attributes = {{"fused", "q,k,v"}, {"along", "H"}, {"layout", "BLH_zQ, BLK_zQ, BLK_zQ"}};
  for (int x = 0; x < 3; ++x)
    for (int z = 0; z < 2; ++z) {
      std::vector<double> shard;
      for (std::size_t b = 0; b < 6; ++b)
        for (const double number : row_of_all(b, static_cast<std::size_t>(z), 2))
          shard.push_back(number);
      value.chips[{x, 0, z}] = stored({6, 1, 5, 4}, shard);
    }
  run.insert(d, fused.name, value);
  EXPECT_EQ(run.judged(d).count(Fit::equal), 3);
  // A head of the keys in the place of one of the values.
  d.values.find(fused.name)->second.attributes["fused"] = "q,v,k";
  EXPECT_EQ(run.judged(d).count(Fit::different), 2);
}

/// A value in two parts; the second's numbers are what is left of it, if `rest` does not say.
std::vector<Written> in_parts(const Written& w, const std::function<double(std::size_t)>& first,
                              const std::function<double(std::size_t)>& rest = {}) {
  std::vector<Written> parts{w, w};
  parts[0].name += "_a", parts[1].name += "_b";
  for (std::size_t i = 0; i < w.numbers.size(); ++i) {
    parts[0].numbers[i] = first(i);
    parts[1].numbers[i] = rest ? rest(i) : w.numbers[i] - parts[0].numbers[i];
  }
  for (Written& part : parts) part.attributes["summand_of"] = "out";
  return parts;
}

TEST(Conventions, AResidualInTwoParts) {
  const ExactRun run(kLine);
  const Written w = run.whole("decode.2.layer0.out");
  std::vector<Written> values =
      in_parts(w, [&](std::size_t i) { return f32(w.numbers[i] * 0.25); });
  const Verdict v = run.judged(values, "f32");
  EXPECT_EQ(v.rows.size(), 1u);
  EXPECT_EQ(v.compared, 1);
  EXPECT_EQ(v.exit_code(), 0);
  values.pop_back();
  EXPECT_EQ(run.judged(values, "f32").exit_code(), 1);
}

/// Each part is rounded by itself, and is larger than the sum.
TEST(Conventions, PartsThatAreLargerThanTheirSum) {
  const ExactRun run(kLine);
  const std::string layer = "decode.2.layer0.";
  const Tensor x = run.value("decode.2.embed"), y = run.value(layer + "block_out");
  std::vector<Written> values;
  for (Written& w : run.values())
    if (w.name != layer + "out")
      values.push_back(w);
    else
      for (const Written& part : in_parts(
               w, [&](std::size_t i) { return static_cast<double>(x.data[i] + 24.0F); },
               [&](std::size_t i) { return static_cast<double>(y.data[i] - 24.0F); }))
        values.push_back(part);
  const Verdict right = run.judged(values, "f32");
  EXPECT_EQ(right.count(Fit::different), 0);
  EXPECT_EQ(right.compared, right.whole);
  named(values, layer + "out_b").numbers[7] += 0x1p-16;
  EXPECT_EQ(first_of(run.judged(values, "f32")), layer + "out");
}

/// Half of each number on the chips of x = 0, a quarter on each other's; chips of z have blocks of
/// the last dim if it is cut.
dump::Value partial_sums(const Tensor& t, const std::string& layout, bool cut) {
  dump::Value parts;
  parts.attributes["layout"] = layout;
  Shape shape = t.shape;
  const auto columns = static_cast<std::size_t>(shape.back()), width = cut ? columns / 2 : columns;
  shape.back() = static_cast<std::int64_t>(width);
  for (int x = 0; x < 3; ++x)
    for (std::size_t z = 0; z < 2; ++z) {
      std::vector<double> shard;
      for (std::size_t i = 0; i < t.data.size(); ++i)
        if (!cut || i % columns / width == z)
          shard.push_back((x == 0 ? 0.5 : 0.25) * static_cast<double>(t.data[i]));
      parts.chips[{x, 0, static_cast<int>(z)}] = stored(shape, shard);
    }
  return parts;
}

/// A trace that has gate as partial sums: what comes next was made of their sum, rounded.
TEST(Conventions, OperandsInPartialSums) {
  const ExactRun run(kLine + " act=bf16");
  const std::string layer = "decode.1.layer1.";
  const auto fit_of_hidden = [&](const dump::Dump& d) {
    return row_of(run.judged(d), layer + "hidden").fit;
  };
  dump::Dump d = run.trace(run.values(), "bf16");
  dump::Value whole = d.values.at(layer + "gate");
  d.values.at(layer + "gate") =
      partial_sums(run.answer().raw_of(layer + "gate"), "BLF partialsum-x", false);
  // It may be of any number that rounds to the same bf16.
  EXPECT_EQ(fit_of_hidden(d), Fit::near);
  // If it stands there as one number, too, that is what it is made of, in whatever order they are.
  whole.attributes["meaning"] = "gate";
  run.insert(d, layer + "gate_stored", whole);
  EXPECT_LE(fit_of_hidden(d), Fit::near);
}

TEST(Conventions, PartialSums) {
  const ExactRun run(kLine);
  dump::Dump d = run.trace(run.values(), "f32");
  dump::Value& value = run.insert(
      d, "decode.1.layer1.g0",
      partial_sums(run.answer().raw_of("decode.1.layer1.gate"), "BLF_z partialsum-x", true));
  value.attributes["meaning"] = "raw gate";
  EXPECT_EQ(run.judged(d).exit_code(), 0);
  dump::StoredArray& shard = value.chips.at({2, 0, 1});
  poke(shard, 3, shard.at(3) + 5.0);
  const Verdict v = run.judged(d);
  ASSERT_EQ(first_of(v), "raw decode.1.layer1.gate");
  EXPECT_EQ(v.rows[*v.first].wrong_parts.size(), 3U);  // the group
  EXPECT_EQ(v.rows[*v.first].wrong, 3);
}

TEST(Conventions, Probs) {
  const ExactRun run(kLine);
  std::vector<Written> values;
  for (const Written& w : run.values())
    if (w.name.ends_with(".exp")) {
      Written p = w;
      p.name = w.name.substr(0, w.name.size() - 3) + "probs";
      const Tensor Z = run.value(w.name.substr(0, w.name.size() - 3) + "denom");
      const std::size_t M = static_cast<std::size_t>(w.shape[3]);
      for (std::size_t i = 0; i < p.numbers.size(); ++i)
        p.numbers[i] = f32(w.numbers[i] / static_cast<double>(Z.data[i / M]));
      values.push_back(p);
    } else if (!w.name.ends_with(".denom")) {
      values.push_back(w);
    }
  for (const char* arithmetic : {"exact", "f32"}) {
    EXPECT_EQ(run.judged(values, arithmetic).exit_code(), 0) << arithmetic;
    std::vector<Written> wrong = values;
    named(wrong, "prefill.c1.layer1.probs").numbers[5] += 0.25;
    EXPECT_EQ(first_of(run.judged(wrong, arithmetic)), "prefill.c1.layer1.probs");
  }
}

/// A trace whose arrays have fewer digits than the run had.
TEST(Conventions, ValuesRoundedInTheFile) {
  const ExactRun run(kLine);
  for (const NumberFormat encoding : {NumberFormat::f16, NumberFormat::bf16, NumberFormat::f32}) {
    dump::Dump d = run.trace({}, encoding == NumberFormat::f32 ? "f64" : "f32");
    for (const Written& w : run.values()) {
      if (w.name.ends_with("ids") || w.name.ends_with("token")) continue;
      run.insert(d, w.name, {}).whole = stored(w.shape, w.numbers, encoding);
    }
    EXPECT_EQ(run.judged(d).count(Fit::different), 0) << to_string(encoding);
    // Twice a value is no rounding.
    for (const char* name : {"prefill.c1.layer0.gate", "decode.1.layer1.attn", "decode.2.logits"}) {
      dump::Dump wrong = d;
      Written twice = run.whole(name);
      for (double& v : twice.numbers) v *= 2;
      wrong.values.find(name)->second.whole = stored(twice.shape, twice.numbers, encoding);
      EXPECT_EQ(first_of(run.judged(wrong)), name);
    }
  }
}

TEST(Conventions, WeightsTransposed) {
  const ExactRun run(kLine);
  const Written w = written("layer1.wq", "EHQ", *run.weights().at("layer1.wq"));
  for (const char* dims : {"EHQ", "HQE", "QEH"}) {
    Written theirs = transposed(w, dims);
    theirs.attributes["layout"] = dims;
    EXPECT_EQ(run.judged(std::vector{theirs}, "f32").count(Fit::equal), 1) << dims;
    theirs.numbers[10] += 1.0;
    EXPECT_EQ(run.judged(std::vector{theirs}, "f32").count(Fit::different), 1);
  }
}

}  // namespace
}  // namespace shardproof::dump
