// Partial sums of unlike rows in all sums of a layer that the dump lacks.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "golden/diagnosis/detail/contraction.h"
#include "golden/diagnosis/detail/edits.h"
#include "golden/diagnosis/detail/missing.h"
#include "golden/diagnosis/detail/orders.h"
#include "golden/diagnosis/detail/trial.h"
#include "weights/base/detail/index.h"

namespace shardproof::diagnosis {
namespace {

/// A sum of products with weights, of which a dim each is cut: as what it makes is linear in its
/// operands, blocks of their other rows make partial sums of other rows.
struct CutOperands {
  struct Operand {
    std::string id, letters;
    char cut;
  };
  std::string id;
  std::vector<Operand> operands = {};
};

/// Returns the sums that the dump lacks and that have the value's letters, in order of computation.
std::vector<CutOperands> sums_of_layer(const Question& q, const std::vector<std::string>& missing) {
  const bounds::TextLines& lines = q.step().graph().lines();
  std::vector<CutOperands> all;
  for (const std::string& id : std::vector<std::string>(missing.rbegin(), missing.rend())) {
    if (q.step_of(id).lines().back().letters != q.step().lines().back().letters) continue;
    const std::shared_ptr<const Contraction> sum = contraction_of(q, id);
    if (sum == nullptr || !sum->scales.empty()) continue;
    CutOperands cut{id};
    for (const Contraction::Term& term : sum->terms) {
      if (term.id.empty() || term.places == nullptr)
        continue;  // a lookup, or an edit's own numbers
      if (const TextLine* const line = lines.line_of(q.replay().place_of(term.id)))
        cut.operands.push_back({term.id, line->letters, term.letters[0]});
    }
    if (cut.operands.size() == sum->terms.size()) all.push_back(std::move(cut));
  }
  return all;
}

/// Returns an operand in which blocks of its cut dim have what belongs elsewhere in another dim.
bounds::IntervalTensor misplaced_in(const bounds::IntervalTensor& x, const CutOperands::Operand& of,
                                    char letter, int blocks, const Misplaced& misplaced) {
  const std::size_t cut = of.letters.find(of.cut), dim = of.letters.find(letter);
  const std::int64_t rows = x.shape[dim], extent = x.shape[cut];
  const std::size_t inner = inner_of(x.shape, dim), inner_of_cut = inner_of(x.shape, cut);
  bounds::IntervalTensor moved = x;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto own = static_cast<std::int64_t>(i / inner) % rows;
    const auto block = static_cast<std::int64_t>(i / inner_of_cut) % extent / (extent / blocks);
    const std::int64_t from = misplaced.from(own, static_cast<int>(block)) % rows;
    moved.set(i, x.number(i - at(own) * inner + at((from + rows) % rows) * inner));
  }
  return moved;
}

}  // namespace

void try_missing_unlike_rows(const Question& q, Search& search, const Row& row) {
  const MissingOperands missing(q);
  const std::vector<CutOperands> sums = sums_of_layer(q, missing.ids);
  std::vector<std::string> ids;
  std::size_t terms = 0;
  for (const CutOperands& sum : sums) ids.push_back(sum.id), terms += sum.operands.size();
  if (terms < 2) return;  // of one the differences show
  double left = MissingOperands::kProducts;
  const auto attempt = [&](const Axes& over, char letter, const Misplaced& misplaced) {
    const int n = q.torus().size(over);
    Candidate c = candidate(row, misplaced.words, names_of(q, ids), kLacking);
    c.axes = over.to_string();
    c.parameters += misplaced.parameters;
    if (search.explained_everywhere() || !search.wants(c) || (left -= missing.products) < 0) return;
    Replaced replaced(q);
    for (const CutOperands& sum : sums) {
      Question::Change change;
      for (const CutOperands::Operand& operand : sum.operands) {
        const bounds::IntervalTensor& x = replaced.value(operand.id);
        if (operand.letters.find(letter) == std::string::npos ||
            x.shape[operand.letters.find(operand.cut)] % n != 0)
          return;
        change.values.emplace_back(operand.id, misplaced_in(x, operand, letter, n, misplaced));
      }
      replaced.change(sum.id, std::move(change));
    }
    Trial(q, search).try_replaced(std::move(c), std::move(replaced));
  };
  for (const Axes& over : q.sets())
    for (std::size_t dim = 0; dim < q.rank(); ++dim)
      if (const char letter = q.layout().dims()[dim].letter; letter == 'B' || letter == 'L')
        for (const Misplaced& misplaced :
             misplaced_blocks(letter, q.shape()[dim], q.torus().size(over)))
          attempt(over, letter, misplaced);
}

}  // namespace shardproof::diagnosis
