#include "golden/trace/pair/value_pairing.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "golden/trace/pair/differences.h"
#include "golden/trace/pair/pairing.h"
#include "golden/trace/pair/positions.h"
#include "golden/trace/pair/reasons.h"
#include "golden/trace/pair/tokens.h"
#include "golden/trace/pair/whole_value.h"
#include "golden/trace/reference/masked_slots.h"
#include "weights/base/detail/index.h"
#include "weights/model/softmax.h"
#include "weights/text/model_text.h"

namespace shardproof::dump {
namespace {

std::string why_not_judged(const Row& row) {
  if (!row.why.empty() && row.fit == Fit::not_judged) return row.why;
  if (row.fit == Fit::loose) return "its bound is wide: operands are missing, or copies differ";
  return row.evidence ? "operands are missing: " + row.evidence->text() : "it is not judged";
}

/// Slots that no query sees hold anything.
bool is_masked(const std::string& dims, const std::string& name) {
  return dims == "BLHM" && has_unseen_slots(name);
}

/// Compares values in the order of the run, each with its partner.
class Pairing {
 public:
  Pairing(Pair& pair, const Dump& a, const Dump& b)
      : pair_(pair),
        dumps_{&a, &b},
        places_{places_of(pair.a.claim, a), places_of(pair.b.claim, b)},
        matcher_(matched_arrays(pair.a), places_[0], matched_arrays(pair.b), places_[1]),
        tokens_(pair.a, places_[0], pair.b, places_[1]),
        reasons_(pair.a, pair.b, tokens_, same_weights(*pair.a.weights, *pair.b.weights)) {}

  void run() {
    if (const auto prompts = tokens_.prompts()) pair_.differences.push_back({"prompts", *prompts});
    if (const auto& shifted = tokens_.shifted())
      pair_.differences.push_back({"positions", *shifted});
    const std::string* const of_a = find(dumps_[0]->attributes, "defined_order");
    const std::string* const of_b = find(dumps_[1]->attributes, "defined_order");
    one_order_ = of_a != nullptr && of_b != nullptr && *of_a == *of_b && !of_a->empty();
    for (const Partners& partners : pair_.same ? partners_by_places(pair_.a, pair_.b, matcher_)
                                               : partners_by_id(pair_.a, pair_.b))
      add(partners);
    for (std::size_t i = 0; i < pair_.rows.size(); ++i) {
      const Likeness likeness = pair_.rows[i].likeness;
      if (is_wrong(likeness) && !pair_.first) pair_.first = i;
      const bool both = likeness == Likeness::both_wrong;
      if ((likeness == Likeness::a_wrong || both) && !pair_.first_a) pair_.first_a = i;
      if ((likeness == Likeness::b_wrong || both) && !pair_.first_b) pair_.first_b = i;
    }
  }

 private:
  const JudgedTrace& trace(bool of_b) const { return of_b ? pair_.b : pair_.a; }
  const JudgedValue& value(bool of_b, std::size_t row) const { return trace(of_b).values[row]; }

  void add(const Partners& partners) {
    PairRow row;
    row.a = partners.a, row.b = partners.b;
    row.turned = partners.turned, row.more = partners.more;
    const bool only_b = !row.a;
    const std::size_t own = only_b ? *row.b : *row.a;
    row.title = trace(only_b).verdict.rows[own].title;
    const Meaning meaning = value(only_b, own).subject.meaning;
    row.input = !trace(only_b).verdict.rows[own].of_run;
    if (row.paired())
      judge(row, meaning);
    else
      judge_alone(row, only_b, own);
    pair_.rows.push_back(std::move(row));
  }

  /// A value that one trace has.
  void judge_alone(PairRow& row, bool of_b, std::size_t own) {
    const JudgedValue& value = this->value(of_b, own);
    row.coarser = value.stored;
    std::string reason;
    if (value.wrong) {
      row.likeness = of_b ? Likeness::b_wrong : Likeness::a_wrong;
      reason = wrong(row);
    } else {
      row.why = of_b ? "only in B" : "only in A";
      if (!value.right && value.has_numbers && !row.input)
        reason = fmt::format("{} is not judged, and {} has none", row.title, of_b ? "A" : "B");
    }
    // What agrees with its operands passes on their reasons: it is not settled.
    if (!reason.empty()) reasons_.settle(of_b, value.subject, reason);
  }

  static std::string wrong(const PairRow& row) {
    return fmt::format("{} is {}", row.title,
                       row.likeness == Likeness::not_the_same ? "not the same"
                       : row.likeness == Likeness::both_wrong ? "wrong in both"
                       : row.likeness == Likeness::a_wrong    ? "wrong in A"
                                                              : "wrong in B");
  }

  void judge(PairRow& row, Meaning meaning) {
    const Row &in_a = pair_.a.verdict.rows[*row.a], &in_b = pair_.b.verdict.rows[*row.b];
    const JudgedValue &of_a = value(false, *row.a), &of_b = value(true, *row.b);
    row.coarser = row_of(of_a.stored).unit >= row_of(of_b.stored).unit ? of_a.stored : of_b.stored;
    row.other_tokens =
        tokens_.other(false, of_a.subject.pass) || tokens_.other(true, of_b.subject.pass);
    const bool same = measure(row, meaning);
    bool a_wrong = of_a.wrong, b_wrong = of_b.wrong;
    bool a_right = of_a.right, b_right = of_b.right;
    std::string why = a_right ? why_not_judged(in_b) : why_not_judged(in_a);
    std::string reason = reasons_.of_operands(false, of_a.subject);
    if (reason.empty()) reason = reasons_.of_operands(true, of_b.subject);
    for (const std::size_t other : row.more) {
      const Row& judged = trace(!row.turned).verdict.rows[other];
      const bool was_right = a_right && b_right;
      (row.turned ? a_wrong : b_wrong) |= value(!row.turned, other).wrong;
      const bool right = value(!row.turned, other).right;
      (row.turned ? a_right : b_right) &= right;
      if (was_right && !right) why = why_not_judged(judged);
      if (reason.empty())
        reason = reasons_.of_operands(!row.turned, value(!row.turned, other).subject);
    }
    std::string passed_on;
    if (a_wrong || b_wrong) {
      row.likeness = a_wrong && b_wrong ? Likeness::both_wrong
                     : a_wrong          ? Likeness::a_wrong
                                        : Likeness::b_wrong;
      passed_on = wrong(row);
    } else if (row.apart.elements == 0) {
      if (row.why.empty()) row.why = "they have no element in common";
      passed_on = fmt::format("{} is not judged", row.title);
    } else if (same) {
      row.likeness = Likeness::same;
    } else if (meaning == Meaning::ids && in_a.fit == Fit::not_judged) {
      row.why = reason.empty() ? in_a.why : reason;
      passed_on = row.why;
    } else if (!a_right || !b_right) {
      row.why = fmt::format("in {}: {}", a_right ? "B" : "A", why);
      passed_on = fmt::format("{} is not judged", row.title);
    } else if (!reason.empty()) {
      row.likeness = Likeness::operands;
      row.why = passed_on = reason;
    } else if (holds_bits(of_a, of_b) && !row.other_tokens) {
      row.likeness = Likeness::not_the_same;
      row.why = "both claim one defined order of sums";
      passed_on = wrong(row);
    } else {
      row.likeness = Likeness::rounding;
      if (row.other_tokens)
        row.why = "of other tokens since a near tie: each is judged by itself";
      else if (in_a.fit == Fit::loose || in_b.fit == Fit::loose)
        row.why = fmt::format("in {} its own bound is wide", in_a.fit == Fit::loose ? "A" : "B");
    }
    settle(false, *row.a, passed_on);
    settle(true, *row.b, passed_on);
    for (const std::size_t other : row.more) settle(!row.turned, other, passed_on);
    if (row.why.empty() && passed_on.empty() && (in_a.incomplete || in_b.incomplete))
      row.why = "not every element is in both";
    if (meaning == Meaning::token) part(row);
  }

  /// Says what later values are told. Those of a trace are not made of an incomplete value, but of
  /// what its own operands imply.
  void settle(bool of_b, std::size_t row, const std::string& why) {
    if (!why.empty() || !trace(of_b).verdict.rows[row].incomplete)
      reasons_.settle(of_b, value(of_b, row).subject, why);
  }

  /// Returns whether a relation holds bit for bit.
  bool holds_bits(const JudgedValue& a, const JudgedValue& b) const {
    // Partial sums of the exact regime are near what they stand for.
    const bool one = one_order_ || (a.exact && b.exact && !partial_);
    return pair_.same && one && a.stored == b.stored && !computed_;
  }

  /// Measures how far the numbers are apart; returns whether all bits are the same.
  bool measure(PairRow& row, Meaning meaning) {
    const ValueAgain read_a = read(false, *row.a), read_b = read(true, *row.b);
    const DumpedValue &a = read_a.value, &b = read_b.value;
    const WholeValue whole_a = whole_value(a);
    const WholeValue whole_b = whole_value(b);
    const bool parts = whole_a.computed || whole_b.computed;
    computed_ = parts;
    partial_ = a.layout.is_partial() || b.layout.is_partial();
    if (!pair_.same && whole_a.shape != whole_b.shape) {
      row.why = "they have other shapes; --same matches rows and positions";
      return false;
    }
    const std::string& name = a.subject.name;
    const bool masked =
        is_masked(a.subject.dims, name) && (pair_.a.claim.masked_any || pair_.b.claim.masked_any);
    bool copies = whole_a.copies_differ || whole_b.copies_differ;
    if (pair_.same) {
      std::map<std::size_t, WholeValue> others;  // of the trace that is matched
      const bool turned = row.turned;
      const auto each = [&](const auto& see) {
        matcher_.each(turned, turned ? *row.b : *row.a,
                      [&](std::int64_t mine, const Matcher::Partner& partner) {
                        const auto [other, is_new] = others.try_emplace(partner.array);
                        if (is_new) other->second = whole_value(read(!turned, partner.array).value);
                        copies = copies || other->second.copies_differ;
                        const WholeValue& own = turned ? whole_b : whole_a;
                        if (!own.present[at(mine)] || !other->second.present[at(partner.element)])
                          return;
                        const double x = own.numbers[at(mine)],
                                     y = other->second.numbers[at(partner.element)];
                        see(mine, turned ? y : x, turned ? x : y);
                      });
      };
      row.apart = apart(row.coarser, each);
    } else {
      row.apart = apart(row.coarser, [&](const auto& see) {
        for (std::size_t i = 0; i < whole_a.numbers.size(); ++i)
          if (whole_a.present[i] && whole_b.present[i] && !(masked && is_unseen(a.subject, i)))
            see(static_cast<std::int64_t>(i), whole_a.numbers[i], whole_b.numbers[i]);
      });
    }
    if (meaning == Meaning::checkpoint && name == result_of(TextSection::head) &&
        whole_a.shape.size() == 2)
      keep_logits(row, a.subject.pass, b.subject.pass, whole_a, whole_b);
    if (meaning == Meaning::token) token_a_ = whole_a, token_b_ = whole_b;
    if (!row.apart.same() || copies) return false;
    if (!parts) return true;
    const Claim &of_a = pair_.a.claim, &of_b = pair_.b.claim;
    return !pair_.same && of_a.heads == of_b.heads && of_a.pairs == of_b.pairs && same_shards(a, b);
  }
  bool is_unseen(const Subject& s, std::size_t i) const {
    const PassPlaces& places = places_[0].at(s.pass);
    const std::size_t M = at(s.shape.back()), H = at(s.shape[2]);
    const std::size_t token = i / M / H;
    if (s.last || token >= places.positions.size()) return false;
    return static_cast<std::int64_t>(i % M) > places.positions[token];
  }

  ValueAgain read(bool of_b, std::size_t row) const {
    return read_value(*dumps_[of_b ? 1 : 0], value(of_b, row).name,
                      trace(of_b).verdict.rows[row].title, trace(of_b).claim, *trace(of_b).weights);
  }

  void keep_logits(const PairRow&, const std::string& pass, const std::string& pass_of_b,
                   const WholeValue& a, const WholeValue& b) {
    const PassPlaces &in_a = places_[0].at(pass), &in_b = places_[1].at(pass_of_b);
    logits_ = {pass, a, b, {}, pair_.a.claim.source_case.model.softmax == Softmax::base2};
    pass_of_b_ = pass_of_b;
    const auto place = [](const PassPlaces& of, std::int64_t row) {
      const std::int64_t position = of.last_position(row);
      return std::pair(of.rows[at(row)].empty() || position < 0 ? -1 : of.rows[at(row)][0],
                       position);
    };
    for (std::int64_t row = 0; row < in_a.B; ++row) {
      std::int64_t& other = logits_.row_of_b.emplace_back(-1);
      const auto mine = place(in_a, row);
      if (mine.first < 0 || !tokens_.same_before(mine.first, in_a.last_own(row))) continue;
      for (std::int64_t of_b = 0; of_b < in_b.B; ++of_b)
        if (place(in_b, of_b) == mine) other = of_b;
    }
    for (PositionOfLogits& position :
         positions_of(logits_, pair_.a.wander, pair_.b.wander, pass_of_b))
      pair_.logits.push_back(std::move(position));
  }

  /// Holds tokens that differ, after the same ones, against the margins of their logits.
  void part(PairRow& row) {
    const std::string& pass = value(false, *row.a).subject.pass;
    if (row.apart.unequal == 0) return;
    const PassPlaces &in = places_[0].at(pass),
                     &of_b = places_[1].at(value(true, *row.b).subject.pass);
    bool any = false;
    const bool agree = reasons_.of_operands(false, value(false, *row.a).subject).empty() &&
                       reasons_.of_operands(true, value(true, *row.b).subject).empty();
    for (std::int64_t b = 0; b < std::min<std::int64_t>(in.B, std::ssize(token_a_.numbers)); ++b) {
      const std::int64_t position = in.last_position(b);
      if (!token_a_.present[at(b)] || position < 0 || in.rows[at(b)].empty()) continue;
      const std::int64_t number = in.rows[at(b)][0];
      for (std::int64_t other = 0; other < of_b.B; ++other) {
        if (of_b.rows[at(other)] != in.rows[at(b)] || of_b.last_position(other) != position ||
            !token_b_.present[at(other)] || token_a_.numbers[at(b)] == token_b_.numbers[at(other)])
          continue;
        if (row.likeness == Likeness::rounding) tokens_.allow(number, in.last_own(b) + 1);
        if (!tokens_.same_before(number, in.last_own(b))) continue;
        Parting parting;
        parting.pass = pass, parting.row = b;
        parting.token_a = static_cast<std::int64_t>(token_a_.numbers[at(b)]);
        parting.token_b = static_cast<std::int64_t>(token_b_.numbers[at(other)]);
        parting.margin_a = parting.margin_b = std::nan("");
        if (logits_.pass == pass)
          hold_against_logits(parting, logits_, pair_.a.wander, pair_.b.wander, pass_of_b_);
        // Of a wrong token value other rows may be right.
        const bool own = parting.margin_a >= 0 && parting.margin_b >= 0;
        parting.says = is_wrong(row.likeness) && !own ? Parting::Says::wrong
                       : row.likeness == Likeness::rounding || (own && agree)
                           ? Parting::Says::near_tie
                           : Parting::Says::unclear;
        any = any || parting.says == Parting::Says::near_tie;
        pair_.partings.push_back(parting);
      }
    }
    if (any && row.likeness == Likeness::rounding)
      row.why = "a near tie: the margin is below what rounding moves";
  }

  Pair& pair_;
  std::array<const Dump*, 2> dumps_;
  std::array<TokenPlaces, 2> places_;
  Matcher matcher_;
  Tokens tokens_;
  Reasons reasons_;
  bool one_order_ = false, computed_ = false, partial_ = false;
  LogitsOfBoth logits_;  // of the last pass
  std::string pass_of_b_;
  WholeValue token_a_, token_b_;
};

}  // namespace

void pair_values(Pair& pair, const Dump& a, const Dump& b) { Pairing(pair, a, b).run(); }

}  // namespace shardproof::dump
