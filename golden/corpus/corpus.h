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

/// The file of a corpus that says which goldens it has.
inline constexpr std::string_view kCases = "CASES";

/// A golden of a corpus: ID.h5.
struct Entry {
  std::string id;    ///< "l2/ws2d-heads"
  std::string line;  ///< what made_golden() takes
};

/// Reads a text of one "ID LINE" a line; empty lines and those that begin with # are skipped.
/// Throws Error("corpus_cases", ...) naming the line: an id that is not of small letters, digits,
/// '-', '.' and '/' or stands twice, no golden after it, none at all.
std::vector<Entry> parse_cases(std::string_view text);

/// Of each golden, as it is done.
using Progress = std::function<void(const Entry&, const Checked&)>;

/// Makes every golden of `cases` and writes them with the text itself and the manifest into
/// `folder`, which is empty or not there yet. Throws Error: "golden_write" (a folder that holds
/// files; what the disk refuses), and what parse_cases and made_golden throw.
void write_corpus(std::string_view cases, const std::filesystem::path& folder,
                  const Progress& progress);

/// What a corpus that was released is known by.
struct Released {
  int version;
  std::string_view manifest;  ///< its sha256
  std::int64_t goldens, values;
};
/// Every version that was: it never changes again.
const std::vector<Released>& released();

/// What a check of a whole corpus found.
struct CheckedCorpus {
  const Released* release = nullptr;  ///< null if its manifest is no released one
  std::int64_t goldens = 0, equal = 0, values = 0;
  std::string fault;  ///< of the corpus as a whole: other counts than were released

  /// 0 if every golden is equal and there is one, else 1.
  int exit_code() const;
};

/// Checks the sums of all files, then every golden. Throws Error: what parse_manifest and
/// require_listed throw, "corpus_open" (no manifest, no cases), what parse_cases throws,
/// "corpus_cases" (the cases and the files are not the same), what read_dump throws.
CheckedCorpus check_corpus(const std::filesystem::path& folder, const Progress& progress);

}  // namespace shardproof::corpus
