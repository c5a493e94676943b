#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "weights/text/text_model.h"

namespace shardproof::cost {

inline bool contains(const std::string& letters, char letter) {
  return letters.find(letter) != std::string::npos;
}

/// Returns whether each of the letters is one of `of`.
inline bool all_among(const std::string& letters, const std::string& of) {
  return letters.find_first_not_of(of) == std::string::npos;
}

inline bool is_call(const Expression& e, ModelOp op) {
  return e.kind == Expression::Kind::call && e.op == op;
}

/// Returns the names that an expression reads.
std::vector<std::string> names_in(const Expression& e);

/// Returns the first of the layers whose flags are equal, and how many there are.
std::map<std::int64_t, std::int64_t> kinds_of_layers(const TextModel& model);

/// Returns the name in weights files of a weight of the text.
std::string file_name(const TextModel& model, const std::string& name);

/// Returns the elements that a layer's caches hold for one position of one row.
double cached_in(const TextModel& model, std::int64_t layer);

}  // namespace shardproof::cost
