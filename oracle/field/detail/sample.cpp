#include "oracle/field/detail/sample.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace shardproof::oracle::field {

namespace {

using std::size_t;

/// Returns Σ_j ρ^j·A(z_j), or for indices Σ_j ρ^j·A(z_j)·T(id_j), of each block of width places/C.
Tensor lists(const Answer& answer, const std::string& pass, std::int64_t C, std::int64_t places,
             bool of_ids) {
  const auto found = answer.hashed_logits.find(pass);
  if (found == answer.hashed_logits.end())
    throw Error("oracle_id", fmt::format("{:?} is not a pass of this run that samples", pass));
  const Tensor& hashed = found->second;
  const std::int64_t V = hashed.shape[1];
  const std::int64_t all = places == 0 ? V : places;
  if (C < 1 || all < V || all % C != 0)
    throw Error("oracle_range", fmt::format("{} ids make no {} equal blocks", all, C));
  const Arithmetic math(answer.setting);
  const std::int64_t width = all / C;
  Tensor blocks({hashed.shape[0], C});
  for (size_t block = 0; block < blocks.data.size(); ++block) {
    const auto row = static_cast<std::int64_t>(block) / C;
    const std::int64_t first = static_cast<std::int64_t>(block) % C * width;
    Number power = math.integer(1);
    for (std::int64_t id = first; id < std::min(first + width, V); ++id) {
      Number term = math.multiply(power, hashed.data[static_cast<size_t>(row * V + id)]);
      if (of_ids) term = math.multiply(term, answer.hashed_ids.data[static_cast<size_t>(id)]);
      blocks.data[block] = math.add(blocks.data[block], term);
      power = math.multiply(power, answer.rho);
    }
  }
  return blocks;
}

}  // namespace

void sample(Answer& answer, Pass<Numbers>& pass, const std::string& name,
            const Operand<Numbers>& logits) {
  const Numbers& math = pass.math();
  const std::int64_t V = answer.config.V;
  if (answer.hashed_ids.data.empty()) {
    answer.rho = math.constant("rho");
    const Function T = math.function("id", {});
    for (std::int64_t id = 0; id < V; ++id) answer.hashed_ids.data.push_back(T(math.integer(id)));
    answer.hashed_ids.shape = {V};
  }
  const Function A = math.function("logit", logits.degree);
  Tensor hashed = *logits.tensor;
  for (Number& z : hashed.data) z = A(z);
  answer.hashed_logits[name] = std::move(hashed);

  // The whole vocabulary is one block: the blocks' values, shifted by powers of ρ, sum to its
  // value.
  const Function f1 = math.function("candidate to token", {V, {}});  // ρ^(V−1)·A
  const Function f2 = math.function("index to token", {V + 1, {}});  // ρ^(V−1)·A·T
  const Tensor candidate = answer.candidates(name, 1);
  const Tensor index = answer.indices(name, 1);
  Value<Numbers> token{Tensor({pass.batch()}), kVariable};
  for (size_t b = 0; b < token.tensor.data.size(); ++b)
    token.tensor.data[b] = math.add(f1(candidate.data[b]), f2(index.data[b]));
  pass.keep(-1, "token", std::move(token));
}

const Tensor& Answer::weight(const std::string& id) const {
  const auto found = weights.find(id);
  if (found == weights.end())
    throw Error("oracle_id", fmt::format("{:?} names no weight of this model", id));
  return found->second;
}

Tensor Answer::candidates(const std::string& pass, std::int64_t C, std::int64_t places) const {
  return lists(*this, pass, C, places, false);
}

Tensor Answer::indices(const std::string& pass, std::int64_t C, std::int64_t places) const {
  return lists(*this, pass, C, places, true);
}

std::int64_t Answer::degree(const std::map<int, std::int64_t>& inverses) const {
  std::int64_t largest = 0;
  for (const Degree& each : degrees) largest = std::max(largest, each.of_numerator(inverses));
  return largest;
}

}  // namespace shardproof::oracle::field
