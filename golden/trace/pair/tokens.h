#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "golden/trace/pair/places.h"
#include "golden/trace/pair/side.h"

namespace shardproof::dump {

/// The tokens that two runs read, by row and position in the runs themselves: what is not to be
/// matched is read by what follows it, too. Drafts behind a row's last token that is are left out.
class Tokens {
 public:
  Tokens(const JudgedTrace& a, const TokenPlaces& places_a, const JudgedTrace& b,
         const TokenPlaces& places_b);

  /// Returns in words how the prompts differ; nullopt if they do not, where both are known.
  std::optional<std::string> prompts() const;
  /// Returns in words how tokens that are matched have other positions in their runs; nullopt if
  /// none has.
  const std::optional<std::string>& shifted() const { return shifted_; }
  /// Returns why a pass's own tokens in one trace are not those of the other, or not known; "" if
  /// they are. What decode steps read may differ where allow() says so.
  std::string reason(bool of_b, const std::string& pass) const;
  /// Returns why what a pass reads, in itself and before, is known to differ; "" if it is not.
  std::string reason_before(bool of_b, const std::string& pass) const;
  /// Returns whether, up to this pass, a row read another token than the other trace's.
  bool other(bool of_b, const std::string& pass) const;
  /// Returns whether the tokens of a row up to a position are the same in both.
  bool same_before(std::int64_t row, std::int64_t position) const;
  /// Says that what a row reads at a position may differ: each trace chose it rightly, of logits
  /// that are apart by rounding, or after other such tokens.
  void allow(std::int64_t row, std::int64_t position) { allowed_.insert({row, position}); }

 private:
  struct Of {
    std::int32_t id = -1;
    bool decoded = false;
    std::int64_t matched = -1;  // the position by which it is; -1: it is not
  };
  struct OfPass {
    bool differ_in_prompt = false, unknown = false;
    std::set<std::pair<std::int64_t, std::int64_t>> differ;  // by row and position
    std::string why;
  };
  using ByPlace = std::map<std::pair<std::int64_t, std::int64_t>, Of>;
  static ByPlace read(const JudgedTrace& of, const TokenPlaces& places);
  std::string reason(const OfPass& of, const std::string& pass) const;
  void find_shifted();

  ByPlace tokens_[2];
  std::map<std::string, OfPass> passes_[2];
  std::map<std::int64_t, std::int64_t> first_other_;  // by row the first position that differs
  std::int64_t differ_ = 0, both_ = 0;                // of the prompts
  std::string first_;
  std::optional<std::string> shifted_;
  std::set<std::pair<std::int64_t, std::int64_t>> allowed_;
};

}  // namespace shardproof::dump
