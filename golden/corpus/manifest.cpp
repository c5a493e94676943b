#include "golden/corpus/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "golden/corpus/detail/sha256.h"
#include "weights/base/detail/words.h"

namespace shardproof::corpus {
namespace {

constexpr std::size_t kDigits = 64;

bool is_sum(std::string_view text) {
  return text.size() == kDigits && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

bool stays_inside(const std::filesystem::path& path) {
  return path.is_relative() && std::none_of(path.begin(), path.end(), [](const auto& part) {
           return part == ".." || part == "." || part.empty();
         });
}

}  // namespace

std::vector<ManifestEntry> parse_manifest(std::string_view text) {
  std::vector<ManifestEntry> files;
  std::set<std::string, std::less<>> seen;
  int number = 0;
  if (text.ends_with('\n')) text.remove_suffix(1);
  for (const std::string_view line : split(text, "\n")) {
    ++number;
    const auto refuse = [&](std::string_view why) {
      throw Error("corpus_manifest",
                  fmt::format("line {}: {:?}: {}", number, line.substr(0, 200), why));
    };
    // Two blanks, or for a binary file a blank and a star.
    if (line.size() < kDigits + 3 || !is_sum(line.substr(0, kDigits)) || line[kDigits] != ' ' ||
        (line[kDigits + 1] != ' ' && line[kDigits + 1] != '*'))
      refuse("no sum of 64 hexadecimal digits, two blanks and a path");
    const std::string_view path = line.substr(kDigits + 2);
    if (path.empty() || !stays_inside(path)) refuse("a path that is not below the corpus");
    if (!seen.emplace(path).second) refuse("listed twice");
    files.push_back({std::string(line.substr(0, kDigits)), std::string(path)});
  }
  return files;
}

std::string print_manifest(const std::vector<ManifestEntry>& files) {
  std::string text;
  for (const ManifestEntry& file : files) text += fmt::format("{}  {}\n", file.sum, file.path);
  return text;
}

std::vector<std::string> files_below(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  std::vector<std::string> paths;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    if (at->is_directory(error) && !at->is_symlink(error)) continue;
    std::string path = at->path().lexically_relative(folder).generic_string();
    if (path != kManifest) paths.push_back(std::move(path));
  }
  if (error) throw Error("corpus_open", fmt::format("{:?}: {}", folder.string(), error.message()));
  std::sort(paths.begin(), paths.end());
  return paths;
}

void require_listed(const std::filesystem::path& folder, const std::vector<ManifestEntry>& files) {
  std::set<std::string> listed;
  for (const ManifestEntry& file : files) {
    const std::filesystem::path path = folder / file.path;
    std::error_code error;
    if (!std::filesystem::exists(path, error))
      throw Error("corpus_checksum",
                  fmt::format("{:?} is listed in {} and not there", path.string(), kManifest));
    const std::string sum = sha256_of(path);
    if (sum != file.sum)
      throw Error("corpus_checksum",
                  fmt::format("{:?} has the sha256 {}..., {} says {}...", path.string(),
                              sum.substr(0, 12), kManifest, file.sum.substr(0, 12)));
    listed.insert(file.path);
  }
  for (const std::string& path : files_below(folder))
    if (!listed.contains(path))
      throw Error("corpus_files",
                  fmt::format("{:?} is not listed in {}", (folder / path).string(), kManifest));
}

}  // namespace shardproof::corpus
