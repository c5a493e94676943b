#include "golden/trace/verdict/not_shown.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "golden/trace/verdict/detail/repeats.h"
#include "weights/model/registry.h"
#include "weights/text/heads.h"

namespace shardproof::dump {
namespace {

using Names = std::vector<std::string>;

/// What a weight's elements have in common.
struct WeightFacts {
  WeightSpec spec;
  WeightKind kind;
  bool zeros = false, ones = false, equal = false;
  std::vector<std::size_t> repeats = {};  ///< per dim, of a matrix
};

/// The properties of a run that may hide faults.
struct Run {
  const Claim& claim;
  const Values& values;
  const Weights& weights;
  std::vector<WeightFacts> facts;  ///< of the weights of the registry
  std::vector<PassPlan> passes;    ///< those of which the trace has a value
};

const ModelConfig& model(const Run& run) { return run.weights.config(); }

std::string joined(const Names& names, const char* with) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : with) + name;
  return text;
}

/// Returns "layer0.bq, layer0.bk and 3 more", short enough for one line.
std::string some(const Names& names) {
  constexpr std::size_t kNamed = 2;
  if (names.size() <= kNamed + 1) return joined(names, ", ");
  return fmt::format("{}, {} and {} more", names[0], names[1], names.size() - kNamed);
}

const WeightRow* row_of(const std::string& weight) {
  return weight_row(weight.substr(weight.rfind('.') + 1));
}

bool all(const std::vector<float>& of, float value) {
  return std::all_of(of.begin(), of.end(), [&](float v) { return v == value; });
}

/// Returns the facts of all weights; each is read once. Of weights on demand one is in memory at a
/// time.
std::vector<WeightFacts> facts_of(const Weights& weights, Threads& threads) {
  std::vector<WeightFacts> all_facts;
  for (const WeightSpec& spec : weight_specs(weights.config(), weights.stored_type()))
    if (const WeightRow* const row = row_of(spec.name)) all_facts.push_back({spec, row->kind});
  const auto find = [&](std::int64_t i) {
    WeightFacts& facts = all_facts[static_cast<std::size_t>(i)];
    const std::shared_ptr<const Tensor> tensor = weights.at(facts.spec.name);
    const std::vector<float>& of = tensor->data;
    facts.zeros = all(of, 0.0F);
    facts.ones = all(of, 1.0F);
    facts.equal = all(of, of[0]);
    if (facts.kind == WeightKind::matrix && !facts.zeros) facts.repeats = repeats_by_dim(*tensor);
  };
  if (weights.on_demand())
    for (std::int64_t i = 0; i < std::ssize(all_facts); ++i) find(i);
  else
    threads.for_each(std::ssize(all_facts), find);
  return all_facts;
}

/// Returns the weights of this kind for which `holds` is true.
template <class Holds>
Names weights_that(const Run& run, WeightKind kind, Holds&& holds) {
  Names names;
  for (const WeightFacts& facts : run.facts)
    if (facts.kind == kind && holds(facts)) names.push_back(facts.spec.name);
  return names;
}

Names zero_biases(const Run& run) {
  return weights_that(run, WeightKind::bias, [](const WeightFacts& of) { return of.zeros; });
}
Names zero_matrices(const Run& run) {
  return weights_that(run, WeightKind::matrix, [](const WeightFacts& of) { return of.zeros; });
}
Names gains_of_one(const Run& run) {
  return weights_that(run, WeightKind::gain, [](const WeightFacts& of) { return of.ones; });
}
Names equal_gains(const Run& run) {
  return weights_that(run, WeightKind::gain,
                      [](const WeightFacts& of) { return of.equal && !of.ones; });
}
Names equal_biases(const Run& run) {
  return weights_that(run, WeightKind::bias, [](const WeightFacts& of) {
    return of.equal && !of.zeros && element_count(of.spec.shape) > 1;
  });
}

/// Returns repeated slices of matrices, "layer0.wq along H"; zero matrices are reported elsewhere.
Names equal_slices(const Run& run) {
  Names names;
  for (const WeightFacts& facts : run.facts)
    for (std::size_t d = 0; d < facts.repeats.size(); ++d)
      if (facts.repeats[d] > 0)
        names.push_back(fmt::format("{} along {}", facts.spec.name, facts.spec.dims[d]));
  return names;
}

/// Returns "0 and 1": rows with the same ids before the decode.
Names equal_rows(const Run& run) {
  std::map<std::vector<double>, Names> rows;
  std::vector<std::vector<double>> ids(static_cast<std::size_t>(run.claim.source_case.batch));
  for (const DumpedValue& dumped : run.values.dumped) {
    if (dumped.subject.meaning != Meaning::ids || !dumped.subject.pass.starts_with("prefill") ||
        dumped.subject.shape[0] != run.claim.source_case.batch)
      continue;
    std::vector<double> whole(static_cast<std::size_t>(element_count(dumped.subject.shape)), -1.0);
    for (std::size_t chip = 0; chip < dumped.shards.size(); ++chip)
      for (std::size_t i = 0; i < dumped.shards[chip].size(); ++i)
        if (dumped.places[chip][i] != DumpedValue::kNone)
          whole[static_cast<std::size_t>(dumped.places[chip][i])] = dumped.shards[chip][i];
    const std::size_t L = whole.size() / ids.size();
    for (std::size_t i = 0; i < whole.size(); ++i) ids[i / L].push_back(whole[i]);
  }
  for (std::size_t b = 0; b < ids.size(); ++b)
    if (!ids[b].empty()) rows[ids[b]].push_back(std::to_string(b));
  Names names;
  for (const auto& [row, numbers] : rows)
    if (numbers.size() > 1) names.push_back(joined(numbers, " and "));
  return names;
}

Names if_so(bool so) { return so ? Names{""} : Names{}; }

Names one_row(const Run& run) { return if_so(run.claim.source_case.batch == 1); }
Names one_kv_head(const Run& run) {
  const TextModel* const text = text_model(model(run));
  return if_so(model(run).K == 1 && model(run).H > 1 &&
               (text == nullptr || group_letter(*text) != 0));
}
Names one_layer(const Run& run) { return if_so(model(run).layers == 1); }

Names one_pass(const Run& run) { return if_so(run.passes.size() == 1); }
Names no_decode(const Run& run) {
  return if_so(run.passes.size() > 1 &&
               std::none_of(run.passes.begin(), run.passes.end(),
                            [](const PassPlan& p) { return p.phase == Phase::decode; }));
}
Names position_zero(const Run& run) {
  return if_so(!run.passes.empty() &&
               std::all_of(run.passes.begin(), run.passes.end(), [](const PassPlan& p) {
                 return std::all_of(p.rows.begin(), p.rows.end(),
                                    [](const PassRows& group) { return group.end() <= 1; });
               }));
}
Names one_token_a_pass(const Run& run) {
  return if_so(!run.passes.empty() && position_zero(run).empty() &&
               std::all_of(run.passes.begin(), run.passes.end(),
                           [](const PassPlan& p) { return p.L == 1; }));
}

/// Returns the axes x, y, z by number of chips.
std::map<int, Names> axes_by_size(const Run& run) {
  std::map<int, Names> axes;
  for (const char axis : {'x', 'y', 'z'})
    axes[run.claim.source_case.torus.size(Axes::parse(std::string(1, axis)))].push_back(
        std::string(1, axis));
  return axes;
}
Names one_chip(const Run& run) { return if_so(run.claim.source_case.torus.chips() == 1); }
Names axes_of_one(const Run& run) {
  return run.claim.source_case.torus.chips() == 1 ? Names() : axes_by_size(run)[1];
}
Names equal_axes(const Run& run) {
  Names names;
  for (const auto& [size, axes] : axes_by_size(run))
    if (size > 1 && axes.size() > 1)
      names.push_back(fmt::format("{} of {}", joined(axes, ", "), size));
  return names;
}

/// Returns the model's theta if the rotary tables differ from it in f32. Allows four roundings of
/// the angle and its factors, and the error of the function.
Names foreign_tables(const Run& run) {
  if (!run.claim.weights_of_file || !rotates(model(run))) return {};
  const auto cosines = run.weights.at("rope_cos"), sines = run.weights.at("rope_sin");
  const auto pairs = static_cast<std::size_t>(cosines->shape[1]);
  for (std::size_t i = 0; i < cosines->data.size(); ++i) {
    const std::size_t row = i / pairs;
    const double angle =
        static_cast<double>(row) *
        std::pow(model(run).theta, -static_cast<double>(i % pairs) / static_cast<double>(pairs));
    const double allowed = 0x1p-22 * (1 + angle);
    if (std::abs(static_cast<double>(cosines->data[i]) - std::cos(angle)) <= allowed &&
        std::abs(static_cast<double>(sines->data[i]) - std::sin(angle)) <= allowed)
      continue;
    return {fmt::format("{}", model(run).theta)};
  }
  return {};
}

/// A property that hides faults: where it holds (empty: nowhere), and the sentence for the report.
struct Lack {
  Names (*found)(const Run& run);
  const char* words;  ///< {}: the names, if any
};

constexpr Lack kLacks[] = {
    {zero_biases, "biases are zero ({}): whether they are added, and how often, does not show"},
    {equal_biases, "biases are equal ({}): a wrong order of one does not show"},
    {gains_of_one, "gains of norms are one ({}): whether they are applied does not show"},
    {equal_gains, "gains of norms are equal ({}): a wrong order of one does not show"},
    {zero_matrices, "matrices are zero ({}): a fault in what they multiply does not show"},
    {equal_slices, "weights repeat ({}): what is equal may change places, and it does not show"},
    {foreign_tables,
     "RoPE tables are the weights file's, and not those of theta={}: a wrong theta does not show"},
    {equal_rows, "rows {} of the batch have the same ids: that they change places does not show"},
    {one_row, "the batch is one row: a wrong order of rows does not show"},
    {one_kv_head, "there is one kv head: an order of kv heads, and who reads which, do not show"},
    {one_layer, "there is one layer: what goes from layer to layer does not show"},
    {one_pass, "there is one pass: caches that a later pass reads do not show"},
    {no_decode, "there is no decode step: its positions and caches do not show"},
    {position_zero, "every token is at position 0: rotation, mask and softmax do not show"},
    {one_token_a_pass, "every pass has one token a row: a mask does not show"},
    {one_chip, "the torus is one chip: a wrong cut or reduction does not show"},
    {axes_of_one, "axes of one chip ({}): what is cut over them, or summed, does not show"},
    {equal_axes, "axes of one size ({}): that one is taken for another may not show"},
};

std::string with_names(std::string words, const Names& names) {
  if (const std::size_t place = words.find("{}"); place != std::string::npos)
    words.replace(place, 2, some(names));
  return words;
}

std::vector<PassPlan> passes_of(const Claim& claim, const Values& values) {
  std::set<std::string> names;
  for (const DumpedValue& dumped : values.dumped)
    if (dumped.subject.meaning != Meaning::ids && dumped.subject.meaning != Meaning::positions)
      names.insert(dumped.subject.pass);
  std::vector<PassPlan> passes;
  const Passes all_passes = claim.source_case.passes();
  for (std::int64_t i = 0; i < all_passes.size(); ++i)
    if (PassPlan pass = all_passes.at(i); names.contains(pass.name))
      passes.push_back(std::move(pass));
  return passes;
}

}  // namespace

std::vector<std::string> not_shown(const Claim& claim, const Values& values, const Weights& weights,
                                   Threads& threads) {
  const Run run{claim, values, weights, facts_of(weights, threads), passes_of(claim, values)};
  std::vector<std::string> sentences;
  for (const Lack& lack : kLacks)
    if (const Names names = lack.found(run); !names.empty())
      sentences.push_back(with_names(lack.words, names));
  return sentences;
}

}  // namespace shardproof::dump
