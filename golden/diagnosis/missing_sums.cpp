// Partial sums left out of sums that the dump lacks, one of them or all that a chip takes part in.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "golden/diagnosis/detail/edits.h"
#include "golden/diagnosis/detail/missing.h"
#include "golden/diagnosis/detail/trial.h"
#include "weights/base/detail/index.h"
#include "weights/model/registry.h"

namespace shardproof::diagnosis {
namespace {

/// A sum of products with a weight, of which a dim is contracted that may be cut.
struct Sum {
  std::string id, weight;
  std::size_t dim = 0;
  bool of_result = false;  ///< it has the question's letters
};

std::vector<Sum> sums_of(const Question& q, const std::vector<std::string>& ids) {
  std::vector<Sum> all;
  for (const std::string& id : std::vector<std::string>(ids.rbegin(), ids.rend())) {
    const Step& step = q.step_of(id);
    const std::string& letters = step.lines().back().letters;
    const auto weights = step.weights(WeightKind::matrix);
    if (weights.size() != 1 || !step.calls(ModelOp::einsum)) continue;
    for (std::size_t d = 0; d < weights[0]->letters.size(); ++d)
      if (letters.find(weights[0]->letters[d]) == letters.npos) {
        all.push_back(
            {id, step.weight_id(*weights[0]), d, letters == q.step().lines().back().letters});
        break;
      }
  }
  return all;
}

/// Returns the weight with zeros in a block of a dim.
Tensor without_block(Tensor weight, std::size_t dim, std::int64_t block, std::int64_t blocks) {
  const std::size_t inner = inner_of(weight.shape, dim);
  const std::int64_t extent = weight.shape[dim], length = extent / blocks;
  for (std::size_t i = 0; i < weight.data.size(); ++i)
    if (static_cast<std::int64_t>(i / inner) % extent / length == block) weight.data[i] = 0;
  return weight;
}

}  // namespace

void try_missing_sums(const Question& q, Search& search, const Row& row) {
  const MissingOperands missing(q);
  const std::vector<Sum> sums = sums_of(q, missing.ids);
  double left = MissingOperands::kProducts;
  const auto attempt = [&](const std::vector<Sum>& of, const Axes& over, int block) {
    const int n = q.torus().size(over);
    std::vector<std::string> ids;
    for (const Sum& sum : of) {
      if (q.replay().weights().shape(sum.weight)[sum.dim] % n != 0) return;
      ids.push_back(sum.id);
    }
    Candidate c = candidate(row, block, n, words_of(over), names_of(q, ids), kLacking);
    c.axes = over.to_string();
    c.parameters += over.size() * 1000 + block + (of.size() > 1 ? 500 : 0);
    if (search.explained_everywhere() || !search.wants(c) || (left -= missing.products) < 0) return;
    Replaced replaced(q);
    for (const Sum& sum : of)
      replaced.change(
          sum.id,
          {.weights = {{sum.weight, without_block(*q.weight(sum.weight), sum.dim, block, n)}}});
    Trial(q, search).try_replaced(std::move(c), std::move(replaced));
  };
  std::vector<Sum> together;
  for (const Sum& sum : sums)
    if (sum.of_result) together.push_back(sum);
  for (const Axes& over : q.sets())
    for (int block = 0; block < q.torus().size(over); ++block) {
      for (const Sum& sum : sums) attempt({sum}, over, block);
      if (together.size() > 1) attempt(together, over, block);
    }
}

}  // namespace shardproof::diagnosis
