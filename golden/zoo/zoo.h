#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "golden/diagnosis/diagnosis.h"
#include "golden/trace/read/dump.h"
#include "golden/zoo/faults.h"
#include "weights/base/error.h"

namespace shardproof::zoo {

/// What is said of a dump.
struct Answer {
  std::string line;                           ///< its case line, in full
  std::string first;                          ///< first divergence, as in the file; "" if none
  std::vector<diagnosis::Hypothesis> causes;  ///< of it, as diagnosis::diagnose returns them
};

/// Judges a dump, with the weights of its case's seed, and explains its first divergence. Throws
/// Error("zoo_dump", ...) if it is of a weights file or of the field regime, Error("memory_c1",
/// ...) and what reading its claim and its values throws.
Answer answer_of(const dump::Dump& dump);

/// Returns the kinds that explain the value as well as the first one does: with its residual.
/// Empty if nothing explains it.
std::vector<std::string> leading_kinds(const std::vector<diagnosis::Hypothesis>& causes);

/// How many kinds may lead together if one of them is to be the cause.
inline constexpr std::size_t kMostKinds = 3;

/// The result of checking a dump.
struct CheckResult {
  enum class Verdict {
    named,      ///< the first divergence is right, and the cause leads
    unnamed,    ///< the first divergence is right; listed as not named yet, and nothing explains it
    different,  ///< anything else
  };
  Verdict verdict = Verdict::different;
  std::string said;   ///< the leading kinds: "mask, stale slot"; "nothing explains it"
  std::string fault;  ///< how it differs from what is listed; "" if it does not
};
std::string_view to_string(CheckResult::Verdict verdict);

/// Compares what is said of a dump with what has to be. Throws what parse_case throws for the
/// listed case.
CheckResult check(const Specimen& specimen, const Answer& answer);

/// The identity of a released zoo.
struct Release {
  int version;
  std::string_view manifest;  ///< its sha256
  std::int64_t faults, dumps;
};
/// Every released version; entries never change.
const std::vector<Release>& released();

/// The result of checking a whole zoo.
struct CheckedZoo {
  const Release* release = nullptr;  ///< null if its manifest is not a released one
  std::int64_t faults = 0, dumps = 0, named = 0, unnamed = 0;
  std::string fault;  ///< of the zoo as a whole

  /// Returns 0 if there is a dump and none is different, otherwise 1.
  int exit_code() const;
};

/// Called for each dump when it is done.
using Progress = std::function<void(const Specimen&, const CheckResult&)>;

/// Returns whether a folder is a zoo's: it has a list of faults.
bool is_zoo(const std::filesystem::path& folder);

/// Checks the sums of all files, then every dump. Throws Error: what corpus::parse_manifest and
/// corpus::require_listed throw, "corpus_open" (no manifest, no list), what parse_faults throws,
/// "zoo_faults" (the list and the files do not match), what read_dump and answer_of throw.
CheckedZoo check_zoo(const std::filesystem::path& folder, const Progress& progress);

}  // namespace shardproof::zoo
