#include "golden/trace/verdict/other_ids.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "weights/model/registry.h"
#include "weights/text/composites.h"

namespace shardproof::dump {
namespace {

constexpr std::int64_t kShown = 6;  // ids listed in a sentence
/// Equal rows rounded to bf16 have 1 − cosine below 2^-16; different rows of a model do not.
constexpr double kAlike = 1 - 0x1p-12;

using Numbers = std::vector<double>;

/// Returns a row minus its mean.
Numbers centered(Numbers row) {
  double sum = 0.0;
  for (const double v : row) sum += v;
  for (double& v : row) v -= sum / static_cast<double>(row.size());
  return row;
}

double cosine(const Numbers& a, const Numbers& b) {
  double ab = 0.0, aa = 0.0, bb = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i)
    ab += a[i] * b[i], aa += a[i] * a[i], bb += b[i] * b[i];
  return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 0.0;
}

/// Finds the token whose row of the embedding table a row of the value comes from.
class Lookup {
 public:
  /// `norm`: that of the first layer, if the value is one; otherwise null.
  Lookup(const Weights& weights, const Composite& lookup, const Composite* norm)
      : weights_(weights),
        table_(weights.at(lookup.weights[0])),
        norm_(norm),
        mean_(norm != nullptr && weights.config().norm == Norm::layernorm) {}

  std::optional<std::int64_t> id_of(Numbers row) const {
    if (norm_ != nullptr) undo_norm(row);
    for (std::int64_t id = 0; id < weights_.config().V; ++id)
      if (cosine(row, table_row(id)) > kAlike) return id;
    return std::nullopt;
  }

 private:
  void undo_norm(Numbers& row) const {
    const auto gain = weights_.at(id_of_weight(norm_->weights[0]));
    for (std::size_t i = 0; i < row.size(); ++i) {
      for (const std::string& bias : norm_->biases)
        row[i] -= static_cast<double>(weights_.at(id_of_weight(bias))->data[i]);
      row[i] = gain->data[i] == 0.0F ? 0.0 : row[i] / static_cast<double>(gain->data[i]);
    }
  }
  std::string id_of_weight(const std::string& name) const {
    return weight_id(0, name, weights_.config().rows.get());
  }
  Numbers table_row(std::int64_t id) const {
    const auto E = weights_.config().E;
    const auto begin = table_->data.begin() + id * E;
    Numbers row(begin, begin + E);
    return mean_ ? centered(std::move(row)) : row;
  }

  const Weights& weights_;
  std::shared_ptr<const Tensor> table_;
  const Composite* norm_;
  bool mean_;
};

/// What follows the ids first: the embedding and the first norm.
struct First {
  explicit First(const ModelConfig& model)
      : all(composites_of(model, NumberFormat::f32)),
        embed(name_of(all, CompositeKind::lookup)),
        rows(model.rows.get()) {
    for (const auto& [name, of] : all)
      if (norm.empty() && of.kind == CompositeKind::norm) norm = name;
  }
  /// Returns whether a value of the first layer is made of the first norm.
  bool follows_norm(const std::string& name) const {
    const Composite* const of = find_composite(all, name);
    return of != nullptr && of->kind == CompositeKind::product && of->operands[0] == norm;
  }

  NamedComposites all;
  std::string embed, norm;
  const ModelRows* rows;
};

/// Returns the ids of the first tokens of a value [B,L,E]; empty if a row belongs to no token.
std::vector<std::int64_t> ids_of(const DumpedValue& dumped, const First& first,
                                 const Weights& weights) {
  const auto whole = assembled_value(dumped);
  if (!whole || first.embed.empty()) return {};
  const Lookup lookup(
      weights, *find_composite(first.all, first.embed),
      dumped.subject.name == first.norm ? find_composite(first.all, first.norm) : nullptr);
  const auto E = weights.config().E;
  std::vector<std::int64_t> ids;
  for (std::int64_t token = 0; token < std::min(kShown, element_count(whole->shape) / E); ++token) {
    const auto begin = whole->center.begin() + token * E;
    const auto id = lookup.id_of(Numbers(begin, begin + E));
    if (!id) return {};
    ids.push_back(*id);
  }
  return ids;
}

bool has_ids(const Values& values) {
  return std::any_of(values.dumped.begin(), values.dumped.end(),
                     [](const DumpedValue& h) { return h.subject.meaning == Meaning::ids; });
}

/// Returns whether the trace has no value between the ids and this one.
bool follows_ids(const Subject& s, const First& first, Reference& reference) {
  if (s.meaning != Meaning::checkpoint && s.meaning != Meaning::raw) return false;
  if (s.name == first.embed) return true;
  const bool is_norm = s.name == first.norm;
  if (!is_norm && !first.follows_norm(s.name)) return false;
  return s.layer == 0 && reference.replay().pass(s.pass).phase != Phase::decode &&
         !reference.has(checkpoint_id(s.pass, -1, first.embed)) &&
         (is_norm || !reference.has(checkpoint_id(s.pass, 0, first.norm, first.rows)));
}

}  // namespace

std::optional<std::string> other_ids(const Values& values, const Claim& claim, Reference& reference,
                                     const Verdict& verdict) {
  if (has_ids(values) || !verdict.first || claim.ids_are_given) return std::nullopt;
  const Row& row = verdict.rows[*verdict.first];
  const DumpedValue& dumped = values.dumped[row.dumped];
  const First first(claim.source_case.model);
  if (!follows_ids(dumped.subject, first, reference) || 2 * row.wrong < row.elements)
    return std::nullopt;
  const std::string& pass = dumped.subject.pass;
  const bool readable = dumped.subject.meaning == Meaning::checkpoint && !dumped.subject.last &&
                        (dumped.subject.name == first.embed || dumped.subject.name == first.norm);
  const std::vector<std::int64_t> ids =
      readable ? ids_of(dumped, first, reference.weights()) : std::vector<std::int64_t>();
  const IntTensor& assumed = reference.ids(pass);
  if (ids.empty())
    return fmt::format(
        "the trace has no ids, and is judged as of the seed's prompt; if it is of "
        "another, put {}.ids in",
        pass);
  if (std::equal(ids.begin(), ids.end(), assumed.data.begin())) return std::nullopt;
  return fmt::format(
      "the trace has no ids, and {} is of other ids than the seed's prompt, {}, ...; "
      "put {}.ids in",
      row.title, fmt::join(ids, ", "), pass);
}

}  // namespace shardproof::dump
