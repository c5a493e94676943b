#include "golden/corpus/manifest.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "golden/corpus/detail/sha256.h"
#include "tests/golden/corpus/refusal.h"
#include "tests/weights/folder.h"

namespace shardproof::corpus {
namespace {

const std::string kSum = sha256("a");

TEST(Manifest, ReadsWhatSha256sumWrites) {
  const std::vector<ManifestEntry> files = {{kSum, "CASES"}, {sha256("b"), "l2/ws2d-heads.h5"}};
  const std::string text = kSum + "  CASES\n" + sha256("b") + " *l2/ws2d-heads.h5\n";
  EXPECT_EQ(parse_manifest(text), files);
  EXPECT_EQ(parse_manifest(text.substr(0, text.size() - 1)), files);
}

RC_GTEST_PROP(Manifest, PrintedAndReadIsTheSame, ()) {
  const auto names = *rc::gen::unique<std::vector<std::string>>(rc::gen::nonEmpty(
      rc::gen::container<std::string>(rc::gen::elementOf(std::string("abz-09")))));
  RC_PRE(!names.empty());
  std::vector<ManifestEntry> files;
  for (const std::string& name : names) files.push_back({sha256(name), "l1/" + name + ".h5"});
  RC_ASSERT(parse_manifest(print_manifest(files)) == files);
}

TEST(Manifest, Refuses) {
  std::string upper = kSum;
  upper[0] = 'A';
  std::string other = kSum;
  other[63] = 'g';
  for (const std::string& text :
       {std::string(), kSum, kSum + "  ", kSum.substr(1) + "  CASES", upper + "  CASES",
        other + "  CASES", kSum + " CASES", kSum + "0  CASES", kSum + "  CASES\n\n",
        "# a comment\n" + kSum + "  CASES"})
    EXPECT_NE(refusal([&] { parse_manifest(text); }).find("no sum of 64 hexadecimal digits"),
              std::string::npos)
        << text;
  for (const char* path : {"/etc/passwd", "../x.h5", "l0/../../x.h5", "..", ".", "./x.h5", "l0/"})
    EXPECT_NE(refusal([&] {
                parse_manifest(kSum + "  " + path);
              }).find("a path that is not below the corpus"),
              std::string::npos)
        << path;
  EXPECT_EQ(refusal([&] { parse_manifest(kSum + "  a\n" + kSum + "  b\n" + kSum + "  a\n"); }),
            "corpus_manifest: line 3: \"" + kSum + "  a\": listed twice");
}

/// A folder with a few files, and their manifest.
class RequireListed : public testing::Test {
 protected:
  RequireListed() {
    fs::create_directories(folder_ / "l0");
    for (const char* path : {"CASES", "l0/a.h5", "l0/b.h5"}) {
      write_bytes(folder_ / path, {'o', 'f', ' ', path[3]});
      files_.push_back({sha256_of(folder_ / path), path});
    }
    write_bytes(folder_ / std::string(kManifest), {'m'});
  }
  std::string refusal_now() const {
    return refusal([&] { require_listed(folder_.path(), files_); });
  }

  Folder folder_;
  std::vector<ManifestEntry> files_;
};

TEST_F(RequireListed, TakesJustTheFilesThatAreListed) { EXPECT_EQ(refusal_now(), "nothing"); }

TEST_F(RequireListed, SeesAChangedByteInEachFile) {
  for (const ManifestEntry& file : files_) {
    const std::vector<char> before = bytes_of(folder_ / file.path);
    for (std::size_t i = 0; i < before.size(); ++i) {
      std::vector<char> bytes = before;
      bytes[i] = static_cast<char>(bytes[i] ^ 1);
      write_bytes(folder_ / file.path, bytes);
      const std::string said = refusal_now();
      EXPECT_EQ(said.find("corpus_checksum"), 0U) << said;
      EXPECT_NE(said.find(file.path), std::string::npos) << said;
    }
    write_bytes(folder_ / file.path, before);
  }
  EXPECT_EQ(refusal_now(), "nothing");
}

TEST_F(RequireListed, SeesAFileThatIsMissing) {
  for (const ManifestEntry& file : files_) {
    const std::vector<char> before = bytes_of(folder_ / file.path);
    fs::remove(folder_ / file.path);
    const std::string said = refusal_now();
    EXPECT_EQ(said.find("corpus_checksum"), 0U) << said;
    EXPECT_NE(said.find(file.path), std::string::npos) << said;
    write_bytes(folder_ / file.path, before);
  }
}

TEST_F(RequireListed, SeesAFileTooMany) {
  for (const char* path : {"l0/c.h5", "l0/MANIFEST.sha256", ".hidden"}) {
    write_bytes(folder_ / path, {});
    const std::string said = refusal_now();
    EXPECT_EQ(said.find("corpus_files"), 0U) << said;
    EXPECT_NE(said.find(path), std::string::npos) << said;
    fs::remove(folder_ / path);
  }
  fs::create_symlink("nowhere", folder_ / "link");
  EXPECT_EQ(refusal_now().find("corpus_files"), 0U);
  fs::remove(folder_ / "link");
  fs::create_directory_symlink("l0", folder_ / "l1");
  EXPECT_EQ(refusal_now().find("corpus_files"), 0U);
}

TEST_F(RequireListed, SeesAFolderInPlaceOfAFile) {
  fs::remove(folder_ / "l0/a.h5");
  fs::create_directory(folder_ / "l0/a.h5");
  EXPECT_EQ(refusal_now().find("corpus_open"), 0U);
}

TEST(FilesBelow, RefusesAFolderThatIsNotThere) {
  const Folder folder;
  EXPECT_EQ(refusal([&] { files_below(folder / "none"); }).find("corpus_open"), 0U);
}

}  // namespace
}  // namespace shardproof::corpus
