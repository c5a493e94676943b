// Which layouts the formulas and the calibrated estimate choose for the paper's measured passes.
#include <fmt/format.h>

#include <limits>

#include "engine/cost/paper/calibration.h"
#include "engine/cost/paper/detail/comparison_rows.h"
#include "engine/cost/work/work.h"

namespace shardproof::cost {
namespace {

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

/// Returns the layout that moves least of those that the batch allows; ties go to the measured one.
FfnLayout least_volume(const MeasuredPass& measured) {
  FfnLayout least = measured.ffn;
  for (const FfnLayout layout : kFfnLayouts)
    if (measured.B % batch_blocks(layout, Torus::parse(measured.torus)) == 0 &&
        volume_bytes(measured, layout) < volume_bytes(measured, least))
      least = layout;
  return least;
}

/// Layouts of a pass and their estimated seconds.
struct Timed {
  FfnLayout ffn = FfnLayout::ws2d;
  AttentionLayout attention = AttentionLayout::heads;
  double seconds = std::numeric_limits<double>::infinity();

  std::string to_string() const { return strategy_of(ffn, attention).to_string(); }
};

/// Returns the layouts with their estimated seconds, infinite if the batch is too small for them.
Timed timed(const MeasuredPass& measured, FfnLayout ffn, AttentionLayout attention,
            const Efficiency& efficiency) {
  const Strategy strategy = strategy_of(ffn, attention);
  if (measured.B < smallest_batch(strategy, Torus::parse(measured.torus))) return {ffn, attention};
  return {ffn, attention,
          estimate(paper_bounds(parse_model(measured.run_as), Torus::parse(measured.torus),
                                strategy, pass_of(measured), measured.weights),
                   efficiency)};
}

Timed fastest_layouts(const MeasuredPass& measured, const Efficiency& efficiency) {
  Timed fastest;
  for (const FfnLayout ffn : kFfnLayouts)
    for (const AttentionLayout attention : {AttentionLayout::heads, AttentionLayout::batch}) {
      // With all weights gathered, rows are sharded over all chips, in attention as well.
      if (ffn == FfnLayout::wg_xyz && attention == AttentionLayout::heads) continue;
      const Timed one = timed(measured, ffn, attention, efficiency);
      if (one.seconds < fastest.seconds) fastest = one;
    }
  return fastest;
}

/// Returns why the estimate may choose other layouts than the paper.
std::string why_other(const MeasuredPass& measured, const Timed& fastest,
                      const Efficiency& efficiency) {
  const std::string seconds =
      fmt::format("estimated {:.4g} s a pass against {:.4g} s; ", fastest.seconds,
                  timed(measured, measured.ffn, measured.attention, efficiency).seconds);
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

/// Returns the elements that one chip sends in a layer of the whole model.
double layer_elements(const MeasuredPass& measured, std::string_view strategy) {
  const Work work =
      work_of(parse_model(measured.run_as), released_numerics(measured.weights),
              Torus::parse(measured.torus), Strategy::parse(strategy), pass_of(measured));
  double elements = 0.0;
  for (const Traffic& traffic : work.layer.traffic) elements += traffic.elements;
  return elements;
}

}  // namespace

ComparedSection compared_volumes(const Efficiency&) {
  ComparedSection section;
  section.title = "Tables 2 and 3: the FFN's layout, by the least volume";
  for (const MeasuredPass& pass : tables_2_and_3()) {
    const FfnLayout least = least_volume(pass);
    const bool fewer = pass.phase == Phase::decode && least == FfnLayout::ws1d;
    section.rows.push_back(choice_row(
        column_name(pass), std::string(to_string(pass.ffn)), std::string(to_string(least)),
        fewer ? "by the paper's own formulas 1D moves less than 2D on fewer than 16 "
                "chips; the paper decodes in 2D everywhere"
              : ""));
    if (pass.ffn == FfnLayout::ws2d &&
        volume_bytes(pass, FfnLayout::ws1d) == volume_bytes(pass, FfnLayout::ws2d))
      section.notes.push_back(column_name(pass) + ": 1D and 2D move as much on these 16 chips.");
  }
  return section;
}

ComparedSection compared_layouts(const Efficiency& efficiency) {
  ComparedSection section;
  section.title = "Tables 2 and 3: layouts of FFN and attention, by the least estimate";
  for (const MeasuredPass& pass : tables_2_and_3()) {
    const Timed fastest = fastest_layouts(pass, efficiency);
    section.rows.push_back(choice_row(column_name(pass),
                                      Timed{pass.ffn, pass.attention, 0.0}.to_string(),
                                      fastest.to_string(), why_other(pass, fastest, efficiency)));
  }
  const MeasuredPass& prefill = tables_2_and_3()[2];
  constexpr double kElements = 1e9;
  const auto formula = [&](FfnLayout layout) {
    return volume_bytes(prefill, layout) / bytes_of_type(prefill.weights) / kElements;
  };
  section.notes.push_back(fmt::format(
      "At {:.0f} tokens a chip sends {:.2f}e9 elements a layer with wg-xy and {:.2f}e9 with "
      "wg-xyz; by the formulas, of the FFN alone, {:.2f}e9 and {:.2f}e9.",
      prefill.tokens(), layer_elements(prefill, "wg-xy:natural") / kElements,
      layer_elements(prefill, "wg-xyz:batch") / kElements, formula(FfnLayout::wg_xy),
      formula(FfnLayout::wg_xyz)));
  return section;
}

}  // namespace shardproof::cost
