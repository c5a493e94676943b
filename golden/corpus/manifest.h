#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "weights/base/error.h"

namespace shardproof::corpus {

/// The file that lists all other files of a corpus with their sums, in the format of sha256sum.
inline constexpr std::string_view kManifest = "MANIFEST.sha256";

struct ManifestEntry {
  std::string sum;   ///< 64 hexadecimal digits
  std::string path;  ///< in the corpus's folder: "l2/ws2d-heads.h5"
  bool operator==(const ManifestEntry&) const = default;
};

/// Throws Error("corpus_manifest", ...) naming the line: not a sum and a path; a path that is
/// absolute, leaves the folder or occurs twice; nothing listed.
std::vector<ManifestEntry> parse_manifest(std::string_view text);
std::string print_manifest(const std::vector<ManifestEntry>& files);

/// Returns the paths of all files below a folder except the manifest, sorted. Throws
/// Error("corpus_open", ...) if the folder cannot be read.
std::vector<std::string> files_below(const std::filesystem::path& folder);

/// Checks that the folder holds exactly the listed files, with these sums. Throws Error:
/// "corpus_checksum" (a file that is missing or has another sum: path and both sums),
/// "corpus_files" (a file that is not listed), "corpus_open".
void require_listed(const std::filesystem::path& folder, const std::vector<ManifestEntry>& files);

}  // namespace shardproof::corpus
