#include "golden/zoo/zoo.h"

#include <gtest/gtest.h>

#include <iostream>
#include <map>

#include "engine/run/case.h"
#include "golden/corpus/detail/sha256.h"
#include "golden/corpus/manifest.h"
#include "tests/golden/corpus/refusal.h"
#include "tests/sanitized.h"
#include "tests/weights/folder.h"

namespace shardproof::zoo {
namespace {

using Verdict = CheckResult::Verdict;

const std::string kLine = "torus=1x1x2 gen=1";
const Specimen kMask{"a", kLine, "prefill.c0.layer0.score", "mask", true};

/// What is said of a dump: kinds, each with its residual.
Answer answer(const std::vector<std::pair<std::string, double>>& kinds,
              const std::string& first = kMask.first, const std::string& line = kLine) {
  Answer said{print_case(parse_case(line)), first, {}};
  for (const auto& [kind, residual] : kinds)
    said.causes.push_back(
        {.fault = kind, .detail = "", .axes = "", .explains = true, .residual = residual});
  return said;
}

Specimen not_yet(Specimen specimen) {
  specimen.named = false;
  return specimen;
}

TEST(CheckSpecimen, TheCauseLeads) {
  for (const auto& kinds : std::vector<std::vector<std::pair<std::string, double>>>{
           {{"mask", 1e-7}},
           {{"mask", 1e-7}, {"stale slot", 1e-3}},
           {{"stale slot", 1e-7}, {"mask", 1e-7}},
           {{"stale slot", 1e-7}, {"stale slot", 1e-7}, {"head order", 1e-7}, {"mask", 1e-7}}})
    EXPECT_EQ(check(kMask, answer(kinds)).verdict, Verdict::named);
}

TEST(CheckSpecimen, AnotherCauseIsDifferent) {
  const auto fault = [](const Answer& said) {
    const CheckResult checked = check(kMask, said);
    EXPECT_EQ(checked.verdict, Verdict::different);
    return checked.fault;
  };
  EXPECT_EQ(fault(answer({})), "nothing explains it, FAULTS says \"mask\"");
  EXPECT_EQ(fault(answer({{"stale slot", 1e-7}, {"mask", 1e-3}})),
            "the cause is \"stale slot\", FAULTS says \"mask\"");
  EXPECT_EQ(fault(answer({{"a", 1e-7}, {"b", 1e-7}, {"c", 1e-7}, {"mask", 1e-7}})),
            "the cause is \"a\", \"b\", \"c\", \"mask\", FAULTS says \"mask\"");
  Answer near = answer({{"mask", 1e-7}});
  near.causes[0].explains = false;
  EXPECT_EQ(fault(near), "nothing explains it, FAULTS says \"mask\"");
}

TEST(CheckSpecimen, AnotherPlaceIsDifferent) {
  EXPECT_EQ(check(kMask, answer({{"mask", 0}}, "prefill.c0.layer0.attn")).fault,
            "the first divergence is prefill.c0.layer0.attn, FAULTS says prefill.c0.layer0.score");
  EXPECT_EQ(check(not_yet(kMask), answer({}, "")).fault,
            "the first divergence is nowhere, FAULTS says prefill.c0.layer0.score");
  EXPECT_NE(check(kMask, answer({{"mask", 0}}, kMask.first, "torus=1x1x2 gen=2"))
                .fault.find("FAULTS says \"torus=1x1x2"),
            std::string::npos);
}

/// A mark stands only while nothing explains the dump.
TEST(CheckSpecimen, ACauseThatIsNotNamedYet) {
  const Specimen marked = not_yet(kMask);
  EXPECT_EQ(check(marked, answer({})).verdict, Verdict::unnamed);
  EXPECT_EQ(check(marked, answer({})).said, "nothing explains it");
  EXPECT_EQ(check(marked, answer({{"mask", 0}})).fault,
            "\"mask\" is named now, FAULTS says not yet");
  EXPECT_EQ(check(marked, answer({{"stale slot", 0}})).fault,
            "the cause is \"stale slot\", FAULTS says \"mask\", not yet");
}

const fs::path kReleased = fs::path(SHARDPROOF_SOURCE) / "golden" / "zoo";

/// A folder with one dump of the released zoo.
class SmallZoo : public testing::Test {
 protected:
  SmallZoo() {
    fs::create_directories(file("known"));
    fs::copy(kReleased / "v1" / kDump, file(kDump));
    std::string text;
    for (const Fault& fault : parse_faults(bytes(kReleased / "v1" / std::string(kFaults))))
      for (const Specimen& specimen : fault.dumps)
        if (specimen.id + ".npz" == kDump)
          text = "fault 1\nsays " + fault.says + "\nmet " + fault.met + "\ndump " + specimen.id +
                 "\ncase " + specimen.line + "\nfirst " + specimen.first + "\ncause " +
                 specimen.cause + "\n";
    list(text);
  }
  static std::string bytes(const fs::path& path) {
    const std::vector<char> read = bytes_of(path);
    return {read.begin(), read.end()};
  }
  fs::path file(const std::string& name) const { return folder_ / "zoo" / name; }
  void write_text(const std::string& name, const std::string& text) const {
    write_bytes(file(name), {text.begin(), text.end()});
  }
  /// This list of faults, and a manifest of what is there.
  void list(const std::string& text) const {
    write_text(std::string(kFaults), text);
    std::vector<corpus::ManifestEntry> files;
    for (const std::string& path : corpus::files_below(folder_ / "zoo"))
      files.push_back({corpus::sha256_of(file(path)), path});
    write_text(std::string(corpus::kManifest), corpus::print_manifest(files));
  }
  /// The list with another text in the place of this one.
  void list_with(const std::string& from, const std::string& to) const {
    std::string text = bytes(file(std::string(kFaults)));
    list(text.replace(text.find(from), from.size(), to));
  }
  CheckedZoo found(std::string* fault = nullptr) const {
    return check_zoo(folder_ / "zoo", [&](const Specimen&, const CheckResult& checked) {
      if (fault != nullptr) *fault = checked.fault;
    });
  }
  std::string refusal_now() const {
    return corpus::refusal([&] { found(); });
  }

  const std::string kDump = "known/own-partial-sum.full.npz";
  Folder folder_;
};

TEST_F(SmallZoo, IsAsListed) {
  EXPECT_TRUE(is_zoo(folder_ / "zoo"));
  EXPECT_FALSE(is_zoo(kReleased));
  const CheckedZoo all = found();
  EXPECT_EQ(all.exit_code(), 0);
  EXPECT_EQ(all.faults, 1);
  EXPECT_EQ(all.dumps, 1);
  EXPECT_EQ(all.named, 1);
  EXPECT_EQ(all.release, nullptr) << "nobody released it";
}

TEST_F(SmallZoo, AnotherPlaceOrCauseIsSeen) {
  for (const auto& [from, to, said] : std::vector<std::array<std::string, 3>>{
           {"first prefill.c0.layer0.attn_out", "first prefill.c0.layer0.out",
            "the first divergence is prefill.c0.layer0.attn_out"},
           {"cause reduction missing", "cause reduction twice",
            "the cause is \"reduction missing\""},
           {"cause reduction missing", "cause reduction missing\nnamed not yet", "is named now"},
           {"seed=3", "seed=4", "FAULTS says \"torus"}}) {
    const std::string before = bytes(file(std::string(kFaults)));
    list_with(from, to);
    std::string fault;
    const CheckedZoo all = found(&fault);
    EXPECT_EQ(all.exit_code(), 1) << to;
    EXPECT_EQ(all.named + all.unnamed, 0) << to;
    EXPECT_NE(fault.find(said), std::string::npos) << fault;
    list(before);
  }
}

TEST_F(SmallZoo, AChangedByteIsSeen) {
  for (const std::string& name : {kDump, std::string(kFaults)}) {
    const std::string before = bytes(file(name));
    std::string after = before;
    after[after.size() / 2] = static_cast<char>(after[after.size() / 2] ^ 1);
    write_text(name, after);
    EXPECT_EQ(refusal_now().find("corpus_checksum"), 0U) << refusal_now();
    EXPECT_NE(refusal_now().find(name), std::string::npos) << refusal_now();
    write_text(name, before);
  }
  EXPECT_EQ(refusal_now(), "nothing");
}

TEST_F(SmallZoo, OtherFilesThanListedAreSeen) {
  list_with("own-partial-sum.full", "own-partial-sum.hooks");
  EXPECT_EQ(refusal_now(),
            "zoo_faults: FAULTS has known/own-partial-sum.hooks, and MANIFEST.sha256 no "
            "known/own-partial-sum.hooks.npz");
  list_with("own-partial-sum.hooks", "own-partial-sum.full");
  write_text("more.npz", "");
  EXPECT_EQ(refusal_now().find("corpus_files"), 0U) << refusal_now();
  list_with("fault 1", "fault 1");
  EXPECT_EQ(refusal_now(), "zoo_faults: MANIFEST.sha256 lists more.npz, and FAULTS no such dump");
  fs::remove(file("more.npz"));
  EXPECT_EQ(refusal_now().find("corpus_checksum"), 0U) << refusal_now();
  list_with("fault 1", "fault 1");
  fs::remove(file(kDump));
  EXPECT_EQ(refusal_now().find("corpus_checksum"), 0U) << refusal_now();
  list_with("cause", "color");
  EXPECT_EQ(refusal_now().find("zoo_faults: line 7: \"color"), 0U) << refusal_now();
  fs::remove(file(std::string(kFaults)));
  EXPECT_FALSE(is_zoo(folder_ / "zoo"));
}

TEST(CheckedZoo, OfNothingIsNoSuccess) {
  EXPECT_EQ(CheckedZoo().exit_code(), 1);
  CheckedZoo some{nullptr, 1, 3, 2, 1, ""};
  EXPECT_EQ(some.exit_code(), 0);
  some.unnamed = 0;
  EXPECT_EQ(some.exit_code(), 1);
  some = {nullptr, 1, 3, 3, 0, "other counts"};
  EXPECT_EQ(some.exit_code(), 1);
}

/// What is in the source tree is what was released, and every dump is as listed.
TEST(ReleasedZoos, AreTheSourceTree) {
  int version = 0;
  for (const Release& release : released()) {
    EXPECT_EQ(release.version, ++version) << "versions are numbered from 1";
    const fs::path folder = kReleased / ("v" + std::to_string(release.version));
    EXPECT_EQ(corpus::sha256_of(folder / std::string(corpus::kManifest)), release.manifest);
    if (kSanitized) {
      std::cout << "only the manifest of version " << version << ", under a sanitizer\n";
      continue;
    }
    std::map<std::string, std::string> different;
    const CheckedZoo all = check_zoo(folder, [&](const Specimen& dump, const CheckResult& checked) {
      if (!checked.fault.empty()) different[dump.id] = checked.fault;
    });
    EXPECT_EQ(all.exit_code(), 0) << all.fault;
    EXPECT_GE(all.named, 60);
    for (const auto& [id, fault] : different) ADD_FAILURE() << id << ": " << fault;
  }
  EXPECT_FALSE(fs::exists(kReleased / ("v" + std::to_string(version + 1))));
  EXPECT_EQ(version, 1);
}

}  // namespace
}  // namespace shardproof::zoo
