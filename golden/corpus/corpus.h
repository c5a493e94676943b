#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "golden/corpus/golden.h"
#include "golden/corpus/manifest.h"
#include "weights/base/error.h"

namespace shardproof::corpus {

/// The file that lists a corpus's goldens.
inline constexpr std::string_view kCases = "CASES";

/// A golden of a corpus: ID.h5.
struct Entry {
  std::string id;    ///< "l2/ws2d-heads"
  std::string line;  ///< argument of made_golden()
};

/// Reads a text of lines "ID LINE"; empty lines and those that begin with # are skipped. Throws
/// Error("corpus_cases", ...) naming the line: an id that is not of lower-case letters, digits,
/// '-', '.' and '/' or occurs twice, an id without a golden, no line at all.
std::vector<Entry> parse_cases(std::string_view text);

/// Called for each golden when it is done.
using Progress = std::function<void(const Entry&, const CheckResult&)>;

/// Makes every golden of `cases` and writes them with the text itself and the manifest into
/// `folder`, which must be empty or absent. Throws Error: "golden_write" (a folder that holds
/// files, or a failed write), and what parse_cases and made_golden throw.
void write_corpus(std::string_view cases, const std::filesystem::path& folder,
                  const Progress& progress);

/// The identity of a released corpus.
struct Release {
  int version;
  std::string_view manifest;  ///< its sha256
  std::int64_t goldens, values;
};
/// Every released version; entries never change.
const std::vector<Release>& released();

/// The result of checking a whole corpus.
struct CheckedCorpus {
  const Release* release = nullptr;  ///< null if its manifest is not a released one
  std::int64_t goldens = 0, equal = 0, values = 0;
  std::string fault;  ///< of the corpus as a whole: counts differ from the release

  /// Returns 0 if there is a golden and every one is equal, otherwise 1.
  int exit_code() const;
};

/// Checks the sums of all files, then every golden. Throws Error: what parse_manifest and
/// require_listed throw, "corpus_open" (no manifest, no cases), what parse_cases throws,
/// "corpus_cases" (the cases and the files do not match), what read_dump throws.
CheckedCorpus check_corpus(const std::filesystem::path& folder, const Progress& progress);

}  // namespace shardproof::corpus
