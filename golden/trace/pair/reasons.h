#pragma once

#include <map>
#include <set>
#include <string>

#include "golden/trace/pair/side.h"
#include "golden/trace/pair/tokens.h"

namespace shardproof::dump {

/// Why the operands of values are apart in two traces, if for another reason than rounding: an
/// earlier value that is wrong, not judged or of such operands itself; other weights; other tokens.
/// A value that both lack passes on the reasons of its own operands, from which it is derived.
class Reasons {
 public:
  /// All arguments outlive it.
  Reasons(const JudgedTrace& a, const JudgedTrace& b, const Tokens& tokens, bool same_weights);

  /// Says of a value of A, or of B, that it agrees with the other trace's (`why` empty), or why it
  /// does not. Of several arrays of a value, one reason counts.
  void settle(bool of_b, const Subject& value, const std::string& why);
  /// Returns why a value's operands do not agree; "" if they do.
  std::string of_operands(bool of_b, const Subject& value) const;

 private:
  std::string of_value(bool of_b, const std::string& id, std::set<std::string>& seen) const;
  std::string of_all_before(bool of_b) const;

  const JudgedTrace* traces_[2];
  const Tokens& tokens_;
  bool same_weights_;
  std::map<std::string, std::string> settled_[2];  ///< by id; "": agrees
  std::string first_[2];                           ///< the first reason
};

}  // namespace shardproof::dump
