// Faults of one chip that makes codes and scales: every matrix, every chip of 4x2x3.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "golden/compare/block_map.h"
#include "golden/verify/verify.h"
#include "tests/sanitized.h"
#include "weights/model/registry.h"

namespace shardproof {
namespace {

constexpr int kChips = 24;
const std::vector<std::string> kMatrices{"wq", "wk", "wv", "wo", "w_gate", "w_up", "w_out"};

/// Matrices sharded in their contracted dims, or not; both blocks.
const std::vector<std::string> kCases{
    "prefill=ws2d:batch", "prefill=ws2d:heads block=serial act=bf16",
    "prefill=wg-xyz:batch model=palm-tiny,bias=all", "prefill=ws1d:heads block=serial"};

struct Setting {
  explicit Setting(const std::string& line)
      : c(parse_case("torus=4x2x3 weights=int8 batch=24 prompt=2 gen=2 seed=6 " + line)) {
    c.model.layers = 1;
    c.model.E = c.model.F = 48;
    c.model.H = c.model.K = c.model.V = 24;
    c.model.Q = 2;
    known = memo.get(c);
    for (const ValueDecl& input : make_plan(c).prefill.layer.inputs)
      if (input.role.kind == Role::Kind::weight) layouts.emplace(input.role.name, input.layout);
  }

  Judgement judge(const FaultHooks& faults) {
    VerifyOptions options;
    options.faults = faults;
    return verify_case(c, memo, options);
  }

  Case c;
  OracleMemo memo;
  std::shared_ptr<const OracleMemo::Known> known;
  std::map<std::string, Layout> layouts;
};

/// The judge names the weight's input, on that chip.
void expect_input(const Setting& setting, const Judgement& j, const std::string& weight, int chip) {
  ASSERT_TRUE(j.difference()) << weight << " " << chip << " " << j.explanation();
  EXPECT_EQ(j.difference()->op, "input");
  EXPECT_EQ(j.difference()->checkpoint, "weight " + weight);
  EXPECT_EQ(j.difference()->chip, setting.c.torus.name(chip)) << weight;
}

/// `change` of the element in the middle of what a chip has of a weight, on the `chosen` chips.
template <class Change>
void expect_found_everywhere(Setting& setting, const std::string& name, OneInN& chosen,
                             Change&& change) {
  for (int chip = 0; chip < kChips; ++chip) {
    if (!chosen()) continue;
    FaultHooks faults;
    faults.weight = [&](const std::string& id, Sharded& placed) {
      if (id != "layer0." + name) return;
      const auto own = placed.f32_of(chip);
      own[own.size() / 2] = change(own[own.size() / 2]);
    };
    expect_input(setting, setting.judge(faults), "layer0." + name, chip);
  }
}

TEST(Int8Faults, AScaleThatIsOffByOneUlpIsSeenOnEveryChip) {
  std::set<std::string> seen;
  OneInN chosen(5, "chips");
  for (const std::string& line : kCases) {
    Setting setting(line);
    ASSERT_EQ(setting.judge({}).verdict, Verdict::equal) << line;
    for (const WeightRow& row : all_weights()) {
      if (row.kind != WeightKind::scale || !row.in_model(setting.c.model)) continue;
      for (const float towards : {0.0F, std::numeric_limits<float>::max()})
        expect_found_everywhere(setting, std::string(row.name), chosen,
                                [&](float scale) { return std::nextafter(scale, towards); });
      seen.insert(std::string(row.name));
    }
  }
  for (const WeightRow& row : all_weights())
    if (row.kind == WeightKind::scale) {
      EXPECT_TRUE(seen.contains(std::string(row.name))) << row.name;
    }
}

TEST(Int8Faults, ACodeThatIsOffByOneIsSeenOnEveryChip) {
  OneInN chosen(5, "chips");
  for (const std::string& line : kCases) {
    Setting setting(line);
    for (const std::string& name : kMatrices)
      expect_found_everywhere(setting, name, chosen,
                              [](float code) { return code + (code > 0.0F ? -1.0F : 1.0F); });
  }
}

// ---- the max reduction left out

/// The scales of a row as a chip has them that looks at its own blocks only; of channels that it
/// has nothing of, the right ones.
Tensor scales_of_own_blocks(const Setting& setting, const WeightRow& row, int chip) {
  Tensor scales = setting.known->stored.at("layer0." + std::string(row.name));
  std::map<std::size_t, float> most;
  for (std::string_view name : row.scaled) {
    if (name.empty()) continue;
    const Tensor& w = setting.known->weights.at("layer0." + std::string(name));
    judged_elements(setting.layouts.at(std::string(name)), w.shape, setting.c.torus, chip,
                    [&](std::int64_t, std::int64_t global) {
                      const auto i = static_cast<std::size_t>(global);
                      float& channel = most[i % scales.data.size()];
                      channel = std::max(channel, std::fabs(w.data[i]));
                      return false;
                    });
  }
  for (const auto& [channel, absmax] : most)
    scales.data[channel] = static_cast<float>(static_cast<double>(absmax) / 127.0);
  return scales;
}

/// Gives a chip the elements of its block of `whole`; whether that changes any.
bool overwrite(Sharded& placed, int chip, const Tensor& whole) {
  const auto own = placed.f32_of(chip);
  bool changed = false;
  judged_elements(placed.layout(), placed.shape(), placed.torus(), chip,
                  [&](std::int64_t local, std::int64_t global) {
                    float& mine = own[static_cast<std::size_t>(local)];
                    const float wrong = whole.data[static_cast<std::size_t>(global)];
                    changed = changed || mine != wrong;
                    mine = wrong;
                    return false;
                  });
  return changed;
}

/// The codes of a matrix by these scales.
Tensor codes_by(const Tensor& w, const Tensor& scales) {
  Tensor codes(w.shape);
  for (std::size_t i = 0; i < w.data.size(); ++i)
    codes.data[i] = static_cast<float>(
        static_cast<int>(std::rint(static_cast<double>(w.data[i]) /
                                   static_cast<double>(scales.data[i % scales.data.size()]))));
  return codes;
}

TEST(Int8Faults, ALargestOfTheOwnBlockOnlyIsSeenOnEveryChip) {
  std::map<std::string, std::set<int>> seen;
  OneInN chosen(5, "chips");
  for (const std::string& line : kCases) {
    Setting setting(line);
    for (const WeightRow& row : all_weights()) {
      if (row.kind != WeightKind::scale || !row.in_model(setting.c.model)) continue;
      std::vector<std::string_view> made{row.name};
      for (std::string_view name : row.scaled)
        if (!name.empty()) made.push_back(name);
      for (int chip = 0; chip < kChips; ++chip) {
        if (!chosen()) continue;
        const Tensor scales = scales_of_own_blocks(setting, row, chip);
        for (const std::string_view name : made) {
          const std::string wrong = "layer0." + std::string(name);
          bool changed = false;
          FaultHooks faults;
          faults.weight = [&](const std::string& id, Sharded& placed) {
            if (id != wrong) return;
            const bool is_scale = name == row.name;
            if (overwrite(placed, chip,
                          is_scale ? scales : codes_by(setting.known->weights.at(id), scales)))
              changed = true;
          };
          // Where a chip's own are the largest of all, nothing is wrong.
          const Judgement j = setting.judge(faults);
          EXPECT_EQ(j.verdict, changed ? Verdict::different : Verdict::equal) << wrong << line;
          if (!changed) continue;
          expect_input(setting, j, wrong, chip);
          seen[std::string(name)].insert(chip);
        }
      }
    }
  }
  const auto seen_on_all = [](const std::set<int>& chips) {
    return kSanitized ? !chips.empty() : std::ssize(chips) == kChips;
  };
  for (const std::string& name : kMatrices) EXPECT_TRUE(seen_on_all(seen[name])) << name;
  for (const WeightRow& row : all_weights())
    if (row.kind == WeightKind::scale) {
      EXPECT_TRUE(seen_on_all(seen[std::string(row.name)])) << row.name;
    }
}

}  // namespace
}  // namespace shardproof
