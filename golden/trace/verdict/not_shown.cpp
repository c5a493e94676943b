#include "golden/trace/verdict/not_shown.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>

#include "weights/base/detail/each_part.h"
#include "weights/model/registry.h"
#include "weights/text/heads.h"

namespace shardproof::dump {
namespace {

using Names = std::vector<std::string>;

/// The properties of a run that may hide faults.
struct Run {
  const Claim& claim;
  const Values& values;
  const Weights& weights;
  std::vector<PassPlan> passes;  ///< those of which the trace has a value
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

/// Returns the weights of these kinds for which `holds` is true.
template <class Holds>
Names weights_that(const Run& run, std::initializer_list<WeightKind> kinds, Holds&& holds) {
  Names names;
  for (const WeightSpec& spec : weight_specs(model(run), run.weights.stored_type())) {
    const WeightRow* const row = row_of(spec.name);
    const bool is_one =
        row != nullptr && std::find(kinds.begin(), kinds.end(), row->kind) != kinds.end();
    if (is_one && holds(run.weights.at(spec.name).data)) names.push_back(spec.name);
  }
  return names;
}

bool all(const std::vector<float>& of, float value) {
  return std::all_of(of.begin(), of.end(), [&](float v) { return v == value; });
}

Names zero_biases(const Run& run) {
  return weights_that(run, {WeightKind::bias}, [](const auto& t) { return all(t, 0.0F); });
}
Names zero_matrices(const Run& run) {
  return weights_that(run, {WeightKind::matrix}, [](const auto& t) { return all(t, 0.0F); });
}
Names gains_of_one(const Run& run) {
  return weights_that(run, {WeightKind::gain}, [](const auto& t) { return all(t, 1.0F); });
}
Names equal_gains(const Run& run) {
  return weights_that(run, {WeightKind::gain},
                      [](const auto& t) { return !all(t, 1.0F) && all(t, t[0]); });
}
Names equal_biases(const Run& run) {
  return weights_that(run, {WeightKind::bias},
                      [](const auto& t) { return t.size() > 1 && !all(t, 0.0F) && all(t, t[0]); });
}

/// Returns, per dim, how many of its slices repeat another one, compared by hash.
std::vector<std::size_t> repeats_by_dim(const Tensor& t) {
  std::vector<std::vector<std::uint64_t>> hashes;
  for (const std::int64_t extent : t.shape)
    hashes.emplace_back(static_cast<std::size_t>(extent), 0xcbf29ce484222325);
  std::vector<std::size_t> index(t.shape.size(), 0);
  for (const float v : t.data) {
    for (std::size_t d = 0; d < index.size(); ++d) {
      std::uint64_t& hash = hashes[d][index[d]];
      hash = (hash ^ std::bit_cast<std::uint32_t>(v)) * 0x100000001b3;
      hash ^= hash >> 29;
    }
    for (std::size_t d = index.size(); d-- > 0;) {
      if (++index[d] < hashes[d].size()) break;
      index[d] = 0;
    }
  }
  std::vector<std::size_t> repeats;
  for (const auto& of_dim : hashes)
    repeats.push_back(of_dim.size() - std::set<std::uint64_t>(of_dim.begin(), of_dim.end()).size());
  return repeats;
}

/// Returns repeated slices of matrices, "layer0.wq along H"; zero matrices are reported elsewhere.
Names equal_slices(const Run& run) {
  std::vector<WeightSpec> matrices = weight_specs(model(run), run.weights.stored_type());
  std::erase_if(matrices, [](const WeightSpec& spec) {
    const WeightRow* const row = row_of(spec.name);
    return row == nullptr || row->kind != WeightKind::matrix;
  });
  std::vector<std::vector<std::size_t>> repeats(matrices.size());
  std::atomic<std::size_t> next = 0;
  each_part(matrices.size(), 1, [&](std::size_t, std::size_t) {
    for (std::size_t i = next++; i < matrices.size(); i = next++)
      if (const Tensor& t = run.weights.at(matrices[i].name); !all(t.data, 0.0F))
        repeats[i] = repeats_by_dim(t);
  });
  Names names;
  for (std::size_t i = 0; i < matrices.size(); ++i)
    for (std::size_t d = 0; d < repeats[i].size(); ++d)
      if (repeats[i][d] > 0)
        names.push_back(fmt::format("{} along {}", matrices[i].name, matrices[i].dims[d]));
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
  const Tensor& cosines = run.weights.at("rope_cos");
  const Tensor& sines = run.weights.at("rope_sin");
  const auto pairs = static_cast<std::size_t>(cosines.shape[1]);
  for (std::size_t i = 0; i < cosines.data.size(); ++i) {
    const std::size_t row = i / pairs;
    const double angle =
        static_cast<double>(row) *
        std::pow(model(run).theta, -static_cast<double>(i % pairs) / static_cast<double>(pairs));
    const double allowed = 0x1p-22 * (1 + angle);
    if (std::abs(static_cast<double>(cosines.data[i]) - std::cos(angle)) <= allowed &&
        std::abs(static_cast<double>(sines.data[i]) - std::sin(angle)) <= allowed)
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

std::vector<std::string> not_shown(const Claim& claim, const Values& values,
                                   const Weights& weights) {
  const Run run{claim, values, weights, passes_of(claim, values)};
  std::vector<std::string> sentences;
  for (const Lack& lack : kLacks)
    if (const Names names = lack.found(run); !names.empty())
      sentences.push_back(with_names(lack.words, names));
  return sentences;
}

}  // namespace shardproof::dump
