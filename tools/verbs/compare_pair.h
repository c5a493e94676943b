#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "tools/report/pair_comparison.h"
#include "weights/base/error.h"

namespace shardproof::tools {

/// The flags of `compare A B` besides those of `compare FILE`.
struct PairFlags {
  std::string file;  ///< the second trace; "": there is one
  bool same = false;
  std::string model;                ///< "none", or ""
  std::optional<std::string> line;  ///< of the second's case
  std::string weights_file;         ///< of the second's run; "": the first's
  int runs = -1;
};

/// How a result is printed and kept.
struct PairOutput {
  std::string html;  ///< a file to write; "": none
  bool json = false, quiet = false;
};

/// Adds the flags, which need the option of the second trace.
void add_pair_flags(CLI::App& verb, PairFlags& flags, CLI::Option& other);
/// Throws Error("compare_model", ...) if --model is not none.
void require_pair_flags(const PairFlags& flags);
/// Compares two traces and prints the result; returns the exit code.
int compare_two(const dump::Dump& a, const dump::Dump& b, const ComparisonRequest& of_a,
                const PairFlags& flags, const PairOutput& output);

}  // namespace shardproof::tools
