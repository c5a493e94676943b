// What the calibrated estimate says of times, layouts and orders that the paper measured.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "engine/cost/calibration.h"
#include "engine/cost/chip.h"
#include "engine/cost/comparison_rows.h"
#include "engine/cost/work.h"

namespace shardproof::cost {
namespace {

constexpr double kMilli = 1e3, kPercent = 100.0;
constexpr std::string_view kPadded = "palm-540b,H=64";

/// Seconds of a pass under a strategy; nothing where the strategy cannot run it.
std::optional<double> estimated(const ModelConfig& model, const Torus& torus,
                                const Strategy& strategy, const Pass& pass, WeightType weights) {
  try {
    return estimate(paper_bounds(model, torus, strategy, pass, weights));
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// The same where it must run.
double seconds_of(const std::string& model, int chips, std::string_view strategy,
                  const Pass& pass) {
  return estimate(paper_bounds(parse_model(model), released_torus(chips), Strategy::parse(strategy),
                               pass, WeightType::bf16));
}

constexpr FfnLayout kFfnLayouts[] = {FfnLayout::ws1d, FfnLayout::ws2d, FfnLayout::wg_x,
                                     FfnLayout::wg_xy, FfnLayout::wg_xyz};

double bytes_of_type(WeightType type) { return type == WeightType::int8 ? 1.0 : 2.0; }

/// Bytes that one chip moves in a layer of the measured pass, by the paper's formulas.
double volume_bytes(const MeasuredPass& measured, FfnLayout layout) {
  const ModelConfig model = parse_model(measured.model);
  return ffn_volume(layout, model.E, model.F, Torus::parse(measured.torus))
      .bytes(pass_of(measured).tokens(), bytes_of_type(measured.weights),
             bytes_of_type(WeightType::bf16));
}

/// The layout that moves least of those that the batch allows; of two that move as much the one
/// that was measured.
FfnLayout least_volume(const MeasuredPass& measured) {
  FfnLayout least = measured.ffn;
  for (const FfnLayout layout : kFfnLayouts)
    if (measured.B % batch_blocks(layout, Torus::parse(measured.torus)) == 0 &&
        volume_bytes(measured, layout) < volume_bytes(measured, least))
      least = layout;
  return least;
}

/// Layouts of a pass with their seconds by the estimate.
struct Timed {
  FfnLayout ffn = FfnLayout::ws2d;
  AttentionLayout attention = AttentionLayout::heads;
  double seconds = std::numeric_limits<double>::infinity();

  std::string to_string() const {
    return fmt::format("{}, {}", cost::to_string(ffn), cost::to_string(attention));
  }
};

Timed timed(const MeasuredPass& measured, FfnLayout ffn, AttentionLayout attention) {
  const std::optional<double> seconds =
      estimated(parse_model(measured.run_as), Torus::parse(measured.torus),
                strategy_of(ffn, attention), pass_of(measured), measured.weights);
  return {ffn, attention, seconds.value_or(std::numeric_limits<double>::infinity())};
}

Timed fastest_layouts(const MeasuredPass& measured) {
  Timed fastest;
  for (const FfnLayout ffn : kFfnLayouts)
    for (const AttentionLayout attention : {AttentionLayout::heads, AttentionLayout::batch}) {
      // With all weights gathered, rows are sharded over all chips, in attention as well.
      if (ffn == FfnLayout::wg_xyz && attention == AttentionLayout::heads) continue;
      const Timed one = timed(measured, ffn, attention);
      if (one.seconds < fastest.seconds) fastest = one;
    }
  return fastest;
}

/// Why the estimate may choose other layouts than the paper.
std::string why_other(const MeasuredPass& measured, const Timed& fastest) {
  const std::string seconds =
      fmt::format("estimated {:.4g} s a pass against {:.4g} s; ", fastest.seconds,
                  timed(measured, measured.ffn, measured.attention).seconds);
  if (measured.phase == Phase::prefill && fastest.ffn == FfnLayout::wg_xy)
    return seconds +
           "with a gated FFN and projections XY moves less than XYZ; the paper measured XYZ alone";
  if (measured.phase == Phase::decode && fastest.ffn == FfnLayout::ws1d)
    return seconds +
           "on fewer than 16 chips 1D moves less, as in the paper's own formulas; the paper "
           "decodes "
           "in 2D everywhere";
  return "";
}

/// Elements that one chip sends in a layer of the whole model.
double layer_elements(const MeasuredPass& measured, std::string_view strategy) {
  const Work work =
      work_of(parse_model(measured.run_as), released_numerics(measured.weights),
              Torus::parse(measured.torus), Strategy::parse(strategy), pass_of(measured));
  double elements = 0.0;
  for (const Traffic& traffic : work.layer.traffic) elements += traffic.elements;
  return elements;
}

/// Between which two sizes, one after the other, something begins to hold.
struct Change {
  std::int64_t before = 0, after = 0;

  void add(std::int64_t size, bool holds) {
    if (after != 0) return;
    (holds ? after : before) = size;
  }
  std::string to_string() const { return fmt::format("{}-{}", before, after); }
};

Pass decode_step(std::int64_t B, std::int64_t context) {
  return {Phase::decode, B, 1, context - 1};
}

}  // namespace

ComparedSection compared_times() {
  ComparedSection section;
  section.title = "Times in s: the estimate on the points it is fitted on, and on the headlines";
  const Calibration& calibration = table_calibration();
  for (std::size_t i = 0; i < calibration.points.size(); ++i)
    section.rows.push_back(estimate_row(calibration.points[i].name, tables_2_and_3()[i].seconds,
                                        calibration.points[i].estimated(fitted_efficiency())));
  const Pass step = pass_of(tables_2_and_3()[1]);
  const ModelConfig model = parse_model(kPadded);
  const Torus torus = released_torus(64);
  const Strategy batch = Strategy::parse("ws2d:batch"), heads = Strategy::parse("ws2d:heads");
  const auto ms = [&](WeightType weights) {
    return kMilli * estimate(paper_bounds(model, torus, batch, step, weights));
  };
  section.rows.push_back(estimate_row("a step at batch 64 with int8 weights, ms",
                                      headline("int8 step").number, ms(WeightType::int8)));
  section.rows.push_back(estimate_row("the same with bf16 weights, ms",
                                      headline("bf16 step").number, ms(WeightType::bf16)));
  // The conversation's 64 new tokens go in at batch 1, and 64 tokens come out.
  const double in =
      estimate(paper_bounds(model, torus, heads, {Phase::prefill, 1, 64, 1920}, WeightType::int8));
  section.rows.push_back(estimate_row("64 tokens in and 64 out behind 1920, s",
                                      headline("chat").number,
                                      in + 64 * ms(WeightType::int8) / kMilli));
  section.notes.push_back(
      fmt::format("near: no farther off than {:.1f} %, the worst of the eight points when it is "
                  "left out of the "
                  "fit.",
                  kPercent * calibration.worst_left_out()));
  return section;
}

ComparedSection compared_layouts() {
  ComparedSection section;
  section.title = "Tables 2 and 3: which layouts the model chooses";
  for (const MeasuredPass& pass : tables_2_and_3()) {
    const FfnLayout least = least_volume(pass);
    const std::string what = fmt::format("{} {}", pass.model, pass.column);
    section.rows.push_back(choice_row(
        what + ", volume", std::string(to_string(pass.ffn)), std::string(to_string(least)),
        pass.phase == Phase::decode && least == FfnLayout::ws1d
            ? "by the paper's own formulas 1D moves less than 2D on fewer than 16 chips; the paper "
              "decodes in 2D everywhere"
            : ""));
    if (pass.ffn == FfnLayout::ws2d &&
        volume_bytes(pass, FfnLayout::ws1d) == volume_bytes(pass, FfnLayout::ws2d))
      section.notes.push_back(
          fmt::format("{}: 1D and 2D move as much by the formulas, on 16 chips.", what));
  }
  for (const MeasuredPass& pass : tables_2_and_3()) {
    const Timed fastest = fastest_layouts(pass);
    section.rows.push_back(
        choice_row(fmt::format("{} {}, estimate", pass.model, pass.column),
                   fmt::format("{}, {}", to_string(pass.ffn), to_string(pass.attention)),
                   fastest.to_string(), why_other(pass, fastest)));
  }
  const MeasuredPass& prefill = tables_2_and_3()[2];
  section.notes.push_back(
      fmt::format("Elements a chip sends in a layer of the whole model at {:.0f} tokens: wg-xy "
                  "{:.2f}e9, wg-xyz "
                  "{:.2f}e9; the formulas, of the FFN alone, have {:.2f}e9 and {:.2f}e9.",
                  prefill.tokens(), layer_elements(prefill, "wg-xy:natural") / 1e9,
                  layer_elements(prefill, "wg-xyz:batch") / 1e9,
                  volume_bytes(prefill, FfnLayout::wg_xy) / bytes_of_type(prefill.weights) / 1e9,
                  volume_bytes(prefill, FfnLayout::wg_xyz) / bytes_of_type(prefill.weights) / 1e9));
  return section;
}

ComparedSection compared_figure_6() {
  ComparedSection section;
  section.title = "Figure 6: ms a decode step, PaLM 540B, batch 512, 1D and 2D";
  const Pass step = decode_step(512, kMeasuredContext);
  std::vector<std::pair<double, double>> estimates;
  for (const StationaryRow& row : figure_6()) {
    // Heads are padded to the chips, and the vocabulary to a multiple of them.
    const std::int64_t V = parse_model("palm-540b").V, blocks = (V + row.chips - 1) / row.chips;
    const std::string model =
        fmt::format("palm-540b,H={},V={}", std::max(64, row.chips), blocks * row.chips);
    const double ws2d = kMilli * seconds_of(model, row.chips, "ws2d:batch", step);
    const double ws1d = kMilli * seconds_of(model, row.chips, "ws1d:batch", step);
    section.rows.push_back(estimate_row(fmt::format("{} chips, 2D", row.chips), row.ws2d, ws2d));
    section.rows.push_back(estimate_row(fmt::format("{} chips, 1D", row.chips), row.ws1d, ws1d,
                                        "one share of the bandwidth serves all collectives; those "
                                        "of 1D go over all three axes and reach more of it"));
    section.rows.push_back(
        choice_row(fmt::format("{} chips, order", row.chips),
                   ascending({{"2D", row.ws2d.value()}, {"1D", row.ws1d.value()}}),
                   ascending({{"2D", ws2d}, {"1D", ws1d}})));
    estimates.emplace_back(ws2d, ws1d);
  }
  const StationaryRow &first = figure_6().front(), &last = figure_6().back();
  section.rows.push_back(
      choice_row("256 chips in times of 64, order",
                 ascending({{"2D", last.ws2d.value() / first.ws2d.value()},
                            {"1D", last.ws1d.value() / first.ws1d.value()}}),
                 ascending({{"2D", estimates.back().first / estimates.front().first},
                            {"1D", estimates.back().second / estimates.front().second}})));
  return section;
}

ComparedSection compared_figure_7() {
  ComparedSection section;
  section.title = "Figure 7: MFU in % of prefills of 2048 tokens, PaLM 540B, 64 chips";
  const double peak = find_chip("tpu-v4").peak(WeightType::bf16);
  Change published, estimated, by_volume;
  const ModelConfig model = parse_model("palm-540b");
  const auto volume = [&](FfnLayout layout) {
    return ffn_volume(layout, model.E, model.F, released_torus(64));
  };
  const double crossing = crossover(volume(FfnLayout::ws2d), volume(FfnLayout::wg_xyz));
  for (const PrefillRow& row : figure_7()) {
    const Pass pass{Phase::prefill, row.B, kMeasuredContext, 0};
    const auto percent = [&](std::string_view strategy) {
      return kPercent * mfu(540e9, pass.tokens(), 64, peak,
                            seconds_of(std::string(kPadded), 64, strategy, pass));
    };
    const double ws2d = percent("ws2d:heads"), wg = percent("wg-xyz:batch");
    const std::int64_t tokens = row.B * kMeasuredContext;
    section.rows.push_back(estimate_row(fmt::format("{} tokens, ws2d", tokens), row.ws2d, ws2d));
    section.rows.push_back(estimate_row(fmt::format("{} tokens, wg-xyz", tokens), row.wg_xyz, wg));
    section.rows.push_back(
        choice_row(fmt::format("{} tokens, order", tokens),
                   ascending({{"ws2d", row.ws2d.value()}, {"wg-xyz", row.wg_xyz.value()}}),
                   ascending({{"ws2d", ws2d}, {"wg-xyz", wg}})));
    published.add(tokens, row.wg_xyz.value() > row.ws2d.value());
    estimated.add(tokens, wg > ws2d);
    by_volume.add(tokens, static_cast<double>(tokens) > crossing);
  }
  section.rows.push_back(choice_row("tokens between which wg-xyz overtakes: estimate",
                                    published.to_string(), estimated.to_string()));
  section.rows.push_back(
      choice_row("the same by volume", published.to_string(), by_volume.to_string()));
  section.notes.push_back(
      fmt::format("By volume it overtakes at EF/(E/X + F/YZ) = {:.0f} tokens.", crossing));
  return section;
}

ComparedSection compared_figure_8() {
  ComparedSection section;
  section.title = "Figure 8: ms a decode step of 8 layers, 64 chips, batch 256, by context";
  // The layers alone: of the model's ends the figure says nothing.
  const auto layers_ms = [](const char* model, const char* strategy, const Pass& step) {
    const Bounds bounds = paper_bounds(parse_model(model), released_torus(64),
                                       Strategy::parse(strategy), step, WeightType::bf16);
    return kMilli * estimate(Bounds{bounds.layer, {}, bounds.layers});
  };
  for (const AttentionRow& row : figure_8()) {
    const Pass step = decode_step(256, row.context);
    const double batch = layers_ms("palm-540b,H=64,layers=8", "ws2d:batch", step);
    const double heads = layers_ms("palm-540b,H=64,layers=8", "ws2d:heads", step);
    const double multihead = layers_ms("palm-540b,H=64,K=64,Q=128,layers=8", "ws2d:heads", step);
    const auto what = [&](std::string_view of) { return fmt::format("{}, {}", row.context, of); };
    section.rows.push_back(estimate_row(what("multiquery over batch"), row.batch, batch));
    section.rows.push_back(
        estimate_row(what("multiquery over heads"), row.heads, heads,
                     "the time a layer takes beside its work is too long for this run, of a short "
                     "context; what differs from Tables 2 and 3 is not known"));
    section.rows.push_back(
        estimate_row(what("multihead"), row.multihead, multihead,
                     "the measured run reads the caches of 64 heads far below the bandwidth of the "
                     "memory; the model reads all caches at that bandwidth"));
    section.rows.push_back(
        choice_row(what("batch against heads"),
                   ascending({{"batch", row.batch.value()}, {"heads", row.heads.value()}}),
                   ascending({{"batch", batch}, {"heads", heads}}),
                   "measured within 8 % of each other, which the estimate cannot tell apart"));
    section.rows.push_back(
        choice_row(what("batch against multihead"),
                   ascending({{"batch", row.batch.value()}, {"multihead", row.multihead.value()}}),
                   ascending({{"batch", batch}, {"multihead", multihead}}),
                   "measured within 2 % of each other, which the estimate cannot tell apart"));
    section.rows.push_back(
        choice_row(what("heads against multihead"),
                   ascending({{"heads", row.heads.value()}, {"multihead", row.multihead.value()}}),
                   ascending({{"heads", heads}, {"multihead", multihead}}),
                   "multihead reads 64 times the keys over 64 chips, half as wide; only the "
                   "measured run's low "
                   "bandwidth makes it the slower one"));
  }
  return section;
}

ComparedSection compared_serial() {
  ComparedSection section;
  section.title = "Section 4.3: serial blocks, PaLM 540B, 64 chips, batch 512";
  const Pass step = decode_step(512, kMeasuredContext);
  const Pass prefill{Phase::prefill, 512, kMeasuredContext, 0};
  const std::string parallel(kPadded), serial = fmt::format("{},block=serial", kPadded);
  const auto more = [&](const char* strategy, const Pass& pass) {
    return kPercent *
           (seconds_of(serial, 64, strategy, pass) / seconds_of(parallel, 64, strategy, pass) -
            1.0);
  };
  const double decode = more("ws2d:batch", step), wg = more("wg-xyz:batch", prefill);
  section.rows.push_back(
      estimate_row("% that a decode step takes longer", headline("serial").number, decode));
  section.rows.push_back(choice_row("decode step, order", "parallel < serial",
                                    decode > 0 ? "parallel < serial" : "serial < parallel"));
  section.rows.push_back(choice_row("what serial adds, order", "prefill < decode",
                                    ascending({{"prefill", wg}, {"decode", decode}})));
  return section;
}

}  // namespace shardproof::cost
