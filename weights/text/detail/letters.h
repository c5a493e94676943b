#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weights/base/error.h"
#include "weights/text/model_text.h"

namespace shardproof {

/// Throws Error(label, why).
[[noreturn]] inline void refuse(std::string_view label, const std::string& why) {
  throw Error(label, why);
}

inline bool has(std::string_view letters, char letter) {
  return letters.find(letter) != std::string_view::npos;
}
/// Returns whether each of the letters is one of `of`.
bool all_among(std::string_view letters, std::string_view of);
/// Returns the letters without those of `of`.
std::string without(std::string_view letters, std::string_view of);

/// A name that lines may read.
struct KnownName {
  std::string letters;
  std::vector<std::optional<Guard>> guards;  ///< of each definition
  bool indicator = false;

  /// Returns whether it exists in every layer that has a line of this guard.
  bool exists_for(const std::optional<Guard>& guard) const;
};

/// The names that a line may read, and its own guard.
struct NameScope {
  const ModelText& text;
  std::map<std::string, KnownName, std::less<>> known = {};
  std::map<std::string, std::string, std::less<>> section = {};  ///< letters of all its values
  std::optional<Guard> guard = {};

  /// Throws Error("model_c1", ...) unless the name is known and exists where the line does.
  const KnownName& named(const std::string& name) const;
  void require_letters(std::string_view letters) const;  ///< throws Error("model_c1", ...)
};

/// Returns the letters of an expression's value, in the op's order; "" for a number. Throws Error:
/// what NameScope throws, and the rules model_c6 to model_c12 that speak of ops
/// (weights/text/rules.h).
std::string letters_of(const NameScope& scope, const Expression& expression);

}  // namespace shardproof
