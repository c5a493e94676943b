// Sections that compare the calibrated estimate with the paper's times, layouts and orders.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "engine/cost/chip/chip.h"
#include "engine/cost/formulas/embeddings.h"
#include "engine/cost/paper/calibration.h"
#include "engine/cost/paper/detail/comparison_rows.h"
#include "engine/cost/work/work.h"

namespace shardproof::cost {
namespace {

constexpr double kMilli = 1e3, kPercent = 100.0;
constexpr std::string_view kPadded = "palm-540b,H=64";

/// Seconds of a pass of PaLM 540B in bf16, on the released code's torus.
double seconds_of(const std::string& model, int chips, std::string_view strategy, const Pass& pass,
                  const Efficiency& efficiency) {
  return estimate(paper_bounds(parse_model(model), released_torus(chips), Strategy::parse(strategy),
                               pass, WeightType::bf16),
                  efficiency);
}

/// The two consecutive sizes between which a property begins to hold.
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

ComparedSection compared_times(const Efficiency& efficiency) {
  ComparedSection section;
  section.title = "Times in s: the estimate on the points it is fitted on, and on the headlines";
  const Calibration& calibration = table_calibration();
  for (std::size_t i = 0; i < calibration.points.size(); ++i)
    section.rows.push_back(estimate_row(column_name(tables_2_and_3()[i]),
                                        tables_2_and_3()[i].seconds,
                                        calibration.points[i].estimated(efficiency)));
  const Pass step = pass_of(tables_2_and_3()[1]);
  const ModelConfig model = parse_model(kPadded);
  const Torus torus = released_torus(64);
  const Strategy batch = Strategy::parse("ws2d:batch"), heads = Strategy::parse("ws2d:heads");
  const auto ms = [&](WeightType weights) {
    return kMilli * estimate(paper_bounds(model, torus, batch, step, weights), efficiency);
  };
  section.rows.push_back(estimate_row("540B step, B=64, int8, in ms", headline("int8 step").number,
                                      ms(WeightType::int8)));
  section.rows.push_back(estimate_row("540B step, B=64, bf16, in ms", headline("bf16 step").number,
                                      ms(WeightType::bf16)));
  // The conversation's 64 new tokens are prefilled at batch 1, and 64 tokens are generated.
  const double in =
      estimate(paper_bounds(model, torus, heads, {Phase::prefill, 1, 64, 1920}, WeightType::int8),
               efficiency);
  section.rows.push_back(estimate_row("540B, 64 in and 64 out", headline("chat").number,
                                      in + 64 * ms(WeightType::int8) / kMilli));
  section.notes.push_back(
      fmt::format("Near is within {:.1f} %: the worst of the eight points when it is left out of "
                  "the fit.",
                  kPercent * calibration.worst_left_out()));
  section.notes.push_back(embeddings_note(WeightType::int8) + ".");
  return section;
}

ComparedSection compared_figure_6(const Efficiency& efficiency) {
  ComparedSection section;
  section.title = "Figure 6: ms a decode step, PaLM 540B, batch 512, 1D and 2D";
  const Pass step = decode_step(512, kMeasuredContext);
  std::vector<std::pair<double, double>> estimates;
  for (const StationaryRow& row : figure_6()) {
    // Heads are padded to the chips, and the vocabulary to a multiple of them.
    const std::int64_t V = parse_model("palm-540b").V, blocks = (V + row.chips - 1) / row.chips;
    const std::string model =
        fmt::format("palm-540b,H={},V={}", std::max(64, row.chips), blocks * row.chips);
    const double ws2d = kMilli * seconds_of(model, row.chips, "ws2d:batch", step, efficiency);
    const double ws1d = kMilli * seconds_of(model, row.chips, "ws1d:batch", step, efficiency);
    section.rows.push_back(estimate_row(fmt::format("{} chips, 2D", row.chips), row.ws2d, ws2d));
    section.rows.push_back(estimate_row(fmt::format("{} chips, 1D", row.chips), row.ws1d, ws1d,
                                        "1D sends as much on 128 and 256 chips, where the estimate "
                                        "is near; what differs on 64 is not known"));
    section.rows.push_back(choice_row(fmt::format("{} chips, faster", row.chips),
                                      lesser({"2D", row.ws2d.value()}, {"1D", row.ws1d.value()}),
                                      lesser({"2D", ws2d}, {"1D", ws1d})));
    estimates.emplace_back(ws2d, ws1d);
  }
  const StationaryRow &first = figure_6().front(), &last = figure_6().back();
  section.rows.push_back(
      choice_row("faster by 256 for 64 chips",
                 lesser({"2D", last.ws2d.value() / first.ws2d.value()},
                        {"1D", last.ws1d.value() / first.ws1d.value()}),
                 lesser({"2D", estimates.back().first / estimates.front().first},
                        {"1D", estimates.back().second / estimates.front().second})));
  return section;
}

ComparedSection compared_figure_7(const Efficiency& efficiency) {
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
                            seconds_of(std::string(kPadded), 64, strategy, pass, efficiency));
    };
    const double ws2d = percent("ws2d:heads"), wg = percent("wg-xyz:batch");
    const std::int64_t tokens = row.B * kMeasuredContext;
    section.rows.push_back(estimate_row(fmt::format("{} tokens, ws2d", tokens), row.ws2d, ws2d));
    section.rows.push_back(estimate_row(fmt::format("{} tokens, wg-xyz", tokens), row.wg_xyz, wg));
    section.rows.push_back(
        choice_row(fmt::format("{} tokens, lower", tokens),
                   lesser({"ws2d", row.ws2d.value()}, {"wg-xyz", row.wg_xyz.value()}),
                   lesser({"ws2d", ws2d}, {"wg-xyz", wg})));
    published.add(tokens, row.wg_xyz.value() > row.ws2d.value());
    estimated.add(tokens, wg > ws2d);
    by_volume.add(tokens, static_cast<double>(tokens) > crossing);
  }
  section.rows.push_back(
      choice_row("wg-xyz overtakes: estimate", published.to_string(), estimated.to_string()));
  section.rows.push_back(
      choice_row("wg-xyz overtakes: volume", published.to_string(), by_volume.to_string()));
  section.notes.push_back(
      fmt::format("By volume it overtakes at EF/(E/X + F/YZ) = {:.0f} tokens.", crossing));
  return section;
}

ComparedSection compared_figure_8(const Efficiency& efficiency) {
  ComparedSection section;
  section.title = "Figure 8: ms of a step of 8 layers, 64 chips, batch 256, by context";
  // Only the layers: the figure does not include the model's ends.
  const auto layers_ms = [&](const char* model, const char* strategy, const Pass& step) {
    const Bounds bounds = paper_bounds(parse_model(model), released_torus(64),
                                       Strategy::parse(strategy), step, WeightType::bf16);
    return kMilli * estimate(Bounds{bounds.layer, {}, bounds.layers}, efficiency);
  };
  for (const AttentionRow& row : figure_8()) {
    const Pass step = decode_step(256, row.context);
    const double batch = layers_ms("palm-540b,H=64,layers=8", "ws2d:batch", step);
    const double heads = layers_ms("palm-540b,H=64,layers=8", "ws2d:heads", step);
    const double multihead = layers_ms("palm-540b,H=64,K=64,Q=128,layers=8", "ws2d:heads", step);
    const auto what = [&](std::string_view of) { return fmt::format("{}, {}", row.context, of); };
    section.rows.push_back(estimate_row(what("batch"), row.batch, batch));
    section.rows.push_back(
        estimate_row(what("heads"), row.heads, heads,
                     "the time a layer takes beside its work is too long for this run, of a short "
                     "context; what differs from Tables 2 and 3 is not known"));
    section.rows.push_back(
        estimate_row(what("multihead"), row.multihead, multihead,
                     "the measured run reads the caches of 64 heads far below the bandwidth of the "
                     "memory; the model reads all caches at that bandwidth"));
    section.rows.push_back(choice_row(
        what("batch or heads"), lesser({"batch", row.batch.value()}, {"heads", row.heads.value()}),
        lesser({"batch", batch}, {"heads", heads}),
        "measured within 8 % of each other, which the estimate cannot tell apart"));
    section.rows.push_back(
        choice_row(what("batch or multihead"),
                   lesser({"batch", row.batch.value()}, {"multihead", row.multihead.value()}),
                   lesser({"batch", batch}, {"multihead", multihead}),
                   "measured within 2 % of each other, which the estimate cannot tell apart"));
    section.rows.push_back(choice_row(
        what("heads or multihead"),
        lesser({"heads", row.heads.value()}, {"multihead", row.multihead.value()}),
        lesser({"heads", heads}, {"multihead", multihead}),
        "a chip holds half as many bytes of multihead's caches; the measured run reads them "
        "far below the bandwidth of the memory, which the model does not know"));
  }
  return section;
}

ComparedSection compared_serial(const Efficiency& efficiency) {
  ComparedSection section;
  section.title = "Section 4.3: serial blocks, PaLM 540B, 64 chips, batch 512";
  const Pass step = decode_step(512, kMeasuredContext);
  const Pass prefill{Phase::prefill, 512, kMeasuredContext, 0};
  const std::string parallel(kPadded), serial = fmt::format("{},block=serial", kPadded);
  const auto more = [&](const char* strategy, const Pass& pass) {
    return kPercent * (seconds_of(serial, 64, strategy, pass, efficiency) /
                           seconds_of(parallel, 64, strategy, pass, efficiency) -
                       1.0);
  };
  const double decode = more("ws2d:batch", step), wg = more("wg-xyz:batch", prefill);
  section.rows.push_back(estimate_row("% longer a decode step", headline("serial").number, decode));
  section.rows.push_back(
      choice_row("decode step, faster", "parallel", lesser({"parallel", 0.0}, {"serial", decode})));
  section.rows.push_back(choice_row("adds the lesser share to", "prefill",
                                    lesser({"prefill", wg}, {"decode", decode})));
  return section;
}

}  // namespace shardproof::cost
