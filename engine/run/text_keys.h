#pragma once

#include <span>
#include <string>
#include <string_view>

#include "engine/run/case.h"
#include "weights/base/error.h"

namespace shardproof {

/// A key of a case line, or of a model of keys, for a model that is given as a text
/// (docs/spec-case.md section 6.8).
struct TextCaseKey {
  std::string_view key;
  bool holds = true;
  std::string_view why = {};  ///< the text of the page's table
  /// Returns why a case is refused for its value of the key; "" if it is not. Null: it never is, or
  /// the line's reader refuses it.
  std::string (*refusal)(const Case&) = nullptr;
};

/// Returns the keys of a case line in its order, then the model keys that a text refuses. What
/// require_keys_of_text throws follows from the rows.
std::span<const TextCaseKey> text_case_keys();

}  // namespace shardproof
