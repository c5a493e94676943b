#include "engine/cost/chip/quantity.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "tests/weights/expect_error.h"

namespace shardproof::cost {
namespace {

constexpr Measure kMeasures[] = {Measure::bytes, Measure::bytes_per_second,
                                 Measure::operations_per_second, Measure::seconds, Measure::none};

TEST(Quantity, ReadsNumbersWithTheirUnits) {
  EXPECT_EQ(parse_quantity("32 GiB", Measure::bytes), 34359738368.0);
  EXPECT_EQ(parse_quantity("32GB", Measure::bytes), 32e9);
  EXPECT_EQ(parse_quantity("1.5 KiB", Measure::bytes), 1536.0);
  EXPECT_EQ(parse_quantity(" 7 B ", Measure::bytes), 7.0);
  EXPECT_EQ(parse_quantity("1200 GB/s", Measure::bytes_per_second), 1.2e12);
  EXPECT_EQ(parse_quantity("2 TiB/s", Measure::bytes_per_second), 2199023255552.0);
  EXPECT_EQ(parse_quantity("275 TFLOP/s", Measure::operations_per_second), 275e12);
  EXPECT_EQ(parse_quantity("40 TOP/s", Measure::operations_per_second), 40e12);
  EXPECT_EQ(parse_quantity("3 PFLOP/s", Measure::operations_per_second), 3e15);
  EXPECT_EQ(parse_quantity("50ms", Measure::seconds), 0.05);
  EXPECT_EQ(parse_quantity("1 us", Measure::seconds), 1e-6);
  EXPECT_EQ(parse_quantity("1e3", Measure::none), 1000.0);
}

TEST(Quantity, RefusesOtherUnitsAndNamesTheNearest) {
  EXPECT_EQ(message_of([] { parse_quantity("270 Gb/s", Measure::bytes_per_second); }),
            "quantity_c1: '270 Gb/s': 'Gb/s' is no unit of bandwidth, did you mean GB/s?; legal: "
            "TB/s GB/s MB/s kB/s B/s TiB/s GiB/s MiB/s KiB/s");
  EXPECT_EQ(message_of([] { parse_quantity("5 min", Measure::seconds); }),
            "quantity_c1: '5 min': 'min' is no unit of time; legal: s ms us ns");
  EXPECT_EQ(message_of([] { parse_quantity("5", Measure::seconds); }),
            "quantity_c1: '5': a unit of time is missing; legal: s ms us ns");
  EXPECT_EQ(message_of([] { parse_quantity("5 GB", Measure::none); }),
            "quantity_c1: '5 GB': a plain number has no unit, not 'GB'; nearest legal: 5");
  for (const char* text : {"5 GB/s", "5 gib", "5 GBs", "5 G B"})
    EXPECT_EQ(label_of([&] { parse_quantity(text, Measure::bytes); }), "quantity_c1") << text;
}

TEST(Quantity, RefusesWhatIsNotAboveZero) {
  EXPECT_EQ(message_of([] { parse_quantity("-3 GB/s", Measure::bytes_per_second); }),
            "quantity_c2: '-3 GB/s': bandwidth is from 1e-24 B/s to 1e+24 B/s; nearest "
            "legal: 1 GB/s");
  EXPECT_EQ(message_of([] { parse_quantity("fast", Measure::bytes_per_second); }),
            "quantity_c2: 'fast' is no number; a value is, for example, 1 TB/s");
  for (const char* text : {"0 GB", "-0 GB", "-1 GB", "nan GB", "inf GB", "1e30 GB", "1e999 GB",
                           "1e-999 GB", "", "GB", "+ 1 GB", "- 1 GB"})
    EXPECT_EQ(label_of([&] { parse_quantity(text, Measure::bytes); }), "quantity_c2") << text;
}

TEST(Quantity, NamesTheNearestLegalNumber) {
  const auto nearest_of = [](const char* text, Measure measure, const QuantityLimits& limits = {}) {
    const std::string said = message_of([&] { parse_quantity(text, measure, limits); });
    const std::string near = said.substr(said.find("nearest legal: ") + 15);
    EXPECT_NO_THROW(parse_quantity(near, measure, limits)) << said;
    return near;
  };
  EXPECT_EQ(nearest_of("1e30 GB/s", Measure::bytes_per_second), "1e+24 B/s");
  EXPECT_EQ(nearest_of("1e400 GB/s", Measure::bytes_per_second), "1e+24 B/s");
  EXPECT_EQ(nearest_of("-1e400 GB/s", Measure::bytes_per_second), "1 GB/s");
  EXPECT_EQ(nearest_of("1e-320 B/s", Measure::bytes_per_second), "1e-24 B/s");
  EXPECT_EQ(nearest_of("1e-400 TB/s", Measure::bytes_per_second), "1e-24 B/s");
  EXPECT_EQ(nearest_of("1e-30 ns", Measure::seconds), "1e-24 s");
  EXPECT_EQ(nearest_of("1e30", Measure::none, {1.0, 4096.0}), "4096");
  EXPECT_EQ(nearest_of("0.5", Measure::none, {1.0, 4096.0}), "1");
  EXPECT_EQ(nearest_of("0", Measure::none, {1.0, 4096.0}), "1");
  EXPECT_EQ(parse_quantity("1e-24 s", Measure::seconds), 1e-24);
  EXPECT_EQ(parse_quantity("1e24 B", Measure::bytes), 1e24);
}

TEST(Quantity, PrintsTheShortestText) {
  EXPECT_EQ(print_quantity(34359738368.0, Measure::bytes), "32 GiB");
  EXPECT_EQ(print_quantity(1.2e12, Measure::bytes_per_second), "1.2 TB/s");
  EXPECT_EQ(print_quantity(275e12, Measure::operations_per_second), "275 TFLOP/s");
  EXPECT_EQ(print_quantity(1e-6, Measure::seconds), "1 us");
  EXPECT_EQ(print_quantity(1.5, Measure::none), "1.5");
  EXPECT_EQ(rounded_quantity(1.23456e12, Measure::bytes_per_second), "1.235 TB/s");
  EXPECT_EQ(rounded_quantity(34359738368.0, Measure::bytes), "34.36 GB");
  EXPECT_EQ(rounded_quantity(0.0285, Measure::seconds), "28.5 ms");
  EXPECT_EQ(rounded_quantity(0.5, Measure::bytes), "0.5 B");
  EXPECT_EQ(rounded_quantity(0.0, Measure::bytes), "0 B");
}

RC_GTEST_PROP(Quantity, IsReadAsItWasPrinted, ()) {
  const auto measure =
      *rc::gen::elementOf(std::vector<Measure>(std::begin(kMeasures), std::end(kMeasures)));
  const int exponent = *rc::gen::inRange(-30, 70);
  const int mantissa = *rc::gen::inRange(1, 1 << 30);
  const double value = std::ldexp(mantissa, exponent - 20);
  const std::string text = print_quantity(value, measure);
  RC_ASSERT(parse_quantity(text, measure) == value);
}

}  // namespace
}  // namespace shardproof::cost
