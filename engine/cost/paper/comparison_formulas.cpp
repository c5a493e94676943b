// Sections that follow from the paper's formulas alone, or from its own printed numbers.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "engine/cost/chip/chip.h"
#include "engine/cost/formulas/paper_formulas.h"
#include "engine/cost/paper/detail/comparison_rows.h"

namespace shardproof::cost {
namespace {

constexpr double kBf16Bytes = 2.0, kGiga = 1e9, kTera = 1e12, kThousand = 1e3, kHundred = 100.0;

const Chip& paper_chip() { return find_chip("tpu-v4"); }
double paper_peak() { return paper_chip().peak(WeightType::bf16); }

double matrices_of(std::string_view model) { return matrix_parameters(parse_model(model)); }

/// Returns the divisors of n: the possible lengths of an axis.
std::vector<int> divisors(int n) {
  std::vector<int> all;
  for (int d = 1; d <= n; ++d)
    if (n % d == 0) all.push_back(d);
  return all;
}

/// Gigabytes of Figure 3.
double figure_3_gigabytes(FfnLayout layout, double tokens) {
  const FfnVolume volume = ffn_volume(layout, 16384, 65536, Torus(4, 4, 4));
  return volume.bytes(tokens, kBf16Bytes, kBf16Bytes) / kGiga;
}

constexpr FfnLayout kDrawn[] = {FfnLayout::ws2d, FfnLayout::wg_x, FfnLayout::wg_xy,
                                FfnLayout::wg_xyz};

/// Returns the layouts that move least: "ws2d wg-x" if both do.
std::string least_of_figure_3(double tokens) {
  double least = std::numeric_limits<double>::infinity();
  for (const FfnLayout layout : kDrawn) least = std::min(least, figure_3_gigabytes(layout, tokens));
  std::string names;
  for (const FfnLayout layout : kDrawn)
    if (figure_3_gigabytes(layout, tokens) == least)
      names += fmt::format("{}{}", names.empty() ? "" : " ", to_string(layout));
  return names;
}

/// Compares one quantity derived from two printed numbers: some number that rounds to the one must
/// agree with some number that rounds to the other.
template <class OfLeft, class OfRight>
ComparedRow between_row(std::string what, Printed left, const OfLeft& of_left, Printed right,
                        const OfRight& of_right) {
  const auto range = [](Printed printed, const auto& of) {
    return std::minmax(
        {of(printed.value() - printed.half_unit()), of(printed.value() + printed.half_unit())});
  };
  const auto [left_least, left_most] = range(left, of_left);
  const auto [right_least, right_most] = range(right, of_right);
  ComparedRow row;
  row.what = std::move(what);
  row.published = fmt::format("{:.3f}", of_left(left.value()));
  row.ours = fmt::format("{:.3f}", of_right(right.value()));
  row.deviation = of_right(right.value()) / of_left(left.value()) - 1.0;
  const bool overlap = left_least <= right_most && right_least <= left_most;
  row.verdict = overlap ? Verdict::rounding : Verdict::failed;
  return row;
}

/// Returns the X among the divisors of n at which 2D moves least.
int searched_x(int n, double E, double F) {
  int best = 1;
  const auto moved = [&](int x) { return E / x + F * x / n; };
  for (const int x : divisors(n))
    if (moved(x) < moved(best)) best = x;
  return best;
}

/// Returns the most chips on which 2D at its best still moves no less than 1D.
int chips_of_1d(double E, double F) {
  int n = 1;
  while (least_ws2d(n + 1, E, F) >= 2.0 * E) ++n;
  return n;
}

/// Returns the N among the divisors of n over which gathering weights moves least.
int searched_gathering(int n, double E, double F, double tokens) {
  int best = 1;
  const auto moved = [&](int N) { return 2.0 * E * F * N / n + 2.0 * tokens * E / N; };
  for (const int N : divisors(n))
    if (moved(N) < moved(best)) best = N;
  return best;
}

}  // namespace

ComparedSection compared_table_1(const Efficiency&) {
  ComparedSection section;
  section.title = "Table 1: longest context, 64 chips, 30 % of their memory for caches";
  const ModelConfig model = parse_model("palm-540b");
  constexpr double kShare = 0.3;
  constexpr int kChips = 64;
  const double bytes = kShare * paper_chip().hbm;
  double multihead = 0.0, optimised = 0.0;
  for (const ContextRow& row : table_1()) {
    const CacheSizes sizes{model.layers, model.H, row.Q, kBf16Bytes};
    const double at_128 = longest_context(sizes, row.layout, kChips, 128, bytes);
    section.rows.push_back(
        percent_row(fmt::format("{}, batch 128", row.variant), row.batch_128, at_128));
    section.rows.push_back(percent_row(fmt::format("{}, batch 512", row.variant), row.batch_512,
                                       longest_context(sizes, row.layout, kChips, 512, bytes)));
    (row.layout == CacheLayout::multihead ? multihead : optimised) = at_128;
  }
  section.rows.push_back(rounded_row(
      "over batch / multihead", headline("longer than multihead").number, optimised / multihead));
  // The 500B+ multihead model of section 2.1, with d_head 128.
  const CacheSizes large{model.layers, model.H, 128, kBf16Bytes};
  section.rows.push_back(
      rounded_row("500B multihead caches, in TB", headline("large cache").number,
                  cache_bytes(large, CacheLayout::multihead, 1, 512, kMeasuredContext) / kTera));
  return section;
}

ComparedSection compared_figure_3(const Efficiency&) {
  ComparedSection section;
  section.title = "Figure 3: GB a layer and chip moves, 4x4x4, E=16384, F=65536, bf16";
  for (const VolumeRow& row : figure_3()) {
    const auto tokens = static_cast<double>(row.tokens);
    const Printed printed[] = {row.ws, row.wg_x, row.wg_xy, row.wg_xyz};
    for (std::size_t i = 0; i < std::size(kDrawn); ++i)
      section.rows.push_back(
          rounded_row(fmt::format("{} tokens, {}", row.tokens, to_string(kDrawn[i])), printed[i],
                      figure_3_gigabytes(kDrawn[i], tokens)));
    section.rows.push_back(choice_row(fmt::format("{} tokens, least", row.tokens),
                                      std::string(row.least), least_of_figure_3(tokens)));
  }
  const auto of = [](FfnLayout layout) { return ffn_volume(layout, 16384, 65536, Torus(4, 4, 4)); };
  for (const CrossoverRow& row : figure_3_crossovers())
    section.rows.push_back(
        exact_row(fmt::format("{} to {}, tokens", to_string(row.below), to_string(row.above)),
                  row.tokens, crossover(of(row.below), of(row.above))));
  return section;
}

ComparedSection compared_optima(const Efficiency&) {
  ComparedSection section;
  section.title = "Sections 3.2 and A.2: optima at F = 4E, of n = 64 chips unless said";
  constexpr double E = 16384, F = 4 * E;
  // 0.5·sqrt(n), against the least of all X that divide n.
  for (const BestXRow& one : best_x_rows()) {
    section.rows.push_back(exact_row(fmt::format("X of {} chips: 0.5 sqrt(n)", one.chips), one.X,
                                     best_x(one.chips, E, F)));
    section.rows.push_back(exact_row(fmt::format("X of {} chips: the least", one.chips), one.X,
                                     searched_x(one.chips, E, F)));
  }
  // The n at which 4·sqrt(EF/n) is 2E.
  section.rows.push_back(
      exact_row("1D moves no more up to chips", headline("1d chips").number, chips_of_1d(E, F)));
  section.rows.push_back(exact_row("2D of 64 chips, 8E/sqrt(n): E", headline("2d of 64").number,
                                   least_ws2d(64, E, F) / E));
  for (const BestGatheredRow& one : best_gathered_rows()) {
    section.rows.push_back(exact_row(fmt::format("N of {:.0f}: sqrt(BL n/F)", one.tokens), one.N,
                                     best_gathered(64, F, one.tokens)));
    section.rows.push_back(exact_row(fmt::format("N of {:.0f}: the least", one.tokens), one.N,
                                     searched_gathering(64, E, F, one.tokens)));
  }
  section.rows.push_back(
      exact_row("gathered: 4BL over BL", headline("gathered scaling").number,
                least_gathered(64, E, F, 262144) / least_gathered(64, E, F, 65536)));
  const auto ws1d = [&](const Torus& torus) {
    return ffn_volume(FfnLayout::ws1d, 16384, 65536, torus).per_token;
  };
  section.rows.push_back(exact_row("1D: 256 chips over 16", headline("1d scaling").number,
                                   ws1d(Torus(4, 8, 8)) / ws1d(Torus(2, 4, 2))));
  return section;
}

ComparedSection compared_parameters(const Efficiency&) {
  ComparedSection section;
  section.title = "Parameters, in billions (PaLM Table 1; Table D.1)";
  for (const ParametersRow& row : parameter_counts())
    section.rows.push_back(
        rounded_row(std::string(row.preset), row.billions, matrices_of(row.preset) / kGiga));
  const double plain = matrices_of("palm-540b");
  const double added = matrices_of("palm-540b,H=64") - plain;
  section.rows.push_back(
      rounded_row("added by 48 heads as 64", headline("padding parameters").number, added / kGiga));
  section.rows.push_back(rounded_row("% of MFU that they cost", headline("padding mfu").number,
                                     100.0 * added / plain));
  section.notes.push_back(fmt::format(
      "540.35 counts a vocabulary of 256,000; with the 256,128 of the released code it is {:.2f}.",
      plain / kGiga));
  return section;
}

ComparedSection compared_mfu(const Efficiency&) {
  ComparedSection section;
  section.title = "Tables 2 and 3: MFU in %, by the printed times";
  for (const MeasuredPass& pass : tables_2_and_3()) {
    const int chips = Torus::parse(pass.torus).chips();
    const auto percent = [&](double seconds) {
      return kHundred * mfu(pass.parameters, pass.tokens(), chips, paper_peak(), seconds);
    };
    const double seconds = pass.seconds.value(), half = pass.seconds.half_unit();
    section.rows.push_back(rounded_row(column_name(pass), pass.mfu, percent(seconds),
                                       percent(seconds + half), percent(seconds - half)));
  }
  // 1984 tokens in and 64 out: the prefill takes its share of the time of 2048.
  const MeasuredPass &prefill = tables_2_and_3()[2], &decode = tables_2_and_3()[3];
  const double in = 1984, out = 64;
  const double seconds = prefill.seconds.value() * in / kMeasuredContext + decode.seconds.value();
  section.rows.push_back(
      rounded_row("540B, 1984 in and 64 out", headline("offline").number,
                  kHundred * mfu(prefill.parameters, static_cast<double>(prefill.B) * (in + out),
                                 Torus::parse(prefill.torus).chips(), paper_peak(), seconds)));
  return section;
}

ComparedSection compared_cost(const Efficiency&) {
  ComparedSection section;
  section.title = "Tables 2 and 3: chip-ms a token, by the printed MFU and the printed times";
  const auto of_time = [](const MeasuredPass& pass, double seconds) {
    return kThousand * chip_seconds(pass.tokens(), Torus::parse(pass.torus).chips(), seconds);
  };
  for (const MeasuredPass& pass : tables_2_and_3())
    section.rows.push_back(between_row(
        column_name(pass), pass.mfu,
        [&](double percent) {
          return kThousand * chip_seconds_of_mfu(pass.parameters, paper_peak(), percent / kHundred);
        },
        pass.seconds, [&](double seconds) { return of_time(pass, seconds); }));
  const MeasuredPass &prefill = tables_2_and_3()[2], &decode = tables_2_and_3()[3];
  section.rows.push_back(rounded_row(
      "540B: decode over prefill", headline("prefill cheaper").number,
      of_time(decode, decode.seconds.value()) / of_time(prefill, prefill.seconds.value())));
  const MeasuredPass& steps = tables_2_and_3()[1];
  section.rows.push_back(
      rounded_row("540B, 64 steps of 28.5 ms, s", steps.seconds,
                  steps.steps * headline("int8 step").number.value() / kThousand));
  return section;
}

}  // namespace shardproof::cost
