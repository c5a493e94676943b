#include "golden/diagnosis/diagnosis.h"

#include <algorithm>
#include <deque>

#include "golden/compare/block_map.h"
#include "golden/diagnosis/detail/edits.h"
#include "golden/diagnosis/detail/trial.h"
#include "golden/diagnosis/detail/two_faults.h"

namespace shardproof::diagnosis {
namespace {

struct Kind {
  std::string_view fault, remedy;
};
// In the order in which explanations of a value are listed: never computed, blocks moved, then
// sums, operands and functions changed, and last roundings.
constexpr Kind kKinds[] = {
    {"never written",
     "load the weight, or write the value before it is dumped, or leave it out of the dump"},
    {"convention", "declare it as the cause says (docs/compare.md, What is declared)"},
    {"axes in another order",
     "cut by the declared order of axes, or declare the layout that the value has"},
    {"chunks in another order", "put the chunks in the order of the chips' coordinates"},
    {"another chip's block", "give each chip the block that its coordinates count to"},
    {"split and concat swapped", "exchange the dim that is split and the dim that is concatenated"},
    {"gathered along another dim",
     "put the chips' blocks beside one another along the dim that they cut"},
    {"head order", "give each chip its own heads, or declare their order: heads"},
    {"reduction missing",
     "reduce over these axes, or declare the value as a partial sum: partialsum-AXES in its "
     "layout"},
    {"reduction over another axis", "reduce over the axes that cut the contracted dim"},
    {"reduction twice", "reduce once"},
    {"partial sum missing", "let every chip of the group add its partial sum"},
    {"partial sum twice", "let every chip of the group add its partial sum once"},
    {"sum of unlike rows", "add partial sums of the same rows, or gather the rows first"},
    {"rows of other shards",
     "subtract the chip's first row from a token, and add nothing for tokens of other chips"},
    {"addend not added once", "add it on one chip of the group, or after the reduction"},
    {"gate and up swapped", "exchange the two matrices, or the operand of the activation"},
    {"transposed weight", "transpose it, or declare the order of its dims: layout"},
    {"columns of a fused weight",
     "split the fused weight where its parts are, or bring its columns into the order in which it "
     "is split"},
    {"another layer's weight", "read the layer's own weight"},
    {"another layer's or pass's value", "read the value of this layer and pass"},
    {"stale slot", "write the pass's keys and values into their slots before they are read"},
    {"position off",
     "count positions over all tokens of the row, those of earlier passes and chips included"},
    {"token of a shard",
     "compare the largest logits of all shards, and add a shard's first id to an index within it"},
    {"another factor", "multiply by the number that the model has there"},
    {"other frequencies", "rotate by the model's theta, over the channels that it rotates"},
    {"scale missing", "apply the scale once"},
    {"scale doubled", "apply the scale once"},
    {"merge of parts",
     "weigh each part by the exponential of its own log-sum-exp less the greatest, in the base in "
     "which it is taken"},
    {"mask", "hide exactly the keys behind the query's own position"},
    {"local statistics", "reduce the statistic over all chips that hold a part of the row"},
    {"rounding", "declare where the program rounds: arithmetic, sums, wire or rounding"},
};

/// Tries the faults of a stage that the value can have.
void interpret(Stage stage, const Question& question, Search& search) {
  for (const Row& row : question.of_weight() ? rows_of_weights() : rows())
    if (row.stage == stage && row.where(question)) row.edit(question, search, row);
}

void try_as_given(const Question& question, Search& search) {
  interpret(Stage::of_chips, question, search);
  interpret(Stage::once, question, search);
}

/// Returns whether what a value reads may hold what an earlier pass computed, and the dump lacks.
bool follows_from_earlier(const Question& q) {
  const std::vector<std::string> caches = caches_of(q);
  return std::any_of(caches.begin(), caches.end(),
                     [&](const std::string& id) { return !q.replay().dumped(id); });
}

/// Tries the explanations at other values of the same name, which confirm or refute them.
void hold_against(const std::string& pass, bounds::Derivation& replay,
                  const std::vector<Wrong>& others, Search& search) {
  const std::vector<std::string> all = search.names();
  for (const Wrong& other : others) {
    const Question question(replay, other);
    std::vector<std::string> names = all;
    // What the dump lacks of this pass is wrong in caches of the next one, too.
    if (question.place().pass != pass && follows_from_earlier(question))
      std::erase_if(names, [](const std::string& name) { return in_missing_operand(name); });
    if (names.empty()) continue;
    Search tried(question, names);
    try_as_given(question, tried);
    if (!question.right()) interpret(Stage::last, question, tried);
    if (std::any_of(names.begin(), names.end(), in_missing_operand)) {
      try_missing_operands(question, tried);
      interpret(Stage::missing, question, tried);
    }
    search.see(question, tried.trials());
  }
}

/// Returns what is said of a value that has one fault.
std::vector<Hypothesis> one_fault(bounds::Derivation& replay, const Question& question,
                                  const std::vector<Wrong>& others, std::string_view without) {
  Search search(question, without);
  // A value that was never written equals any other that was not.
  interpret(Stage::first, question, search);
  if (search.explained()) return search.ranked();
  try_as_given(question, search);
  std::deque<Question> cuts;
  if (question.whole() && !question.of_weight() && !search.explained())
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
  if (!search.explained_everywhere()) try_missing_operands(question, search);
  if (!search.explained_everywhere()) interpret(Stage::missing, question, search);
  hold_against(question.place().pass, replay, others, search);
  return search.ranked();
}

}  // namespace

const std::vector<std::string>& faults() {
  static const std::vector<std::string> kinds = [] {
    std::vector<std::string> words;
    for (const Kind& kind : kKinds) words.emplace_back(kind.fault);
    return words;
  }();
  return kinds;
}

std::string_view remedy(std::string_view fault) {
  for (const Kind& kind : kKinds)
    if (kind.fault == fault) return kind.remedy;
  return "";
}

std::vector<Hypothesis> diagnose(bounds::Derivation& replay, const Wrong& wrong,
                                 const std::vector<Wrong>& others, std::string_view without) {
  const Question question(replay, wrong);
  if (question.right()) return {};
  std::vector<Hypothesis> said = one_fault(replay, question, others, without);
  if (!said.empty() && said[0].explains) return said;
  std::vector<Hypothesis> two = two_faults(question, wrong, [&](const Wrong& alone) {
    const Question part(replay, alone);
    return part.right() ? std::vector<Hypothesis>() : one_fault(replay, part, {}, without);
  });
  return two.empty() ? said : two;
}

}  // namespace shardproof::diagnosis
