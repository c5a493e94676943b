#include "engine/cost/chip/chip.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/engine/cost/cases.h"

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

TEST(Chip, IsReadFromAText) {
  const std::vector<Chip> chips = parse_chips(kMine);
  ASSERT_EQ(chips.size(), 1U);
  const Chip& chip = chips[0];
  EXPECT_EQ(chip.name, "mine");
  EXPECT_EQ(chip.description, "made up");
  EXPECT_EQ(chip.peak(NumberFormat::bf16), 1e14);
  EXPECT_EQ(chip.hbm, 16.0 * 1024 * 1024 * 1024);
  EXPECT_EQ(chip.hbm_bandwidth, 8e11);
  EXPECT_EQ(chip.bandwidth, 5e10);
  EXPECT_EQ(chip.hop_latency, 0.0);
  EXPECT_EQ(chip.all_to_all, 1.0);
  EXPECT_EQ(chip.min_axis, 1);
  EXPECT_EQ(chip.max_chips, 8);
  EXPECT_FALSE(chip.has_peak(NumberFormat::int8));
  EXPECT_EQ(message_of([&] { (void)chip.peak(NumberFormat::int8); }),
            "chip_c7: mine has no peak of int8; it has bf16");
}

TEST(Chip, ThoseThatShipAreThePapersAndOthers) {
  EXPECT_EQ(all_chips()[0].name, "tpu-v4");
  const Chip& flat = find_chip("tpu-v4");
  EXPECT_EQ(flat.peak(NumberFormat::bf16), 275e12);
  EXPECT_EQ(flat.peak(NumberFormat::int8), 275e12);
  EXPECT_EQ(flat.hbm, 32.0 * 1024 * 1024 * 1024);
  EXPECT_EQ(flat.hbm_bandwidth, 1200e9);
  EXPECT_EQ(flat.sends(1), 270e9);
  EXPECT_EQ(flat.sends(3), 270e9);
  EXPECT_EQ(flat.min_axis, 4);
  const Chip& axes = find_chip("tpu-v4-axes");
  EXPECT_EQ(axes.sends(1), 90e9);
  EXPECT_EQ(axes.sends(3), 270e9);
  EXPECT_EQ(axes.hop_latency, 1e-6);
  EXPECT_EQ(find_chip("a100-80g").peak(NumberFormat::int8), 624e12);
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

TEST(Chip, RefusesTextsThatAreNone) {
  expect_refusals("chip/refused.txt", "text",
                  [](const CaseLine& line) { parse_chips(line.text(0), "mine.txt"); });
}

/// Of kMine one line is another.
TEST(Chip, RefusesValuesKeysAndContradictions) {
  expect_refusals("chip/refused.txt", "mine", [](const CaseLine& line) {
    parse_chips(with(line.text(0), line.text(1)), "mine.txt");
  });
  const std::string alone =
      "chip alone\nint8 : 1 TOP/s\nhbm : 1 GB\nhbm_bandwidth : 1 GB/s\nmax_chips : 1\n";
  EXPECT_EQ(parse_chips(alone).size(), 1U);
  for (const char* line : {"hop_latency : 1 us", "all_to_all : 2", "min_axis : 1"})
    EXPECT_EQ(label_of([&] { parse_chips(alone + line); }), "chip_c5") << line;
  EXPECT_EQ(message_of([] { parse_chips(std::string(kMine) + kMine, "mine.txt"); }),
            "chip_c2: mine.txt line 9: mine is defined twice, before in line 2 (docs/cost.md)");
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
