// The faults that are tried, and where each applies.
#include <cmath>

#include "golden/diagnosis/detail/contraction.h"
#include "golden/diagnosis/detail/conventions.h"
#include "golden/diagnosis/detail/edits.h"
#include "golden/diagnosis/detail/trial.h"
#include "weights/model/softmax.h"

namespace shardproof::diagnosis {
namespace {

using Q = const Question&;

constexpr const char *kConvention = "convention", *kMissing = "scale missing",
                     *kDoubled = "scale doubled", *kAddend = "addend not added once",
                     *kSwapped = "gate and up swapped", *kPosition = "position off",
                     *kRounding = "rounding", *kFactor = "another factor";

// Where: what the value's step is.
bool any(Q) { return true; }
bool stored(Q q) { return !q.raw(); }
bool before_bias(Q q) { return q.raw(); }
bool shown(Q q) { return q.replay().dumped(q.id()); }
bool sums(Q q) { return contraction_of(q) != nullptr; }
bool looks_up(Q q) { return q.step().calls(ModelOp::gather); }
bool multiplies(Q q) { return sums(q) && !looks_up(q); }
bool sums_stored(Q q) { return stored(q) && sums(q); }
bool combines(Q q) { return !multiplies(q); }
bool adds(Q q) {
  return stored(q) && !sums(q) && q.operands().size() > 1 && q.step().calls(ModelOp::add);
}
bool scaled_by_weight(Q q) { return stored(q) && sums(q) && !contraction_of(q)->scale.empty(); }
bool with_bias(Q q) {
  const auto c = contraction_of(q);
  return stored(q) && c != nullptr && c->scale.empty() && !c->scales.empty() && !c->biases.empty();
}
bool norm(Q q) { return stored(q) && !sums(q) && !q.step().weights(WeightKind::gain).empty(); }
bool folded(Q q) { return norm(q) && gains_folded(q); }
bool centered(Q q) { return norm(q) && q.step().calls(ModelOp::sub); }
bool not_centered(Q q) { return norm(q) && !q.operands().empty() && !q.step().calls(ModelOp::sub); }
bool norm_of_operand(Q q) { return norm(q) && !q.operands().empty(); }
bool turns(Q q) {
  return q.step().calls(ModelOp::turn) && !q.step().weights(WeightKind::rope_table).empty();
}
/// Otherwise positions are read off the value.
bool turns_unseen(Q q) { return turns(q) && !q.replay().dumped(q.id()); }
bool masked(Q q) { return q.step().masked() && !q.step().reads_positions(); }
bool shows_scores(Q q) {
  return stored(q) && q.step().masked() && !exponentiates(q) &&
         q.step().lines().back().letters.find('M') != std::string::npos;
}
bool scores(Q q) { return shows_scores(q) && !of_base2(q); }
bool scores_of_base2(Q q) { return shows_scores(q) && of_base2(q) && q.step().graph().of_keys(); }
bool exponentials(Q q) { return exponentiates(q) && !of_base2(q); }
bool missing_exponentials(Q q) { return exponentiates(q) && !q.replay().dumped(q.id()); }
bool exponentials_of_base2(Q q) { return exponentiates(q) && of_base2(q); }
bool is_divisor(const Expression& e, const Step& step) {
  return e.op == ModelOp::div && e.args[1].kind == Expression::Kind::name &&
         step.operand(e.args[1].text).has_value();
}
bool divides(Q q) {
  return stored(q) && q.step().calls([&](const Expression& e) { return is_divisor(e, q.step()); });
}
bool averages(Q q) { return stored(q) && mean_of(q).has_value(); }
bool alibi(Q q) { return stored(q) && !q.step().weights(WeightKind::slopes).empty(); }
bool activates(Q q) {
  return stored(q) && !multiplies(q) &&
         q.step().calls([](const Expression& e) { return is_activation(e.op); });
}
bool gated(Q q) { return activates(q) && has_gate(q); }
bool not_gated(Q q) { return activates(q) && q.operands().size() == 1; }
bool appends(Q q) { return is_call(q.step().lines().back().expression, ModelOp::append); }
bool of_root_q(Q q) { return stored(q) && q.step().formula("1 / sqrt(Q)").has_value(); }
bool logits(Q q) { return q.step().graph().of_keys() && stored(q) && q.name() == "logits"; }
bool logits_of_base_e(Q q) { return logits(q) && !of_base2(q); }
bool logits_of_base2(Q q) { return logits(q) && of_base2(q); }
bool units_of_base_e(Q q) { return !of_base2(q) && followed_in_other_units(q); }
bool units_of_base2(Q q) { return of_base2(q) && followed_in_other_units(q); }
bool scores_of_other_e(Q q) { return !of_base2(q) && scores_in_other_units(q); }
bool scores_of_other_2(Q q) { return of_base2(q) && scores_in_other_units(q); }
bool tied_base2(Q q) {
  return norm(q) && q.step().graph().of_keys() && of_base2(q) && q.config().tied;
}
bool not_scaled(Q q) {
  return stored(q) && looks_up(q) && sums(q) && contraction_of(q)->scales.empty();
}
bool wider(Q q) { return q.format() != NumberFormat::bf16 && q.summed().empty(); }
bool of_f64(Q q) { return q.format() == NumberFormat::f64 && q.summed().empty(); }
bool of_bf16(Q q) { return q.format() == NumberFormat::bf16; }

// Changes of numbers, of calls, of positions.
float one(float) { return 1; }
float zero(float) { return 0; }
float twice(float v) { return 2 * v; }
float squared(float v) { return v * v; }
float with_one(float v) { return v + 1; }
float negative(float v) { return -v; }
double no_scale(double, Q) { return 1; }
double no_addend(double, Q) { return 0; }
double square(double v, Q) { return v * v; }
double own_eps(double, Q q) { return q.config().eps; }
std::optional<double> ln2(Q) { return kLn2; }
std::optional<double> log2e(Q) { return kLog2E; }
std::optional<double> root_of_e(Q q) {
  return std::sqrt(static_cast<double>(q.step().extent('E')));
}
std::optional<double> root_q(Q q) { return 1 / *q.step().formula("1 / sqrt(Q)"); }
std::optional<double> by_root_q(Q q) { return q.step().formula("1 / sqrt(Q)"); }
std::optional<double> by_root_of_q(Q q) {
  return 1 / std::sqrt(static_cast<double>(q.step().extent('Q')));
}
std::optional<double> root_q_over_e(Q q) { return *root_q(q) / *root_of_e(q); }

bool drop(Expression& e, std::size_t by) {
  Expression operand = std::move(e.args[by]);
  e = std::move(operand);
  return true;
}
bool without_subtrahend(Expression& e, const Step&) { return e.op == ModelOp::sub && drop(e, 0); }
bool without_activation(Expression& e, const Step&) { return is_activation(e.op) && drop(e, 0); }
template <ModelOp Op>
bool activation_as(Expression& e, const Step&) {
  if (!is_activation(e.op) || e.op == Op) return false;
  e.op = Op;
  return true;
}
bool of_two(Expression& e, const Step&) {
  if (e.op != ModelOp::silu || e.args[0].kind == Expression::Kind::call) return false;
  e.args[0] = parse_expression("mul(" + e.args[0].text + ", 2)");
  return true;
}
bool not_of_two(Expression& e, const Step&) {
  return e.op == ModelOp::silu && e.args[0].kind == Expression::Kind::call &&
         e.args[0].op == ModelOp::mul && e.args[0].args[1].text == "2" && drop(e.args[0], 0);
}
bool other_exponential(Expression& e, const Step&) {
  if (e.op != ModelOp::exp && e.op != ModelOp::exp2) return false;
  e.op = e.op == ModelOp::exp ? ModelOp::exp2 : ModelOp::exp;
  return true;
}
bool not_divided(Expression& e, const Step& step) { return is_divisor(e, step) && drop(e, 0); }
bool divided_twice(Expression& e, const Step& step) {
  if (!is_divisor(e, step)) return false;
  const Expression once = e;
  e.args[0] = once;
  return true;
}
/// The extent by which a sum of squares is divided, inside of the root.
bool not_by_extent(Expression& e, const Step&) {
  if (e.op != ModelOp::sqrt || e.args[0].kind != Expression::Kind::call) return false;
  Expression& inside = e.args[0].op == ModelOp::add ? e.args[0].args[0] : e.args[0];
  return inside.op == ModelOp::div && inside.kind == Expression::Kind::call &&
         inside.args[1].text.size() == 1 && drop(inside, 0);
}

std::int64_t from_zero(std::int64_t, const PassPlan&) { return 0; }
std::int64_t as_first(std::int64_t, const PassPlan& pass) { return pass.rows[0].start; }
std::int64_t behind_prefix(std::int64_t s, const PassPlan& pass) { return s - pass.prefix.length; }
std::int64_t behind_padding(std::int64_t, const PassPlan& pass) {
  return pass.prefix.length + pass.cached;
}
std::int64_t doubled(std::int64_t s, const PassPlan&) { return 2 * s; }
std::int64_t later(std::int64_t s, const PassPlan&) { return s + 1; }
std::int64_t earlier(std::int64_t s, const PassPlan&) { return s - 1; }
std::int64_t last(std::int64_t, const PassPlan& pass) {
  return pass.prefix.length + pass.cached + pass.L;
}
bool in_any(const PassPlan&) { return true; }
bool in_first(const PassPlan& pass) {
  for (const PassRows& rows : pass.rows)
    if (rows.start == 0) return true;
  return false;
}
bool own(std::size_t own, std::size_t key) { return key == own; }
bool own_but_first(std::size_t own, std::size_t key) { return key == own && key > 0; }
bool others(std::size_t own, std::size_t key) { return key != own; }

double scale_one(double, double, Q) { return 1; }
double scale_squared(double own, double, Q) { return own * own; }
double scale_first(double, double first, Q) { return first; }
double scale_itself(double own, double, Q) { return own; }
double scale_of_weights(double, double, Q q) { return static_cast<double>(q.config().logit_scale); }

}  // namespace

const std::vector<Row>& rows() {
  constexpr WeightKind kGain = WeightKind::gain, kBias = WeightKind::bias,
                       kSlopes = WeightKind::slopes;
  constexpr Stage kOfChips = Stage::of_chips;
  static const std::vector<Row> kRows{
      {"never written", "", 0, any, try_never_written, Stage::first},
      {"split and concat swapped", "", 0, any, try_all_to_all, kOfChips},
      {"another chip's block", "", 0, any, try_blocks, kOfChips},
      {"partial sum missing", "", 0, sums, try_sums, kOfChips},
      {"local statistics", "", 0, norm_of_operand, try_statistics, kOfChips},
      {"axes in another order", "", 0, norm, blocks_of_weights(kGain)},
      {"axes in another order", "", 0, sums, try_weight_blocks},
      {"rows of other shards", "", 0, sums_stored, try_lookups},
      {"columns of a fused weight", "", 0, sums, try_columns},
      {kAddend, "", 0, any, try_addends},
      {kConvention, "the bias {} is inside: declare it as {}, not as the sum before it", 0,
       before_bias, with_bias_inside()},
      {"another layer's weight", "", 0, any, try_operands},
      // Functions of one operand, times another one.
      {kSwapped, "nothing swapped, but the activation is that of swiglu", 5, gated,
       calls_as(activation_as<ModelOp::silu>)},
      {kSwapped, "nothing swapped, but the activation is that of geglu", 5, gated,
       calls_as(activation_as<ModelOp::gelu_tanh>)},
      {kSwapped, "nothing swapped, but the activation is that of gelu", 5, not_gated,
       calls_as(activation_as<ModelOp::gelu_tanh>)},
      {kSwapped, "nothing swapped, but the activation is that of gelu-erf", 5, not_gated,
       calls_as(activation_as<ModelOp::gelu>)},
      {kDoubled, "swish of 2g in place of g", 5, gated, calls_as(of_two)},
      {kMissing, "swish of g in place of 2g", 5, gated, calls_as(not_of_two)},
      {kSwapped, "{0} is act({1})·{2}", 1, gated, factors_swapped()},
      {kSwapped, "the activation is missing", 2, activates, calls_as(without_activation)},
      {kSwapped, "the product with {0} is missing", 3, gated, factor_dropped(false)},
      {kSwapped, "the product with {0} is missing, {1} is act({2})", 4, gated,
       factor_dropped(true)},
      {kSwapped, "{} is {}", 4, gated, factor_alone(true)},
      {kSwapped, "{} is {}", 4, gated, factor_alone(false)},
      // The keys that a query sees.
      {"mask", "each query also sees the key behind its own", 1, masked, sight_as(later)},
      {"mask", "a query does not see its own key", 1, masked, sight_as(earlier)},
      {"mask", "no mask: each query sees all keys", 2, masked, sight_as(last)},
      {"mask", "positions of the pass from 0 on: the mask's upper left in place of its lower right",
       3, masked, sight_as(from_zero)},
      {"mask", "a query does not see its own key", 1, masked, keys_hidden(own, in_first, false)},
      {"mask", "a query does not see its own key, but the first one does", 1, masked,
       keys_hidden(own_but_first, in_first, false)},
      {"mask", "a query sees its own key alone", 4, masked, keys_hidden(others, in_any, true)},
      {"stale slot", "reads {} as it was before the pass: zeros in its new slots", 0, masked,
       cache_before_the_pass()},
      // Rotations.
      {kPosition, "position {:+}", 0, turns, positions_off()},
      {kPosition, "positions from 0 on in each pass", 1, turns, positions_as(from_zero)},
      {kPosition, "positions of the first row in all rows", 2, turns, positions_as(as_first)},
      {kPosition, "positions from the padded length on in all rows", 2, turns,
       positions_as(behind_padding)},
      {kPosition, "positions are counted from the end of the prefix on", 2, turns,
       positions_as(behind_prefix)},
      {kPosition, "the positions before the pass are counted twice", 100, turns,
       positions_as(doubled)},
      {kPosition, "{}", 50, turns_unseen, positions_dealt()},
      {kPosition, "not rotated", 3, turns, tables_as(true, 1)},
      {kPosition, "rotated the other way", 4, turns, tables_as(false, -1)},
      {kPosition, "rope pairs: rotated in {} pairs", 5, turns, other_pairs()},
      {kPosition, "not rotated", 3, turns, operand_itself()},
      {kPosition, "rotated twice", 6, turns, done_twice()},
      {"head order", "", 0, any, try_heads},
      // Gains, biases and statistics of norms.
      {kConvention, "declare norm_gain=folded", 0, folded, weights_as(kGain, one)},
      {kMissing, "the gain", 0, norm, weights_as(kGain, one)},
      {kDoubled, "the gain", 0, norm, weights_as(kGain, squared)},
      {kMissing, "1 is added to the gain", 5, norm, weights_as(kGain, with_one)},
      {kAddend, "{} is left out", 1, norm, weights_as(kBias, zero)},
      {kAddend, "{} is added twice", 2, norm, weights_as(kBias, twice)},
      {kAddend, "{} is added {} times", 3, norm, weights_of_chips(kBias)},
      {"another layer's weight", "{} in place of {}", 0, norm, other_weights(kGain)},
      {kMissing, "eps is not scaled by c·c", 5, tied_base2, numbers_as(Part::addend, own_eps)},
      {"local statistics", "the mean is not subtracted", 5, centered, calls_as(without_subtrahend)},
      {"local statistics", "the mean is subtracted", 5, not_centered, mean_subtracted()},
      {kMissing, "the sum of squares is not divided by E", 6, norm, calls_as(not_by_extent)},
      // Constants.
      {kMissing, "{}", 0, stored, numbers_as(Part::factor, no_scale)},
      {kDoubled, "{}", 0, stored, numbers_as(Part::factor, square)},
      {kAddend, "{} is left out", 5, stored, numbers_as(Part::addend, no_addend)},
      {kMissing, "{}, and the bias is scaled by it", 0, with_bias, scales_as(scale_itself, true)},
      {kDoubled, "the root of E, which this model has not", 2, not_scaled, times_a(root_of_e)},
      {kMissing, "1/sqrt(Q)", 0, of_root_q, times_a(root_q)},
      {kDoubled, "1/sqrt(Q)", 0, of_root_q, times_a(by_root_q)},
      {kDoubled, "1/sqrt(Q)", 0, scores_of_base2, operand_times(by_root_of_q)},
      {kDoubled, "1/sqrt(Q)", 0, scores_of_base2, times_a(by_root_of_q)},
      {kDoubled, "1/sqrt(E) in place of 1/sqrt(Q)", 9, of_root_q, times_a(root_q_over_e)},
      {kConvention, "declare logits_base=2", 0, logits_of_base_e, times_a(log2e)},
      {kConvention, "declare logits_base=e", 0, logits_of_base2, times_a(ln2)},
      {kDoubled, "logit_scale, which the weights have", 0, logits_of_base2,
       scales_as(scale_of_weights)},
      {kMissing, "{}", 0, scaled_by_weight, scales_as(scale_one)},
      {kDoubled, "{}", 0, scaled_by_weight, scales_as(scale_squared)},
      {kMissing, "{}: that of column 0 for all", 5, scaled_by_weight, scales_as(scale_first)},
      {kDoubled, "the mean over {} in place of the sum: divided by {}", 0, sums_stored,
       means_of_chips()},
      // Softmax.
      {kConvention, "declare score_base=2", 0, units_of_base_e, times_a(log2e)},
      {kConvention, "declare score_base=e", 0, units_of_base2, times_a(ln2)},
      {kMissing, "log2(e), but the exponentials are of base 2", 5, scores_of_base2, times_a(ln2)},
      {kDoubled, "log2(e), but the exponentials are of base e", 5, scores, times_a(log2e)},
      {"another chip's block", "of {}: the slopes of the first of {} blocks of heads", 5, alibi,
       slopes_of_first_heads()},
      {kAddend, "the ALiBi term is left out", 1, alibi, weights_as(kSlopes, zero)},
      {kAddend, "the ALiBi term is added twice", 2, alibi, weights_as(kSlopes, twice)},
      {kAddend, "the ALiBi term is subtracted", 3, alibi, weights_as(kSlopes, negative)},
      {kConvention, "declare score_base=2", 0, scores_of_other_e, of_other_units()},
      {kConvention, "declare score_base=e", 0, scores_of_other_2, of_other_units()},
      {kMissing, "log2(e): 2^x in place of e^x", 1, exponentials, calls_as(other_exponential)},
      {kDoubled, "log2(e): e^x in place of 2^x", 1, exponentials_of_base2,
       calls_as(other_exponential)},
      {kAddend, "the maximum is not subtracted", 1, exponentiates, calls_as(without_subtrahend)},
      {kMissing, "not divided by the denominator", 0, divides, calls_as(not_divided)},
      {kDoubled, "divided by the denominator", 0, divides, calls_as(divided_twice)},
      {"merge of parts", "{}: {}", 0, missing_exponentials, try_merges},
      {"stale slot", "", 0, appends, try_caches},
      {"stale slot", "", 0, appends, try_missing_caches},
      // Roundings. Partial sums are rounded separately.
      {kRounding, "the result is rounded to bf16", 5, wider, result_as(NumberFormat::bf16)},
      {kRounding, "sums are kept as bf16", 20, wider, arithmetic_in_bf16(true, false)},
      {kRounding, "all operations are of bf16", 21, wider, arithmetic_in_bf16(false, true)},
      {kRounding, "all operations and sums are of bf16", 22, wider, arithmetic_in_bf16(true, true)},
      {kRounding, "the result is rounded to f32", 4, of_f64, result_as(NumberFormat::f32)},
      {kRounding, "the result is not rounded to bf16", 4, of_bf16, result_as(NumberFormat::f32)},
      {kRounding, "the operand is rounded to bf16", 0, multiplies, terms_in_bf16(true, false)},
      {kRounding, "the matrix is rounded to bf16", 1, multiplies, terms_in_bf16(false, true)},
      {kRounding, "operand and matrix are rounded to bf16", 2, multiplies,
       terms_in_bf16(true, true)},
      {kRounding, "{} rounded to bf16", 3, multiplies, each_term_in_bf16()},
      {kRounding, "the partial sums over {} are rounded to bf16", 10, multiplies,
       partial_sums_in_bf16()},
      {kRounding, "{} rounded to bf16", 0, combines, operands_in_bf16()},
      {kRounding, "the probabilities are rounded to bf16", 1, averages, shares_in_bf16()},
      {kRounding, "the sum of squares is rounded to bf16", 1, norm_of_operand,
       statistics_in_bf16(false)},
      {kRounding, "the mean of squares is rounded to bf16", 1, norm_of_operand,
       statistics_in_bf16(true)},
      {kRounding, "sines and cosines are rounded to bf16", 1, turns, tables_in_bf16()},
      // What is read off the value itself.
      {"chunks in another order", "", 0, norm, fitted_blocks_of(kGain), Stage::last},
      {"chunks in another order", "", 0, sums, try_fitted_weight_blocks, Stage::last},
      {"chunks in another order", "", 0, multiplies, try_fitted_operands, Stage::last},
      {"columns of a fused weight", "", 0, sums, try_fitted_columns, Stage::last},
      {"chunks in another order", "", 0, sums_stored, try_fitted_lookups, Stage::last},
      {kPosition, "", 0, turns, try_fitted_positions, Stage::last},
      {"partial sum missing", "", 0, sums, try_fitted_sums, Stage::last},
      {kFactor, "times {}", 0, stored, try_factor, Stage::last},
      {kFactor, "all columns times {}, in place of {}", 5, scaled_by_weight, try_one_scale,
       Stage::last},
      {"another chip's block", "of {}: {} of {} in the place of each", 10, adds, operand_blocks(),
       Stage::last},
      {"gathered along another dim", "chips' blocks of {}, {} of them, are gathered before dim 0",
       0, shown, try_views, Stage::last},
      {"sum of unlike rows", "{}: partial sums {}", 0, sums_stored, try_unlike_rows, Stage::last},
      {"other frequencies", "{}", 0, turns, try_frequencies, Stage::last},
      {"stale slot", kAttentionReads, 0, stored, try_reads, Stage::last},
      {"mask", "{} blocks of {} keys: each query {}", 10, masked, sight_of_blocks(), Stage::last},
      // Of values that the dump lacks.
      {"stale slot", kAttentionReads, 0, stored, try_reads_of_any, Stage::missing},
      {"partial sum missing", "block {} of {} over {} is left out, in {}{}", 200, stored,
       try_missing_sums, Stage::missing},
      {"sum of unlike rows", "partial sums {}, in {}{}", 200, stored, try_missing_unlike_rows,
       Stage::missing},
      {kFactor, "times {}, in {}{}", 200, stored, try_missing_factors, Stage::missing},
  };
  return kRows;
}

const std::vector<Row>& rows_of_weights() {
  static const std::vector<Row> kRows{
      {"never written", "", 0, any, try_never_written, Stage::first},
      {"another chip's block", "", 0, any, try_blocks, Stage::of_chips},
      {"another layer's weight", "{} in place of {}", 0, any, try_other_weights},
      {kRounding, "the numbers are rounded to bf16", 0, any, result_as(NumberFormat::bf16)},
  };
  return kRows;
}

}  // namespace shardproof::diagnosis
