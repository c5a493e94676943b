#include "engine/cost/chip/chip.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/weights/expect_error.h"

namespace shardproof::cost {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMine =
    "# one of mine\n"
    "chip mine  made up\n"
    "bf16 : 100 TFLOP/s\n"
    "hbm : 16 GiB   # soldered\n"
    "hbm_bandwidth : 800 GB/s\n"
    "bandwidth : 50 GB/s\n"
    "max_chips : 8\n";

/// The text with its line that begins so replaced; without one, with the line added.
std::string with(const std::string& key, const std::string& line) {
  std::string text(kMine);
  const auto at = text.find("\n" + key + " :");
  if (at == std::string::npos) return text + line + "\n";
  const auto end = text.find('\n', at + 1);
  return text.replace(at + 1, end - at, line.empty() ? "" : line + "\n");
}

std::string said_of(const std::string& text) {
  return message_of([&] { parse_chips(text, "mine.txt"); });
}

TEST(Chip, IsReadFromAText) {
  const std::vector<Chip> chips = parse_chips(kMine);
  ASSERT_EQ(chips.size(), 1U);
  const Chip& chip = chips[0];
  EXPECT_EQ(chip.name, "mine");
  EXPECT_EQ(chip.description, "made up");
  EXPECT_EQ(chip.peak(WeightType::bf16), 1e14);
  EXPECT_EQ(chip.hbm, 16.0 * 1024 * 1024 * 1024);
  EXPECT_EQ(chip.hbm_bandwidth, 8e11);
  EXPECT_EQ(chip.bandwidth, 5e10);
  EXPECT_EQ(chip.hop_latency, 0.0);
  EXPECT_EQ(chip.all_to_all, 1.0);
  EXPECT_EQ(chip.min_axis, 1);
  EXPECT_EQ(chip.max_chips, 8);
  EXPECT_FALSE(chip.has_peak(WeightType::int8));
  EXPECT_EQ(message_of([&] { (void)chip.peak(WeightType::int8); }),
            "chip_c7: mine has no peak of int8; it has bf16");
}

TEST(Chip, ThoseThatShipAreThePapersAndOthers) {
  EXPECT_EQ(all_chips()[0].name, "tpu-v4");
  const Chip& flat = find_chip("tpu-v4");
  EXPECT_EQ(flat.peak(WeightType::bf16), 275e12);
  EXPECT_EQ(flat.peak(WeightType::int8), 275e12);
  EXPECT_EQ(flat.hbm, 32.0 * 1024 * 1024 * 1024);
  EXPECT_EQ(flat.hbm_bandwidth, 1200e9);
  EXPECT_EQ(flat.sends(1), 270e9);
  EXPECT_EQ(flat.sends(3), 270e9);
  EXPECT_EQ(flat.min_axis, 4);
  const Chip& axes = find_chip("tpu-v4-axes");
  EXPECT_EQ(axes.sends(1), 90e9);
  EXPECT_EQ(axes.sends(3), 270e9);
  EXPECT_EQ(axes.hop_latency, 1e-6);
  EXPECT_EQ(find_chip("a100-80g").peak(WeightType::int8), 624e12);
  EXPECT_EQ(find_chip("a100-80g").host_bandwidth, 32e9);
  EXPECT_EQ(find_chip("orin-nano-8g").sends(3), 0.0);
  EXPECT_EQ(find_chip("orin-nano-8g").max_chips, 1);
}

TEST(Chip, ItsNameIsFoundAmongOnesOwnToo) {
  const std::vector<Chip> own = parse_chips(kMine);
  EXPECT_EQ(find_chip("mine", own).hbm_bandwidth, 8e11);
  EXPECT_EQ(find_chip("tpu-v4", own).hbm_bandwidth, 1.2e12);
  EXPECT_EQ(message_of([] { find_chip("tpu-4"); }),
            "chip_c6: unknown chip 'tpu-4', did you mean tpu-v4? legal: tpu-v4, tpu-v4-axes, "
            "a100-80g, orin-nano-8g");
}

TEST(Chip, RefusesALineThatIsNone) {
  EXPECT_EQ(said_of("hbm : 1 GB"),
            "chip_c0: mine.txt line 1: a chip begins with chip NAME (docs/cost.md)");
  EXPECT_EQ(said_of("chip mine\nfast"),
            "chip_c0: mine.txt line 2: 'fast': write chip NAME, or KEY : VALUE (docs/cost.md)");
  for (const char* text : {"chip", "chip Mine", "chip a/b", "chips mine"})
    EXPECT_EQ(label_of([&] { parse_chips(text); }), "chip_c0") << text;
}

TEST(Chip, RefusesUnknownAndRepeatedKeys) {
  EXPECT_EQ(said_of(with("more", "bandwith : 1 GB/s")),
            "chip_c1: mine.txt line 8: a chip has no key 'bandwith', did you mean bandwidth? "
            "legal: f32 bf16 int8 hbm hbm_bandwidth bandwidth axis_bandwidth hop_latency "
            "all_to_all host host_bandwidth min_axis max_chips (docs/cost.md)");
  EXPECT_EQ(said_of(with("more", "hbm : 1 GB")),
            "chip_c2: mine.txt line 8: hbm of mine is defined twice, before in line 4 "
            "(docs/cost.md)");
  EXPECT_EQ(said_of(std::string(kMine) + kMine),
            "chip_c2: mine.txt line 9: mine is defined twice, before in line 2 (docs/cost.md)");
}

TEST(Chip, RefusesValuesThatAreNone) {
  EXPECT_EQ(said_of(with("bandwidth", "bandwidth : -50 GB/s")),
            "chip_c3: mine.txt line 6: bandwidth: '-50 GB/s': bandwidth is from 1e-24 B/s to "
            "1e+24 B/s; nearest legal: 1 GB/s (docs/cost.md)");
  EXPECT_EQ(said_of(with("max_chips", "max_chips : 2.4")),
            "chip_c3: mine.txt line 7: max_chips: a whole number from 1 to 4096, not 2.4; nearest "
            "legal: 2 (docs/cost.md)");
  for (const char* line : {"max_chips : 1e30", "max_chips : 4096.4", "max_chips : 1e400"}) {
    const std::string said = said_of(with("max_chips", line));
    EXPECT_NE(said.find("a plain number is from 1 to 4096; nearest legal: 4096 (docs"),
              std::string::npos)
        << said;
  }
  EXPECT_EQ(label_of([&] { parse_chips(with("hbm_bandwidth", "hbm_bandwidth : 1e-320 B/s")); }),
            "chip_c3");
  for (const char* line : {"bandwidth : 0 GB/s", "bandwidth : 50 Gb/s", "bandwidth : 50 GB",
                           "bandwidth : 50", "bandwidth :", "bandwidth : much"})
    EXPECT_EQ(label_of([&] { parse_chips(with("bandwidth", line)); }), "chip_c3") << line;
  for (const char* line : {"max_chips : 0", "max_chips : 4097", "max_chips : 8 GB"})
    EXPECT_EQ(label_of([&] { parse_chips(with("max_chips", line)); }), "chip_c3") << line;
}

TEST(Chip, RefusesWhatIsNotWhole) {
  for (const char* key : {"bf16", "hbm", "hbm_bandwidth", "bandwidth", "max_chips"})
    EXPECT_EQ(label_of([&] { parse_chips(with(key, "")); }), "chip_c4") << key;
  for (const char* line : {"host : 1 GB", "host_bandwidth : 1 GB/s"})
    EXPECT_EQ(label_of([&] { parse_chips(with("more", line)); }), "chip_c4") << line;
  EXPECT_EQ(said_of(with("hbm", "")),
            "chip_c4: mine.txt line 2: mine: hbm is missing; for example hbm : 32 GiB "
            "(docs/cost.md)");
}

TEST(Chip, RefusesContradictions) {
  EXPECT_EQ(said_of(with("more", "axis_bandwidth : 1 GB/s")),
            "chip_c5: mine.txt line 2: mine: bandwidth, in line 6, and axis_bandwidth, in line 8, "
            "are two models of one interconnect; give one (docs/cost.md)");
  EXPECT_EQ(label_of([] { parse_chips(with("max_chips", "max_chips : 1")); }), "chip_c5");
  EXPECT_EQ(label_of([] { parse_chips(with("more", "min_axis : 9")); }), "chip_c5");
  const std::string alone =
      "chip alone\nint8 : 1 TOP/s\nhbm : 1 GB\nhbm_bandwidth : 1 GB/s\nmax_chips : 1\n";
  EXPECT_EQ(parse_chips(alone).size(), 1U);
  for (const char* line : {"hop_latency : 1 us", "all_to_all : 2", "min_axis : 1"})
    EXPECT_EQ(label_of([&] { parse_chips(alone + line); }), "chip_c5") << line;
}

TEST(Chip, IsLoadedFromAFile) {
  const std::string path = (fs::temp_directory_path() / "shardproof-chip-test.txt").string();
  std::ofstream(path) << kMine;
  EXPECT_EQ(load_chips(path), parse_chips(kMine));
  std::ofstream(path) << "# nothing\n";
  EXPECT_EQ(label_of([&] { load_chips(path); }), "chip_f3");
  std::ofstream(path) << "chip tpu-v4\r and more\n";
  EXPECT_EQ(label_of([&] { load_chips(path); }), "chip_f2");
  std::ofstream(path) << with("more", "").replace(14, 9, "chip tpu-v4");
  EXPECT_EQ(label_of([&] { load_chips(path); }), "chip_c2");
  fs::remove(path);
  EXPECT_EQ(label_of([&] { load_chips(path); }), "chip_f1");
}

/// A legal chip, its numbers of any size.
Chip drawn_chip() {
  const auto number = [] {
    return std::ldexp(*rc::gen::inRange(1, 1 << 20), *rc::gen::inRange(-30, 40));
  };
  const auto maybe = [&] { return *rc::gen::arbitrary<bool>() ? number() : 0.0; };
  Chip chip;
  chip.name = "drawn";
  chip.description = *rc::gen::arbitrary<bool>() ? "two words" : "";
  for (double& peak : chip.peaks) peak = maybe();
  chip.peaks.at(*rc::gen::inRange(std::size_t{0}, chip.peaks.size())) = number();
  chip.hbm = number();
  chip.hbm_bandwidth = number();
  if (*rc::gen::arbitrary<bool>()) {
    chip.max_chips = *rc::gen::inRange(2, 4097);
    chip.min_axis = *rc::gen::inRange(std::int64_t{1}, chip.max_chips + 1);
    (*rc::gen::arbitrary<bool>() ? chip.bandwidth : chip.axis_bandwidth) = number();
    chip.hop_latency = maybe();
    chip.all_to_all = number();
  }
  if (*rc::gen::arbitrary<bool>()) {
    chip.host = number();
    chip.host_bandwidth = number();
  }
  return chip;
}

RC_GTEST_PROP(Chip, IsReadAsItWasPrinted, ()) {
  const Chip chip = drawn_chip();
  const std::string text = print_chip(chip);
  RC_ASSERT(parse_chips(text) == std::vector<Chip>{chip});
  RC_ASSERT(parse_chips(text + text.substr(0, 5) + "other" + text.substr(10)).size() == 2U);
}

TEST(Chip, ThoseThatShipAreReadAsTheyArePrinted) {
  for (const Chip& chip : all_chips()) EXPECT_EQ(parse_chips(print_chip(chip))[0], chip);
}

}  // namespace
}  // namespace shardproof::cost
