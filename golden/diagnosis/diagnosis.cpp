#include "golden/diagnosis/diagnosis.h"

#include <deque>

#include "golden/compare/block_map.h"
#include "golden/diagnosis/detail/edits.h"

namespace shardproof::diagnosis {
namespace {

/// Tries the faults of a stage that the value can have.
void interpret(Stage stage, const Question& question, Search& search) {
  for (const Row& row : rows())
    if (row.stage == stage && row.where(question)) row.edit(question, search, row);
}

void try_as_given(const Question& question, Search& search) {
  interpret(Stage::of_chips, question, search);
  interpret(Stage::once, question, search);
}

/// Tries the explanations at other values of the same name, which confirm or refute them.
void hold_against(bounds::Derivation& replay, const std::vector<Wrong>& others, Search& search) {
  const std::vector<std::string> names = search.names();
  if (names.empty()) return;
  for (const Wrong& other : others) {
    const Question question(replay, other);
    Search tried(question, names);
    try_as_given(question, tried);
    if (!question.right()) interpret(Stage::last, question, tried);
    search.see(question, tried.trials());
  }
}

}  // namespace

const std::vector<std::string>& faults() {
  // In the order in which explanations of a value are listed: never computed, blocks moved, then
  // sums, operands and functions changed, and last roundings.
  static const std::vector<std::string> kinds{"never written",
                                              "convention",
                                              "axes in another order",
                                              "chunks in another order",
                                              "another chip's block",
                                              "split and concat swapped",
                                              "head order",
                                              "reduction missing",
                                              "reduction over another axis",
                                              "reduction twice",
                                              "partial sum missing",
                                              "partial sum twice",
                                              "addend not added once",
                                              "gate and up swapped",
                                              "transposed weight",
                                              "another layer's weight",
                                              "another layer's or pass's value",
                                              "stale slot",
                                              "position off",
                                              "scale missing",
                                              "scale doubled",
                                              "mask",
                                              "local statistics",
                                              "rounding"};
  return kinds;
}

std::vector<Hypothesis> diagnose(bounds::Derivation& replay, const Wrong& wrong,
                                 const std::vector<Wrong>& others) {
  const Question question(replay, wrong);
  if (question.right()) return {};
  Search search(question);
  // A value that was never written equals any other that was not.
  interpret(Stage::first, question, search);
  if (search.explained()) return search.ranked();
  try_as_given(question, search);
  std::deque<Question> cuts;
  if (question.whole() && !search.explained())
    for (std::size_t d = 0; d < question.rank(); ++d)
      for (const Axes& axes : question.lists()) {
        const Layout cut = question.layout().with_axes(d, axes);
        if (!judged_divides(cut, question.shape(), question.torus())) continue;
        search.turn_to(cuts.emplace_back(question, cut));
        interpret(Stage::of_chips, cuts.back(), search);
      }
  if (!search.explained_everywhere()) {
    search.turn_back(question);
    interpret(Stage::last, question, search);
  }
  hold_against(replay, others, search);
  return search.ranked();
}

}  // namespace shardproof::diagnosis
