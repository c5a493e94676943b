// Faults of fused weights: a product has columns of the matrices beside its own.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "golden/diagnosis/detail/edits.h"
#include "golden/diagnosis/detail/fused.h"
#include "golden/diagnosis/detail/trial.h"
#include "weights/base/detail/index.h"

namespace shardproof::diagnosis {
namespace {

/// A fused weight whose columns lie in one arrangement, and are taken for those of another.
struct Mistaken {
  Arrangement stored, read;
  Moved moved = Moved::matrix;

  Column from(const Fused& fused, const Column& own) const {
    return stored.column_at(fused, read.place_of(fused, own));
  }
};

class Columns : Trial {
 public:
  Columns(const Question& q, Search& search)
      : Trial(q, search),
        fused_(std::make_shared<Fused>(q)),
        missing_(!q.raw() && !q.replay().dumped(q.id())) {}

  void run() {
    if (fused_->parts().empty()) return;
    std::vector<std::size_t> order(fused_->parts().size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const std::vector<std::size_t> in_order = order;
    const std::vector<std::size_t> all = numbers_of_blocks();
    do {
      for (const std::size_t stored : all)
        for (const std::size_t read : all)
          for (const Moved moved : {Moved::matrix, Moved::all, Moved::addends})
            attempt({{stored, order}, {read, in_order}, moved});
    } while (std::next_permutation(order.begin(), order.end()));
  }

 private:
  /// Returns into how many equal blocks all parts can be cut, between heads.
  std::vector<std::size_t> numbers_of_blocks() const {
    std::size_t most = 0;
    for (const Fused::Part& part : fused_->parts()) most = std::gcd(most, part.heads);
    std::vector<std::size_t> all;
    for (std::size_t n = 1; n <= most; ++n)
      if (most % n == 0) all.push_back(n);
    return all;
  }

  /// Returns the axes that n blocks are for, each for one chip: those that cut the value, or
  /// others.
  Axes axes_of(std::size_t n) const {
    if (n == 1) return {};
    for (const auto& dim : q_.layout().dims())
      if (dim.letter != 'B' && dim.letter != 'L' && at(q_.torus().size(dim.axes)) == n)
        return dim.axes.sorted();
    for (const Axes& set : q_.sets())
      if (at(q_.torus().size(set)) == n) return set;
    return {};
  }

  /// Returns whether a program has a reason to cut into so many blocks: for chips, for heads of
  /// keys, or to interleave columns.
  bool usual(std::size_t n) const {
    return n == 1 || !axes_of(n).empty() || n == numbers_of_blocks().back();
  }

  std::string words_of_parts(const Arrangement& a) const {
    std::vector<std::string> names;
    for (const std::size_t part : a.order) names.push_back(fused_->parts()[part].matrix);
    if (a.blocks == 1) return fmt::format("[{}]", fmt::join(names, "|"));
    std::string each;
    if (const Axes axes = axes_of(a.blocks); !axes.empty())
      each = fmt::format("chip over {}", axes.to_string());
    if (a.blocks == numbers_of_blocks().back()) {
      const auto& parts = fused_->parts();
      const bool heads = std::any_of(parts.begin(), parts.end(), [](const Fused::Part& part) {
        return part.columns != part.heads;
      });
      each += fmt::format("{}{}", each.empty() ? "" : " or ", heads ? "kv head" : "column");
    }
    return fmt::format("{} blocks [{}]{}{}", a.blocks, fmt::join(names, " "),
                       each.empty() ? "" : ", one for each ", each);
  }

  /// Returns whether columns that are exchanged the other way round are the same.
  bool either_way(const Mistaken& m) const {
    const Mistaken other{m.read, m.stored};
    for (std::size_t part = 0; part < fused_->parts().size(); ++part)
      for (std::size_t column = 0; column < fused_->parts()[part].columns; ++column)
        if (!(m.from(*fused_, {part, column}) == other.from(*fused_, {part, column}))) return false;
    return m.stored.order == m.read.order;
  }

  void attempt(const Mistaken& m) {
    const bool in_order = m.stored.order == m.read.order;
    if (in_order && m.stored.blocks == m.read.blocks) return;
    const bool one_cut = m.stored.blocks == 1 || m.read.blocks == 1;
    const bool common = usual(m.stored.blocks) && usual(m.read.blocks);
    // What is followed to another value is followed through all between.
    if (missing_ && (!one_cut || !common || !(in_order || m.stored.blocks == m.read.blocks)))
      return;
    const Axes axes = axes_of(std::max(m.stored.blocks, m.read.blocks));
    Candidate candidate{
        .fault = "columns of a fused weight",
        .detail = fmt::format("{}stored as {}, read as {}{}", name_of_moved(m.moved),
                              words_of_parts(m.stored), words_of_parts(m.read),
                              either_way(m) ? ", or the other way round" : ""),
        .parameters = (in_order ? 0 : 10) + (one_cut ? 0 : 20) + (common ? 0 : 40) +
                      static_cast<int>(m.moved),
        .axes = axes.to_string(),
        .shared = true};
    if (!search_.wants(candidate) || !fused_->read()) return;
    if (m.moved != Moved::matrix && !fused_->addends()) return;
    candidate.at = q_.logical([fused = fused_, m](std::size_t g) {
      const Contraction& sum = fused->sum(fused->own());
      const Column own{fused->own(), g % sum.columns};
      return sum.known(fused->number(own.part, g, m.from(*fused, own), m.moved));
    });
    const bool claims = missing_ || (!q_.right() && may_explain(candidate));
    if (!claims || others_hold(m)) search_.consider(std::move(candidate));
  }

  /// Returns whether all elements of wrong chips are as predicted.
  bool may_explain(const Candidate& candidate) const {
    for (int chip = 0; chip < q_.chips(); ++chip)
      for (std::size_t i = 0; !q_.right(chip) && i < q_.elements(); ++i)
        if (!q_.fits(chip, i, candidate.at(chip, i))) return false;
    return true;
  }

  /// Returns whether the values of the other parts, as far as the dump has them, have the fault.
  bool others_hold(const Mistaken& m) const {
    for (std::size_t part = 0; part < fused_->parts().size(); ++part) {
      const std::string& id = fused_->parts()[part].id;
      if (part == fused_->own() || !q_.replay().dumped(id)) continue;
      bounds::IntervalTensor value(q_.replay().value(id).shape);
      for (std::size_t g = 0; g < value.size(); ++g)
        value.set(
            g, fused_->number(part, g, m.from(*fused_, {part, g % fused_->parts()[part].columns}),
                              m.moved));
      if (!holds(q_, id, value)) return false;
    }
    return true;
  }

  std::shared_ptr<Fused> fused_;
  bool missing_;  ///< the dump lacks the value
};

}  // namespace

void try_columns(const Question& q, Search& search, const Row&) { Columns(q, search).run(); }

}  // namespace shardproof::diagnosis
