#pragma once

#include "golden/diagnosis/detail/row.h"
#include "weights/model/registry.h"

namespace shardproof::diagnosis {

// Edits of the graph: the value that follows from a changed step.

/// Each weight of a kind that the step reads, with its numbers changed; its id stands in the words.
Edit weights_as(WeightKind kind, float (*to)(float));
/// Each weight of a kind added once for each chip of some axes.
Edit weights_of_chips(WeightKind kind);
/// Other weights of the kind and shape.
Edit other_weights(WeightKind kind);
/// The blocks of a weight of one dim in other places than those of the value.
Edit blocks_of_weights(WeightKind kind);
/// Its blocks in those places that the value shows.
Edit fitted_blocks_of(WeightKind kind);

/// A part of a formula in which numbers stand.
enum class Part { factor, addend };
/// Each of the text's numbers in such a part, changed.
Edit numbers_as(Part part, double (*to)(double number, const Question& question));

/// The calls of the step's formulas, each changed for which `to` returns true.
Edit calls_as(bool (*to)(Expression& call, const Step& step));
/// The value times a factor; for nullopt none.
Edit times_a(std::optional<double> (*factor)(const Question& question));

/// The step whose first operand is times a factor.
Edit operand_times(std::optional<double> (*factor)(const Question& question));
/// The scales of a contraction, to(its own, that of column 0), with `biases_too` of its biases.
Edit scales_as(double (*to)(double own, double first, const Question& question),
               bool biases_too = false);
/// The mean over chips in place of the sum.
Edit means_of_chips();

/// The slopes of ALiBi that heads have: in each block of them those of the first one.
Edit slopes_of_first_heads();
/// Each operand of the value's shape, with one of its blocks along a dim in the places of all.
Edit operand_blocks();

// A step with a function of one operand, and a product with another one.

/// Returns whether the step reads two operands of its own shape, one of them in the function.
bool has_gate(const Question& question);
Edit factors_swapped();
Edit factor_dropped(bool the_activated);
Edit factor_alone(bool the_activated);

/// The first operand with its mean over the last dim subtracted.
Edit mean_subtracted();

// Rotations.

/// The rows of a pass at other positions: to(start, pass), as far as the tables reach.
Edit positions_as(std::int64_t (*to)(std::int64_t start, const PassPlan& pass));
Edit positions_off();
/// The tokens of a pass at positions as chips have them: each from 0 on, dealt out, or in chunks
/// from both ends.
Edit positions_dealt();
/// The tables of positions, of another row or with the sines' sign changed.
Edit tables_as(bool of_row_0, float sign);
Edit other_pairs();
Edit operand_itself();
Edit done_twice();

// Masks.

/// The rows of the pass at other positions, for what queries see alone.
Edit sight_as(std::int64_t (*to)(std::int64_t start, const PassPlan& pass));
/// The keys of each query that to(own key, key) hides hold 0.
Edit keys_hidden(bool (*hides)(std::size_t own, std::size_t key), bool (*where)(const PassPlan&),
                 bool one_is_left);
/// Keys in blocks, as those of the chips of a ring, of which a query sees others than it is to.
Edit sight_of_blocks();
Edit cache_before_the_pass();

// Roundings to bf16.

Edit result_as(NumberFormat format);
Edit arithmetic_in_bf16(bool sums, bool operations);
Edit terms_in_bf16(bool operands, bool matrices);
Edit each_term_in_bf16();
Edit partial_sums_in_bf16();
Edit operands_in_bf16();
Edit shares_in_bf16();
Edit statistics_in_bf16(bool mean);
Edit tables_in_bf16();

// Faults that are many candidates each: of layouts, contractions, addends, caches, heads.

void try_never_written(const Question& question, Search& search, const Row& row);
void try_all_to_all(const Question& question, Search& search, const Row& row);
void try_blocks(const Question& question, Search& search, const Row& row);
void try_weight_blocks(const Question& question, Search& search, const Row& row);
void try_sums(const Question& question, Search& search, const Row& row);
void try_fitted_sums(const Question& question, Search& search, const Row& row);
void try_addends(const Question& question, Search& search, const Row& row);
void try_statistics(const Question& question, Search& search, const Row& row);
void try_columns(const Question& question, Search& search, const Row& row);
void try_fitted_columns(const Question& question, Search& search, const Row& row);
void try_fitted_weight_blocks(const Question& question, Search& search, const Row& row);
void try_fitted_operands(const Question& question, Search& search, const Row& row);
void try_fitted_positions(const Question& question, Search& search, const Row& row);
void try_lookups(const Question& question, Search& search, const Row& row);
void try_fitted_lookups(const Question& question, Search& search, const Row& row);
void try_operands(const Question& question, Search& search, const Row& row);
void try_other_weights(const Question& question, Search& search, const Row& row);
void try_heads(const Question& question, Search& search, const Row& row);
void try_merges(const Question& question, Search& search, const Row& row);
void try_views(const Question& question, Search& search, const Row& row);
void try_unlike_rows(const Question& question, Search& search, const Row& row);
void try_frequencies(const Question& question, Search& search, const Row& row);
void try_one_scale(const Question& question, Search& search, const Row& row);
void try_factor(const Question& question, Search& search, const Row& row);
void try_missing_sums(const Question& question, Search& search, const Row& row);
void try_missing_factors(const Question& question, Search& search, const Row& row);
inline constexpr std::string_view kAttentionReads = "attention reads {} of {}";
/// Attention that reads other contents of caches that the dump has, or also of those that it lacks.
void try_reads(const Question& question, Search& search, const Row& row);
void try_reads_of_any(const Question& question, Search& search, const Row& row);
void try_caches(const Question& question, Search& search, const Row& row);
/// Partial sums of unlike rows in all sums of a layer that the dump lacks.
void try_missing_unlike_rows(const Question& question, Search& search, const Row& row);
void try_missing_caches(const Question& question, Search& search, const Row& row);

/// Faults of values between this one and its nearest dumped operands, which the dump lacks.
void try_missing_operands(const Question& question, Search& search);
/// Returns whether a candidate with this name is of such a value.
bool in_missing_operand(std::string_view candidate);

}  // namespace shardproof::diagnosis
