#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "weights/base/error.h"

namespace shardproof::corpus {

/// The file that lists all others of a corpus with their sums, as sha256sum writes and checks it.
inline constexpr std::string_view kManifest = "MANIFEST.sha256";

struct Listed {
  std::string sum;   ///< 64 hexadecimal digits
  std::string path;  ///< in the corpus's folder: "l2/ws2d-heads.h5"
  bool operator==(const Listed&) const = default;
};

/// Throws Error("corpus_manifest", ...) naming the line: no sum and path; a path that is absolute,
/// leaves the folder or stands twice; nothing listed.
std::vector<Listed> parse_manifest(std::string_view text);
std::string print_manifest(const std::vector<Listed>& files);

/// Everything below a folder but folders and the manifest, by path, in the order of their names.
/// Throws Error("corpus_open", ...) where the folder cannot be read.
std::vector<std::string> files_below(const std::filesystem::path& folder);

/// That the folder holds just the listed files, with these sums. Throws Error: "corpus_checksum" (a
/// file with another sum, or none there: path and both), "corpus_files" (a file that is not
/// listed), "corpus_open".
void require_listed(const std::filesystem::path& folder, const std::vector<Listed>& files);

}  // namespace shardproof::corpus
