#pragma once

// Two traces of one model, as two engines write them.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "golden/trace/pair/pair.h"
#include "tests/golden/trace/engine.h"

namespace shardproof::dump {

inline const std::string kPairModel = "torus=1x1x1 model=llama,layers=2,E=16,F=24,H=4,K=2,Q=4,V=30";

/// What module hooks see, and all between q and attn.
inline const std::set<std::string> kAllNames =
    with(kHooks, {"score", "max", "exp", "denom", "gate", "up"});

/// Compares traces of two runs, each judged by its own weights.
inline Pair pair_of(const ExactRun& run_a, const Dump& a, const ExactRun& run_b, const Dump& b,
                    bool same = false, int runs = 2) {
  const auto claimed = [](const ExactRun& run, const Dump& dump) {
    return ClaimedTrace{dump, read_claim(dump.attributes, std::nullopt),
                        std::make_shared<const Weights>(run.weights())};
  };
  return compare_pair(claimed(run_a, a), claimed(run_b, b), {.same = same, .runs = runs});
}
inline Pair pair_of(const ExactRun& run, const Dump& a, const Dump& b, bool same = false,
                    int runs = 2) {
  return pair_of(run, a, run, b, same, runs);
}

inline const PairRow& pair_row(const Pair& pair, const std::string& title) {
  for (const PairRow& row : pair.rows)
    if (row.title == title) return row;
  throw std::runtime_error(title);
}
inline std::string first_of(const Pair& pair) {
  return pair.first ? pair.rows[*pair.first].title : "";
}
inline std::string open_rows(const Pair& pair) {
  std::string out;
  for (const PairRow& row : pair.rows)
    if (row.paired() && row.likeness != Likeness::same && row.likeness != Likeness::rounding)
      out += row.title + ": " + std::string(to_string(row.likeness)) + ": " + row.why + "\n";
  return out;
}

/// Adds to one number of a value that is stored whole in f64.
inline void shift(Dump& dump, const std::string& name, std::size_t i, double by) {
  StoredArray& array = dump.values.find(name)->second.whole;
  poke(array, i, array.at(i) + by);
}

/// The trace with these rows of the batch, in this order: dims B are first.
inline Dump with_rows(const Dump& dump, const std::vector<std::int64_t>& rows) {
  Dump out = dump;
  for (auto& [name, value] : out.values) {
    StoredArray& array = value.whole;
    const std::size_t row = array.elements().size() / static_cast<std::size_t>(array.shape[0]);
    std::vector<std::byte> bytes;
    for (const std::int64_t r : rows) {
      const auto first = array.bytes.begin() + r * static_cast<std::ptrdiff_t>(row);
      bytes.insert(bytes.end(), first, first + static_cast<std::ptrdiff_t>(row));
    }
    array.bytes = std::move(bytes);
    array.shape[0] = std::ssize(rows);
  }
  std::string text;
  for (const std::int64_t r : rows) text += (text.empty() ? "" : ",") + std::to_string(r);
  out.attributes["rows"] = text;
  std::string& line = out.attributes["case"];
  const std::size_t at = line.find("batch=");
  line.replace(at, line.find(' ', at) - at, "batch=" + std::to_string(rows.size()));
  return out;
}

}  // namespace shardproof::dump
