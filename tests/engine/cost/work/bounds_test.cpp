// Seconds of a pass from its work and a chip, by eye.
#include "engine/cost/work/bounds.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/weights/expect_error.h"

namespace shardproof::cost {
namespace {

/// 100 FLOP/s in bf16, 10 bytes/s of memory, 5 bytes/s sent.
Chip slow_chip() {
  Chip chip;
  chip.name = "slow";
  chip.peaks = {0.0, 100.0, 0.0};
  chip.hbm_bandwidth = 10.0;
  chip.bandwidth = 5.0;
  return chip;
}

Traffic sent(OpKind kind, const char* axes, int group, double bytes, int hops) {
  Traffic traffic;
  traffic.step = "xg";
  traffic.kind = kind;
  traffic.axes = Axes::parse(axes);
  traffic.rings = traffic.axes.size();
  traffic.group = group;
  traffic.sent_bytes = bytes;
  traffic.hops = hops;
  return traffic;
}

/// Two layers of 300 FLOPs, 230 of them needed, 40 bytes of weights, 10 of caches and two
/// collectives; ends of half.
Work small_work() {
  Work work;
  work.layers = 2;
  work.layer.matmul_flops = 200.0;
  work.layer.attention_flops = 100.0;
  work.layer.needed_flops = 230.0;
  work.layer.weight_reads = 40.0;
  work.layer.cache_reads = 10.0;
  work.layer.traffic = {sent(OpKind::all_gather, "xy", 4, 15.0, 3),
                        sent(OpKind::all_to_all, "z", 2, 5.0, 1)};
  work.ends.matmul_flops = 150.0;
  work.ends.needed_flops = 140.0;
  return work;
}

TEST(Bounds, AreSecondsByWhatTheyAreSpentOn) {
  const Bounds bounds = bounds_of(small_work(), slow_chip(), NumberFormat::bf16);
  EXPECT_EQ(bounds.layer.compute, 3.0);
  EXPECT_EQ(bounds.layer.memory, 5.0);
  EXPECT_EQ(bounds.layer.communication, 4.0);
  EXPECT_EQ(bounds.layer.hops, 0.0);
  EXPECT_EQ(bounds.layer.lower(), 5.0);
  EXPECT_EQ(bounds.layer.additive(), 12.0);
  EXPECT_EQ(bounds.ends.additive(), 1.5);
  EXPECT_EQ(bounds.lower(), 2 * 5.0) << "the ends compute while layers read";
  EXPECT_EQ(bounds.additive(), 2 * 12.0 + 1.5);
  EXPECT_EQ(bounds.total().compute, 2 * 3.0 + 1.5);
  EXPECT_EQ(bounds.total().memory, 10.0);
  EXPECT_EQ(bounds.total().communication, 8.0);
}

TEST(Bounds, ArePassedByNoRunThatMasksItsScores) {
  Chip fast = slow_chip();
  fast.hbm_bandwidth = fast.bandwidth = 1000.0;
  const Bounds bounds = bounds_of(small_work(), fast, NumberFormat::bf16);
  EXPECT_EQ(bounds.layer.needed, 2.3);
  EXPECT_EQ(bounds.layer.lower(), 2.3);
  EXPECT_EQ(bounds.layer.additive(), 3.0 + 0.05 + 0.02) << "programs compute the whole square";
  EXPECT_EQ(bounds.lower(), 2 * 2.3 + 1.4);
  EXPECT_EQ(bounds.total().needed, bounds.lower());
  // The ends' weights are read while layers compute.
  Work reads = small_work();
  reads.ends.weight_reads = 2000.0;
  EXPECT_EQ(bounds_of(reads, fast, NumberFormat::bf16).lower(), 2 * 2.3 + 1.4);
}

TEST(Bounds, TakeHopsAndTheAllToAllKnobAndAxesOfTheirOwnFromTheChip) {
  Chip chip = slow_chip();
  chip.hop_latency = 0.25;
  chip.all_to_all = 3.0;
  const Bounds knobs = bounds_of(small_work(), chip, NumberFormat::bf16);
  EXPECT_EQ(knobs.layer.communication, 3.0 + 3.0);
  EXPECT_EQ(knobs.layer.hops, 1.0);
  EXPECT_EQ(knobs.layer.lower(), 7.0) << "a ring's steps are waited for as its bytes are";
  EXPECT_EQ(knobs.layer.additive(), 3.0 + 5.0 + 6.0 + 1.0);
  chip.bandwidth = 0.0;
  chip.axis_bandwidth = 2.5;  // of two axes 5 bytes/s, of one 2.5
  chip.all_to_all = 1.0;
  EXPECT_EQ(bounds_of(small_work(), chip, NumberFormat::bf16).layer.communication, 3.0 + 2.0);
}

TEST(Bounds, OfGroupsOfOneChipAndOfChipsWithoutInterconnect) {
  Chip alone = slow_chip();
  alone.bandwidth = 0.0;
  EXPECT_EQ(label_of([&] { bounds_of(small_work(), alone, NumberFormat::bf16); }), "bounds_c1");
  EXPECT_EQ(label_of([&] { bounds_of(small_work(), slow_chip(), NumberFormat::f32); }), "chip_c7");
  Work work = small_work();
  work.layer.traffic = {sent(OpKind::all_gather, "xyz", 1, 0.0, 0)};
  EXPECT_EQ(bounds_of(work, alone, NumberFormat::bf16).layer.communication, 0.0);
}

}  // namespace
}  // namespace shardproof::cost
