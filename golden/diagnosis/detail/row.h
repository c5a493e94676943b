#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "golden/diagnosis/detail/search.h"

namespace shardproof::diagnosis {

struct Row;

/// Tries each of a fault's candidates. A row's kind, words and parameters are those of a single
/// candidate; an edit that has several gives their own.
using Edit = std::function<void(const Question& question, Search& search, const Row& row)>;

/// When a fault is tried: before all others, which need not explain the value then; for each cut of
/// a whole value too; once; after all others, if none of them holds on all chips; or, if none of
/// what the dump lacks explains it either, last of all.
enum class Stage { first, of_chips, once, last, missing };

/// A fault: its kind, its detail, where it applies, its parameters, and the edit of the graph or of
/// a layout that it is.
struct Row {
  std::string_view fault;
  std::string_view words;  ///< {} stands for what the edit finds
  int parameters = 0;      ///< of explanations of one kind, the lowest number comes first
  bool (*where)(const Question& question) = nullptr;
  Edit edit;
  Stage stage = Stage::once;
};

/// Returns all faults, in the order in which they are tried.
const std::vector<Row>& rows();
/// Returns those of a weight that the dump shows.
const std::vector<Row>& rows_of_weights();

}  // namespace shardproof::diagnosis
