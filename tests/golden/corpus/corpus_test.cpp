#include "golden/corpus/corpus.h"

#include <gtest/gtest.h>

#include <cctype>
#include <iostream>
#include <map>

#include "golden/corpus/detail/sha256.h"
#include "tests/golden/corpus/goldens.h"
#include "tests/golden/corpus/refusal.h"
#include "tests/sanitized.h"
#include "tests/weights/folder.h"

namespace shardproof::corpus {
namespace {

/// One golden of each kind.
const std::string kText =
    "# of a test\n"
    "\n"
    "l0/a layouts  2x1x3\n"
    "l1/b collectives 1x2x1\n"
    "c torus=1x2x1 model=palm-tiny,layers=1,E=8,F=8,H=2,Q=4,V=8,positions=4 batch=2 prompt=2 "
    "gen=2\n";

const Progress kQuiet = [](const Entry&, const CheckResult&) {};

TEST(ParseCases, ReadsLines) {
  const std::vector<Entry> entries = parse_cases(kText);
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_EQ(entries[0].id, "l0/a");
  EXPECT_EQ(entries[0].line, "layouts  2x1x3");
  EXPECT_EQ(entries[2].id, "c");
}

TEST(ParseCases, Refuses) {
  for (const char* text : {"", "\n", "# nothing\n"})
    EXPECT_EQ(refusal([&] { parse_cases(text); }), "corpus_cases: no golden is named") << text;
  for (const char* id : {"A", "/a", "a/", "../a", "a/../b", "a//b", "a_b", "a\\b", "\"a\""})
    EXPECT_NE(refusal([&] { parse_cases(std::string(id) + " layouts 1x1x1"); }).find("line 1: "),
              std::string::npos)
        << id;
  EXPECT_EQ(refusal([] { parse_cases("a layouts 1x1x1\na layouts 1x1x2"); }),
            "corpus_cases: line 2: \"a layouts 1x1x2\": an id that occurs twice");
  EXPECT_EQ(refusal([] { parse_cases("a  \n"); }),
            "corpus_cases: line 1: \"a\": no golden after the id");
}

TEST(MadeGolden, KnowsThreeKindsOfLines) {
  for (const Entry& entry : parse_cases(kText)) {
    const dump::Dump golden = made_golden(entry.line);
    EXPECT_EQ(line_of(golden), full_line(entry.line));
    EXPECT_EQ(made_golden(line_of(golden)).attributes, golden.attributes);
  }
  EXPECT_EQ(full_line(" layouts  02x1x3 "), "layouts 2x1x3");
  for (const char* line : {"", "layout 1x1x1", "weights"})
    EXPECT_EQ(refusal([&] { made_golden(line); }).find("corpus_cases"), 0U) << line;
  for (const char* line : {"layouts", "layouts 1x1", "collectives 0x1x1", "torus=0x1x1"})
    EXPECT_EQ(refusal([&] { made_golden(line); }).find("torus_c"), 0U) << line;
}

/// A corpus on the disk, made once.
class SmallCorpus : public testing::Test {
 protected:
  SmallCorpus() {
    static const Folder made;
    static const bool written = [] {
      write_corpus(kText, made / "v0", kQuiet);
      return true;
    }();
    EXPECT_TRUE(written);
    fs::copy(made / "v0", folder_ / "v0", fs::copy_options::recursive);
  }

  fs::path file(const std::string& name) const { return folder_ / "v0" / name; }
  CheckedCorpus found(std::map<std::string, CheckResult>* rows = nullptr) const {
    return check_corpus(folder_ / "v0", [&](const Entry& entry, const CheckResult& checked) {
      if (rows != nullptr) (*rows)[entry.id] = checked;
    });
  }
  std::string refusal_now() const {
    return refusal([&] { found(); });
  }
  /// With a new manifest, as somebody would who wants to hide a change.
  void list_anew() const {
    std::vector<ManifestEntry> files;
    for (const std::string& path : files_below(folder_ / "v0"))
      files.push_back({sha256_of(file(path)), path});
    write_text(std::string(kManifest), print_manifest(files));
  }
  void write_text(const std::string& name, const std::string& text) const {
    write_bytes(file(name), {text.begin(), text.end()});
  }

  Folder folder_;
};

TEST_F(SmallCorpus, IsEqual) {
  std::map<std::string, CheckResult> rows;
  const CheckedCorpus all = found(&rows);
  EXPECT_EQ(all.exit_code(), 0);
  EXPECT_EQ(all.goldens, 3);
  EXPECT_EQ(all.equal, 3);
  EXPECT_EQ(all.fault, "");
  EXPECT_EQ(all.release, nullptr) << "nobody released it";
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows["l0/a"].kind, Kind::layouts);
  EXPECT_EQ(rows["l0/a"].values, 106);
  EXPECT_EQ(rows["l1/b"].kind, Kind::collectives);
  EXPECT_EQ(rows["c"].kind, Kind::model);
  EXPECT_EQ(all.values, rows["l0/a"].values + rows["l1/b"].values + rows["c"].values);
  for (const auto& [id, checked] : rows) EXPECT_EQ(checked.fault, "") << id;
}

TEST_F(SmallCorpus, IsWrittenOnce) {
  const std::string said = refusal([&] { write_corpus(kText, folder_ / "v0", kQuiet); });
  EXPECT_EQ(said.find("golden_write"), 0U) << said;
  EXPECT_NE(said.find("is not an empty folder"), std::string::npos) << said;
  write_bytes(folder_ / "file", {'x'});
  EXPECT_EQ(refusal([&] { write_corpus(kText, folder_ / "file", kQuiet); }).find("golden_write"),
            0U);
  fs::create_directory(folder_ / "empty");
  int written = 0;
  write_corpus("a layouts 1x1x1", folder_ / "empty",
               [&](const Entry&, const CheckResult& checked) { written += int(checked.values); });
  EXPECT_EQ(written, 106);
  EXPECT_EQ(check_corpus(folder_ / "empty", kQuiet).exit_code(), 0);
}

/// The same lines give the same files, wherever and whenever.
TEST_F(SmallCorpus, IsWrittenTheSame) {
  write_corpus(kText, folder_ / "again", kQuiet);
  EXPECT_EQ(bytes_of(folder_ / "again" / std::string(kManifest)),
            bytes_of(file(std::string(kManifest))));
}

TEST_F(SmallCorpus, AFlippedByteInEachFileIsSeen) {
  for (const std::string& path : files_below(folder_ / "v0")) {
    const std::vector<char> before = bytes_of(file(path));
    for (const std::size_t at : {std::size_t{0}, before.size() / 2, before.size() - 1}) {
      std::vector<char> bytes = before;
      bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
      write_bytes(file(path), bytes);
      const std::string said = refusal_now();
      EXPECT_EQ(said.find("corpus_checksum"), 0U) << said;
      EXPECT_NE(said.find(path), std::string::npos) << said;
    }
    write_bytes(file(path), before);
  }
  EXPECT_EQ(refusal_now(), "nothing");
}

TEST_F(SmallCorpus, OtherFilesThanListedAreSeen) {
  write_text("l0/more.h5", "");
  EXPECT_EQ(refusal_now().find("corpus_files"), 0U) << refusal_now();
  fs::remove(file("l0/more.h5"));
  fs::remove(file("c.h5"));
  EXPECT_EQ(refusal_now().find("corpus_checksum"), 0U) << refusal_now();
}

TEST_F(SmallCorpus, NeedsManifestAndCases) {
  const std::string manifest(kManifest), cases(kCases);
  EXPECT_EQ(refusal([&] { check_corpus(folder_ / "none", kQuiet); }).find("corpus_open"), 0U);
  fs::remove(file(cases));
  list_anew();
  EXPECT_EQ(refusal_now().find("corpus_open"), 0U) << refusal_now();
  fs::remove(file(manifest));
  EXPECT_EQ(refusal_now().find("corpus_open"), 0U) << refusal_now();
  write_text(manifest, "");
  EXPECT_EQ(refusal_now().find("corpus_manifest"), 0U) << refusal_now();
}

/// Every change of CASES is hidden by a new manifest: so CASES and files must be the same.
TEST_F(SmallCorpus, OtherCasesThanFilesAreSeen) {
  const auto with = [&](const std::string& text) {
    write_text(std::string(kCases), text);
    list_anew();
    return refusal_now();
  };
  EXPECT_EQ(with(kText + "d layouts 1x1x1\n"),
            "corpus_cases: CASES has d, and MANIFEST.sha256 no d.h5");
  EXPECT_EQ(with(kText.substr(0, kText.find("c torus="))),
            "corpus_cases: MANIFEST.sha256 lists c.h5, and CASES no such golden");
  EXPECT_EQ(with("# none\n"), "corpus_cases: no golden is named");
  // Another golden than the file is.
  for (const auto& [from, to] :
       std::vector<std::pair<std::string, std::string>>{{"layouts  2x1x3", "layouts 3x1x2"},
                                                        {"layouts  2x1x3", "collectives 2x1x3"},
                                                        {"layouts  2x1x3", "nothing"},
                                                        {"collectives 1x2x1", "torus=1x1x1"},
                                                        {"gen=2", "gen=2 seed=2"}}) {
    std::string text = kText;
    text.replace(text.find(from), from.size(), to);
    EXPECT_EQ(with(text), "nothing");
    std::map<std::string, CheckResult> rows;
    const CheckedCorpus all = found(&rows);
    EXPECT_EQ(all.exit_code(), 1) << to;
    EXPECT_EQ(all.equal, 2) << to;
    const std::string id = from[0] == 'l' ? "l0/a" : from[0] == 'c' ? "l1/b" : "c";
    EXPECT_NE(rows[id].fault, "") << to;
  }
  // One that is the default is the same golden.
  std::string text = kText;
  text.replace(text.find("gen=2"), 5, "seed=1 gen=2");
  EXPECT_EQ(with(text), "nothing");
  EXPECT_EQ(found().exit_code(), 0);
}

/// A wrong value with a sum that fits: the golden itself is made anew.
TEST_F(SmallCorpus, AChangedValueIsSeenUnderANewManifest) {
  for (const Entry& entry : parse_cases(kText)) {
    const std::string name = entry.id + ".h5";
    const std::vector<char> before = bytes_of(file(name));
    const dump::Dump golden = dump::read_dump(file(name));
    const std::string value = golden.order.back();
    save(flipped(golden, value, 0), file(name));
    list_anew();
    std::map<std::string, CheckResult> rows;
    const CheckedCorpus all = found(&rows);
    EXPECT_EQ(all.exit_code(), 1);
    EXPECT_EQ(all.equal, 2);
    EXPECT_EQ(all.goldens, 3);
    EXPECT_EQ(all.release, nullptr);
    EXPECT_TRUE(names(rows[entry.id].fault, value)) << rows[entry.id].fault;
    write_bytes(file(name), before);
  }
}

TEST(CheckedCorpus, OfNothingIsNoSuccess) {
  EXPECT_EQ(CheckedCorpus().exit_code(), 1);
  CheckedCorpus some{nullptr, 2, 2, 5, ""};
  EXPECT_EQ(some.exit_code(), 0);
  some.equal = 1;
  EXPECT_EQ(some.exit_code(), 1);
  some = {nullptr, 2, 2, 5, "other counts"};
  EXPECT_EQ(some.exit_code(), 1);
}

/// What is in the source tree is what was released, all of it, and nothing else.
TEST(ReleasedCorpora, AreTheSourceTree) {
  const fs::path golden = fs::path(SHARDPROOF_SOURCE) / "golden";
  std::map<int, fs::path> folders;
  for (const auto& entry : fs::directory_iterator(golden)) {
    const std::string name = entry.path().filename();
    if (name.size() > 1 && name[0] == 'v' && std::isdigit(name[1]) != 0)
      folders[std::stoi(name.substr(1))] = entry.path();
  }
  ASSERT_FALSE(folders.empty());
  EXPECT_EQ(folders.size(), released().size());
  int version = 0;
  for (const Release& release : released()) {
    EXPECT_EQ(release.version, ++version) << "versions are numbered from 1";
    ASSERT_TRUE(folders.contains(release.version)) << release.version;
    const fs::path& folder = folders[release.version];
    EXPECT_EQ(folder.filename(), "v" + std::to_string(release.version));
    EXPECT_EQ(sha256_of(folder / std::string(kManifest)), release.manifest);
    if (kSanitized) {
      std::cout << "only the manifest of version " << release.version << ", under a sanitizer\n";
      continue;
    }
    const CheckedCorpus all = check_corpus(folder, kQuiet);
    EXPECT_EQ(all.release, &release);
    EXPECT_EQ(all.goldens, release.goldens);
    EXPECT_EQ(all.values, release.values);
    EXPECT_EQ(all.equal, all.goldens);
    EXPECT_EQ(all.exit_code(), 0) << all.fault;
  }
}

}  // namespace
}  // namespace shardproof::corpus
