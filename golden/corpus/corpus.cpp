#include "golden/corpus/corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "golden/corpus/detail/listed.h"
#include "golden/corpus/detail/sha256.h"
#include "golden/corpus/model.h"
#include "weights/base/detail/replace_file.h"
#include "weights/base/detail/words.h"

namespace shardproof::corpus {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".h5";

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw Error("golden_write", fmt::format("{:?}: {}", folder.string(), error.message()));
}

/// Checks that the cases and the listed files name the same goldens.
void require_cases(const std::vector<Entry>& entries, const std::vector<ManifestEntry>& files) {
  std::set<std::string> paths;
  for (const ManifestEntry& file : files) paths.insert(file.path);
  if (paths.erase(std::string(kCases)) == 0)
    throw Error("corpus_cases", fmt::format("{} is not listed in {}", kCases, kManifest));
  for (const Entry& entry : entries)
    if (paths.erase(entry.id + std::string(kSuffix)) == 0)
      throw Error("corpus_cases", fmt::format("{} has {}, and {} no {}{}", kCases, entry.id,
                                              kManifest, entry.id, kSuffix));
  if (!paths.empty())
    throw Error("corpus_cases", fmt::format("{} lists {}, and {} no such golden", kManifest,
                                            *paths.begin(), kCases));
}

/// Returns how a golden differs from its line of cases; "" if it does not.
std::string line_difference(const Entry& entry, const dump::Dump& golden) {
  try {
    const std::string asked = full_line(entry.line), found = line_of(golden);
    return asked == found ? ""
                          : fmt::format("it is of \"{}\", {} says \"{}\"", found, kCases, asked);
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

std::vector<Entry> parse_cases(std::string_view text) {
  std::vector<Entry> entries;
  std::set<std::string, std::less<>> seen;
  int number = 0;
  for (const std::string_view line : split(text, "\n")) {
    ++number;
    if (line.empty() || line.front() == '#') continue;
    const auto refuse = [&](std::string_view why) {
      throw Error("corpus_cases",
                  fmt::format("line {}: {:?}: {}", number, line.substr(0, 200), why));
    };
    const std::string_view id = line.substr(0, line.find(' '));
    if (!is_id(id)) refuse("an id has small letters, digits, '-', '.' and '/'");
    if (!seen.emplace(id).second) refuse("an id that occurs twice");
    const std::string_view rest = trim(line.substr(id.size()));
    if (rest.empty()) refuse("no golden after the id");
    entries.push_back({std::string(id), std::string(rest)});
  }
  if (entries.empty()) throw Error("corpus_cases", "no golden is named");
  return entries;
}

void write_corpus(std::string_view cases, const fs::path& folder, const Progress& progress) {
  const std::vector<Entry> entries = parse_cases(cases);
  std::error_code error;
  if (fs::exists(folder, error) &&
      !(fs::is_directory(folder, error) && fs::is_empty(folder, error)))
    throw Error("golden_write", fmt::format("{:?} is not an empty folder: a corpus is written once",
                                            folder.string()));
  for (const Entry& entry : entries) {
    const dump::Dump golden = made_golden(entry.line);
    const fs::path path = folder / (entry.id + std::string(kSuffix));
    make_folder(path.parent_path());
    save(golden, path);
    progress(entry, {kind_of(golden), std::ssize(golden.order), ""});
  }
  replace_file(folder / kCases, cases, "golden_write");
  std::vector<ManifestEntry> files;
  for (const std::string& path : files_below(folder))
    files.push_back({sha256_of(folder / path), path});
  replace_file(folder / kManifest, print_manifest(files), "golden_write");
}

int CheckedCorpus::exit_code() const {
  return goldens > 0 && equal == goldens && fault.empty() ? 0 : 1;
}

CheckedCorpus check_corpus(const fs::path& folder, const Progress& progress) {
  const std::string manifest = list_text(folder / kManifest, "manifest of a corpus");
  const std::vector<ManifestEntry> files = parse_manifest(manifest);
  require_listed(folder, files);
  const std::vector<Entry> entries =
      parse_cases(list_text(folder / kCases, "list of the cases of a corpus"));
  require_cases(entries, files);
  CheckedCorpus found;
  const std::string sum = sha256_of(folder / kManifest);  // sum of its bytes
  for (const Release& release : released())
    if (release.manifest == sum) found.release = &release;
  for (const Entry& entry : entries) {
    const dump::Dump golden = dump::read_dump(folder / (entry.id + std::string(kSuffix)));
    CheckResult checked = check(golden);
    if (checked.fault.empty()) checked.fault = line_difference(entry, golden);
    ++found.goldens;
    if (checked.fault.empty()) {
      ++found.equal;
      found.values += checked.values;
    }
    progress(entry, checked);
  }
  if (found.release != nullptr && found.equal == found.goldens &&
      (found.goldens != found.release->goldens || found.values != found.release->values))
    found.fault = fmt::format("{} goldens, {} values; released were {} and {}", found.goldens,
                              found.values, found.release->goldens, found.release->values);
  return found;
}

const std::vector<Release>& released() {
  static const std::vector<Release> versions = {
      {1, "499d717f33f9e63e7bf114ddd0322abaa2b1dcf804fa51976ce91c5da4936e14", 57, 4853},
  };
  return versions;
}

}  // namespace shardproof::corpus
