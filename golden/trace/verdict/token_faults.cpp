#include "golden/trace/verdict/token_faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "engine/run/dim_padding.h"
#include "golden/trace/value/choice.h"
#include "golden/trace/value/detail/each_number.h"
#include "weights/base/detail/index.h"

namespace shardproof::dump {
namespace {

using bounds::IntervalTensor;

constexpr std::string_view kShard = "token of a shard", kOther = "another layer's or pass's value";

/// A token of the trace, and whether its logits exclude it.
struct Token {
  std::size_t sample;  ///< number of its pass, of those that sample
  int chip;            ///< of a whole value 0
  std::size_t row;
  double id;
  bool wrong;
};

struct Sampled {
  std::string pass;
  IntervalTensor logits;  ///< [BV]
  bool whole;
};

/// A token as a fault predicts it, and whether the logits leave no other one.
struct Predicted {
  double id;
  bool certain;
};
/// nullopt: it predicts nothing, as for a shard without ids.
using Prediction = std::function<std::optional<Predicted>(const Token& token)>;

class TokenFaults {
 public:
  TokenFaults(const Values& values, const Claim& claim, Reference& reference,
              std::string_view without)
      : without_(without),
        torus_(claim.source_case.torus),
        V_(at(claim.source_case.model.V)),
        placed_(at(placed_model(claim.source_case).V)) {
    for (const DumpedValue& dumped : values.dumped)
      if (dumped.subject.meaning == Meaning::token && dumped.why_not.empty())
        add(dumped, reference.sampled_logits(dumped.subject.pass));
    for (const Values::Laid& laid : values.laid)
      if (laid.subject.meaning == Meaning::checkpoint &&
          laid.subject.dims.find('V') != std::string::npos)
        declared_ = laid.layout.axes('V');
  }

  std::vector<diagnosis::Hypothesis> found() {
    try_rows();
    std::set<std::size_t> shards;
    for (const Axes& axes : cuts()) {
      const std::size_t n = at(torus_.size(axes));
      if (n < 2 || placed_ % n != 0) continue;
      if (shards.insert(n).second) try_shards(n);
      try_own_shards(axes, n);
    }
    try_padding();
    // As many wrong tokens met by chance, each once in V with its padding, by one of the faults.
    const double by_chance = std::log(static_cast<double>(tried_)) -
                             static_cast<double>(wrong()) * std::log(static_cast<double>(placed_));
    if (by_chance > std::log(0.1)) return {};
    return std::move(found_);
  }

 private:
  void add(const DumpedValue& dumped, IntervalTensor logits) {
    const std::size_t sample = samples_.size();
    samples_.push_back({dumped.subject.pass, std::move(logits), dumped.whole});
    const Choice choice(samples_.back().logits, 1);
    each_number(dumped, [&](double id, const std::vector<int>& chips, std::int64_t place, double) {
      const bool wrong = choice.of(at(place), id) == ArgmaxFit::impossible;
      for (const int chip : chips) tokens_.push_back({sample, chip, at(place), id, wrong});
    });
  }

  /// Returns the number of different wrong tokens, copies counted once.
  std::size_t wrong() const {
    std::set<std::pair<std::size_t, std::size_t>> all;
    for (const Token& token : tokens_)
      if (token.wrong) all.insert({token.sample, token.row});
    return all.size();
  }

  /// Returns the axes that may cut V: those of the logits if the trace declares any.
  std::vector<Axes> cuts() const {
    if (!declared_.empty()) return {declared_};
    std::vector<Axes> all{Axes()};
    for (std::size_t i = 0; i < all.size(); ++i)
      for (const Axis a : {Axis::x, Axis::y, Axis::z})
        if (torus_.size(a) > 1 && !all[i].has(a)) all.push_back(Axes(all[i]).with(a));
    all.erase(all.begin());
    return all;
  }

  std::optional<Predicted> choice_of(const Token& token, std::size_t block, std::size_t width,
                                     std::size_t blocks) const {
    if (block * width >= V_) return std::nullopt;
    const Choice choice(samples_[token.sample].logits, blocks, width);
    const std::size_t place = token.row * blocks + block, id = choice.best(place);
    return Predicted{static_cast<double>(id),
                     choice.of(place, static_cast<double>(id)) == ArgmaxFit::certain};
  }
  std::optional<Predicted> right(const Token& token) const { return choice_of(token, 0, V_, 1); }

  /// Returns a token from a prediction, its id changed.
  template <class To>
  static std::optional<Predicted> changed(std::optional<Predicted> of, To&& to) {
    if (of) of->id = to(of->id);
    return of;
  }

  void try_fault(std::string_view fault, std::string detail, const Prediction& predicted,
                 const Axes& axes = {}) {
    if (fault == without_) return;
    ++tried_;
    bool closed = true;
    for (const Token& token : tokens_) {
      const std::optional<Predicted> p = predicted(token);
      if (!p || (p->certain && p->id != token.id)) return;
      closed = closed && (!token.wrong || p->certain);
    }
    if (!closed) return;
    found_.push_back({.fault = std::string(fault),
                      .detail = std::move(detail),
                      .axes = axes.to_string(),
                      .explains = true});
  }

  /// Faults of V cut into n shards, whichever chips have them.
  void try_shards(std::size_t n) {
    const std::size_t width = placed_ / n;
    const auto index = [width](double id) { return std::fmod(id, static_cast<double>(width)); };
    const std::string of_n = fmt::format(", of {} shards of {} ids", n, width);
    try_fault(kShard, "the index in its shard, without the shard's first id" + of_n,
              [&](const Token& t) { return changed(right(t), index); });
    try_fault(kShard, "the shard's first id is added twice" + of_n, [&](const Token& t) {
      return changed(right(t), [&](double id) { return 2 * id - index(id); });
    });
    for (std::size_t block = 0; block < n; ++block) {
      const auto of = [&](const Token& t) { return choice_of(t, block, width, n); };
      const std::string ids = fmt::format("the largest logit of ids {} to {} alone", block * width,
                                          (block + 1) * width - 1);
      try_fault(kShard, ids + of_n, of);
      if (block > 0)
        try_fault(kShard, "the index in its shard of " + ids + of_n,
                  [&](const Token& t) { return changed(of(t), index); });
    }
    for (const bool of_ids : {true, false})
      try_fault(kShard,
                (of_ids ? "the sum of the shards' ids" : "the sum of the shards' indices") + of_n,
                [&](const Token& t) {
                  std::optional<Predicted> sum = Predicted{0.0, true};
                  for (std::size_t block = 0; block < n && block * width < V_; ++block) {
                    const auto one = choice_of(t, block, width, n);
                    sum->id += of_ids ? one->id : index(one->id);
                    sum->certain = sum->certain && one->certain;
                  }
                  return sum;
                });
    const std::size_t own = V_ / n;  // without padding
    if (own != width)
      try_fault(kShard, fmt::format("first ids are counted by shards of {}{}", own, of_n),
                [&](const Token& t) {
                  return changed(right(t), [&](double id) {
                    const double shard = std::floor(id / static_cast<double>(width));
                    return index(id) + shard * static_cast<double>(own);
                  });
                });
  }

  /// Faults of which each chip has another token.
  void try_own_shards(const Axes& axes, std::size_t n) {
    for (const Sampled& sample : samples_)
      if (sample.whole) return;
    const std::size_t width = placed_ / n;
    const auto own = [&](const Token& t) {
      return choice_of(t, at(torus_.block(t.chip, axes)), width, n);
    };
    const std::string of =
        fmt::format("the largest logit of its own shard, V cut over {}", axes.to_string());
    try_fault(kShard, "each chip has " + of, own, axes);
    try_fault(
        kShard, "each chip has the index in its shard of " + of,
        [&](const Token& t) {
          return changed(own(t),
                         [&](double id) { return std::fmod(id, static_cast<double>(width)); });
        },
        axes);
  }

  void try_padding() {
    if (placed_ == V_) return;
    try_fault(kShard, "a logit of the padding, 0, is the largest",
              [&](const Token& t) -> std::optional<Predicted> {
                const IntervalTensor& logits = samples_[t.sample].logits;
                for (std::size_t v = 0; v < V_; ++v)
                  if (logits.center[t.row * V_ + v] >= 0.0) return right(t);
                return Predicted{static_cast<double>(V_), true};
              });
  }

  /// Choices from other logits: of another row, of an earlier pass, of the opposite order.
  void try_rows() {
    const std::size_t B = samples_.empty() ? 0 : at(samples_[0].logits.shape[0]);
    const auto from_row = [&](std::string detail, const auto& row) {
      try_fault(kOther, std::move(detail), [&](const Token& t) {
        Token other = t;
        other.row = row(t.row);
        return right(other);
      });
    };
    if (B > 1)
      from_row("each row has the token of row 0", [](std::size_t) -> std::size_t { return 0; });
    for (std::size_t by = 1; by < B; ++by)
      from_row(fmt::format("row b has the token of row (b + {}) mod {}", by, B),
               [=](std::size_t b) { return (b + by) % B; });
    if (samples_.size() > 1)
      try_fault(kOther, "each pass has the token of the logits of the one before",
                [&](const Token& t) {
                  Token other = t;
                  other.sample -= other.sample == 0 ? 0 : 1;
                  return right(other);
                });
    try_fault(kShard, "the smallest logit in place of the largest",
              [&](const Token& t) -> std::optional<Predicted> {
                IntervalTensor& of = opposite_.try_emplace(t.sample).first->second;
                if (of.size() == 0) {
                  of = samples_[t.sample].logits;
                  for (double& z : of.center) z = -z;
                }
                const Choice choice(of, 1);
                const auto id = static_cast<double>(choice.best(t.row));
                return Predicted{id, choice.of(t.row, id) == ArgmaxFit::certain};
              });
  }

  std::string_view without_;
  Torus torus_;
  std::size_t V_, placed_;
  Axes declared_;
  std::vector<Sampled> samples_;
  std::vector<Token> tokens_;
  std::map<std::size_t, IntervalTensor> opposite_;
  std::size_t tried_ = 0;
  std::vector<diagnosis::Hypothesis> found_;
};

}  // namespace

std::vector<diagnosis::Hypothesis> token_faults(const Values& values, const Claim& claim,
                                                Reference& reference, std::string_view without) {
  if (claim.source_case.sampling.sample == Sample::random) return {};
  return TokenFaults(values, claim, reference, without).found();
}

}  // namespace shardproof::dump
