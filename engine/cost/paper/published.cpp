#include "engine/cost/paper/published.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "weights/base/error.h"

namespace shardproof::cost {
namespace {

constexpr std::array<ContextRow, 3> kTable1{{
    {"multihead", CacheLayout::multihead, 128, {"1320"}, {"330"}},
    {"over heads", CacheLayout::multiquery_heads, 256, {"660"}, {"165"}},
    {"over batch", CacheLayout::multiquery_batch, 256, {"43000"}, {"10700"}},
}};

constexpr std::string_view k540 = "palm-540b", k540Padded = "palm-540b,H=64", k62 = "palm-62b";
constexpr auto kHeads = AttentionLayout::heads, kBatch = AttentionLayout::batch;
constexpr auto kInt8 = WeightType::int8, kBf16 = WeightType::bf16;

constexpr std::array<MeasuredPass, 8> kTables2And3{{
    {"Table 2",
     "low-latency prefill",
     k540,
     k540Padded,
     540e9,
     Phase::prefill,
     "4x4x4",
     1,
     FfnLayout::ws2d,
     kHeads,
     kInt8,
     {"43"},
     {"0.29"},
     1},
    {"Table 2",
     "low-latency decode",
     k540,
     k540Padded,
     540e9,
     Phase::decode,
     "4x4x4",
     64,
     FfnLayout::ws2d,
     kBatch,
     kInt8,
     {"14"},
     {"1.82"},
     64},
    {"Table 2",
     "high-throughput prefill",
     k540,
     k540Padded,
     540e9,
     Phase::prefill,
     "4x4x4",
     512,
     FfnLayout::wg_xyz,
     kBatch,
     kBf16,
     {"76"},
     {"85.2"},
     1},
    {"Table 2",
     "high-throughput decode",
     k540,
     k540Padded,
     540e9,
     Phase::decode,
     "4x4x4",
     512,
     FfnLayout::ws2d,
     kBatch,
     kBf16,
     {"33"},
     {"6.0"},
     64},
    {"Table 3",
     "low-latency prefill",
     k62,
     k62,
     62e9,
     Phase::prefill,
     "2x4x2",
     1,
     FfnLayout::ws2d,
     kHeads,
     kInt8,
     {"36"},
     {"0.16"},
     1},
    {"Table 3",
     "low-latency decode",
     k62,
     k62,
     62e9,
     Phase::decode,
     "2x4x2",
     32,
     FfnLayout::ws2d,
     kBatch,
     kInt8,
     {"8"},
     {"0.73"},
     64},
    {"Table 3",
     "high-throughput prefill",
     k62,
     k62,
     62e9,
     Phase::prefill,
     "4x2x4",
     512,
     FfnLayout::wg_xyz,
     kBatch,
     kBf16,
     {"73"},
     {"20.2"},
     1},
    {"Table 3",
     "high-throughput decode",
     k62,
     k62,
     62e9,
     Phase::decode,
     "2x2x2",
     512,
     FfnLayout::ws2d,
     kBatch,
     kBf16,
     {"37"},
     {"5.1"},
     64},
}};

constexpr std::array<VolumeRow, 6> kFigure3{{
    {2048, {"0.0671"}, {"0.302"}, {"1.082"}, {"4.295"}, "ws2d"},
    {16384, {"0.5369"}, {"0.5369"}, {"1.141"}, {"4.295"}, "ws2d wg-x"},
    {65536, {"2.147"}, {"1.342"}, {"1.342"}, {"4.295"}, "wg-x wg-xy"},
    {262144, {"8.590"}, {"4.563"}, {"2.147"}, {"4.295"}, "wg-xy"},
    {1048576, {"34.36"}, {"17.45"}, {"5.369"}, {"4.295"}, "wg-xyz"},
    {16777216, {"549.8"}, {"275.1"}, {"69.8"}, {"4.295"}, "wg-xyz"},
}};

constexpr std::array<CrossoverRow, 3> kFigure3Crossovers{{
    {FfnLayout::ws2d, FfnLayout::wg_x, {"16384"}},
    {FfnLayout::wg_x, FfnLayout::wg_xy, {"65536"}},
    {FfnLayout::wg_xy, FfnLayout::wg_xyz, {"786432"}},
}};

// The caption of Figure 6 says 64 chips, but its axis is the number of chips.
constexpr std::array<StationaryRow, 3> kFigure6{{
    {64, {"92.0"}, {"96.0"}},
    {128, {"73.0"}, {"93.9"}},
    {256, {"67.4"}, {"88.9"}},
}};

constexpr std::array<PrefillRow, 4> kFigure7{{
    {64, {"40.2"}, {"28.5"}},
    {128, {"40.1"}, {"54.6"}},
    {256, {"40.1"}, {"74.0"}},
    {512, {"42.5"}, {"77.0"}},
}};

constexpr std::array<AttentionRow, 4> kFigure8{{
    {128, {"3.85"}, {"3.55"}, {"3.78"}},
    {512, {"3.86"}, {"4.39"}, {"5.84"}},
    {2048, {"3.86"}, {"7.72"}, {"16.3"}},
    {8192, {"4.15"}, {"20.4"}, {"55.0"}},
}};

constexpr std::array<ParametersRow, 4> kParameters{{
    {"palm-8b", {"8.63"}, "PaLM Table 1"},
    {"palm-62b", {"62.50"}, "PaLM Table 1"},
    // The printed number counts a vocabulary of 256,000; the released code has 256,128.
    {"palm-540b,V=256000", {"540.35"}, "PaLM Table 1"},
    {"mt-nlg-530b", {"530"}, "Table D.1"},
}};

constexpr std::array<BestXRow, 3> kBestX{{{16, {"2"}}, {64, {"4"}}, {256, {"8"}}}};
constexpr std::array<BestGatheredRow, 3> kBestGathered{
    {{16384, {"4"}}, {262144, {"16"}}, {4194304, {"64"}}}};

constexpr std::array<Headline, 14> kHeadlines{{
    {"int8 step", "ms a token, 540B, 64 chips, int8, batch 64", {"28.5"}, "section 4.4"},
    {"bf16 step", "ms a token, the same in bf16", {"36.9"}, "section 4.4"},
    {"chat", "s for 64 tokens in and 64 out behind 1920", {"1.9"}, "abstract"},
    {"offline", "% MFU of 1984 tokens in and 64 out, batch 512", {"73"}, "section 1"},
    {"large cache", "TB of caches of a 500B multihead model", {"3"}, "section 2.1"},
    {"prefill cheaper", "times that B=512 prefill is cheaper than decode", {"2"}, "section 4.4"},
    {"serial", "% that a step of serial blocks takes longer", {"14"}, "section 4.3"},
    {"padding parameters",
     "billion parameters that padding 48 heads to 64 adds",
     {"18"},
     "section 4"},
    {"padding mfu", "% MFU that the padding costs", {"3"}, "section 4"},
    {"1d chips",
     "chips up to which 1D moves no more than 2D: sqrt(n) > F/E",
     {"16"},
     "section 3.2.2"},
    {"2d of 64",
     "times E that 2D on 64 chips moves of a token: 8E/sqrt(n)",
     {"1"},
     "section 3.2.2"},
    {"gathered scaling",
     "times the volume of gathered weights at 4 times the tokens: sqrt(BL)",
     {"2"},
     "section 3.2.3"},
    {"1d scaling", "times the volume of 1D on 16 times the chips", {"1"}, "section 3.2.1"},
    {"longer than multihead", "times the context of multihead that fits", {"32"}, "abstract"},
}};

struct Mesh {
  int chips;
  std::string_view torus;
};
constexpr std::array<Mesh, 9> kMeshes{{{1, "1x1x1"},
                                       {4, "2x1x2"},
                                       {8, "2x2x2"},
                                       {16, "2x4x2"},
                                       {32, "4x2x4"},
                                       {64, "4x4x4"},
                                       {128, "8x4x4"},
                                       {256, "4x8x8"},
                                       {512, "8x8x8"}}};

}  // namespace

double Printed::value() const {
  double number = 0.0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

double Printed::half_unit() const {
  const auto point = text.find('.');
  const std::size_t digits = point == std::string_view::npos ? 0 : text.size() - point - 1;
  return 0.5 / std::pow(10.0, static_cast<double>(digits));
}

bool Printed::rounds(double number) const {
  // A half may be rounded either way, and need not be exact in binary: the number, the printed
  // value, the half unit and the difference are each off by at most half an epsilon of the number.
  // As much again covers the few products and quotients that produce such a number.
  constexpr double kBinary = 4 * std::numeric_limits<double>::epsilon();
  return std::abs(number - value()) <= half_unit() + kBinary * std::abs(number);
}

double MeasuredPass::tokens() const {
  return static_cast<double>(B) *
         (phase == Phase::prefill ? static_cast<double>(kMeasuredContext) : steps);
}

std::span<const ContextRow> table_1() { return kTable1; }
std::span<const MeasuredPass> tables_2_and_3() { return kTables2And3; }
std::span<const VolumeRow> figure_3() { return kFigure3; }
std::span<const CrossoverRow> figure_3_crossovers() { return kFigure3Crossovers; }
std::span<const StationaryRow> figure_6() { return kFigure6; }
std::span<const PrefillRow> figure_7() { return kFigure7; }
std::span<const AttentionRow> figure_8() { return kFigure8; }
std::span<const ParametersRow> parameter_counts() { return kParameters; }
std::span<const BestXRow> best_x_rows() { return kBestX; }
std::span<const BestGatheredRow> best_gathered_rows() { return kBestGathered; }
std::span<const Headline> headlines() { return kHeadlines; }

const Headline& headline(std::string_view name) {
  for (const Headline& one : kHeadlines)
    if (one.name == name) return one;
  throw std::logic_error(fmt::format("no published number {}", name));
}

Torus released_torus(int chips) {
  std::string legal;
  for (const Mesh& mesh : kMeshes) {
    if (mesh.chips == chips) return Torus::parse(mesh.torus);
    legal += fmt::format("{}{}", legal.empty() ? "" : " ", mesh.chips);
  }
  throw Error("published_c1",
              fmt::format("the released code has no torus of {} chips; legal: {}", chips, legal));
}

}  // namespace shardproof::cost
