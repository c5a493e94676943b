// Norms of a matrix that is read again stay with its buffer, until its numbers change.
#include "engine/numeric/column_norms.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include "tests/engine/run_program.h"

namespace shardproof {
namespace {

// Of a sum that is not exact in f64: else no bound is made.
const std::vector<float> kFactors{0.3F, 1e-12F};

// A matrix [E=2, F=2] as it lies, and the one that it is as [F,E].
const KeptNorms::Place kRowMajor{2, 2, 0, 2, 1}, kTurned{2, 1, 0, 2, 2};

SharedValue matrix(std::string_view layout) {
  return shared(shard(tensor_of({2, 2}, {0.1F, 0.2F, 0.7F, 0.4F}), Layout::parse(layout), Torus()));
}

/// What the buffer holds of this place; norms that are made only now are zeros.
std::vector<double> held(const Sharded& value, const KeptNorms::Place& place) {
  const std::vector<float> zeros(4);
  return value.f32()[0].norms(place).of(zeros.data(), 2, 2);
}

std::vector<double> norms(float a, float b, float c, float d) {
  const auto norm = [](double x, double y) { return std::sqrt(x * x + y * y); };
  return {norm(static_cast<double>(a), static_cast<double>(c)),
          norm(static_cast<double>(b), static_cast<double>(d))};
}

TEST(KeptNorms, StayWithAMatrixThatAProductHasRead) {
  const SharedValue x =
      shared(shard(tensor_of({1, 1, 2}, kFactors), Layout::parse("BLE"), Torus()));
  const SharedValue w = matrix("EF");
  run_op("einsum(BLE,EF->BLF; x, w)", {x, w});
  EXPECT_EQ(held(*w, kRowMajor), norms(0.1F, 0.2F, 0.7F, 0.4F));
}

TEST(KeptNorms, AreOfEachChipsOwnMatrix) {
  const Torus torus(2, 1, 1);
  const SharedValue x = shared(shard(tensor_of({1, 1, 2}, kFactors), Layout::parse("BLE"), torus));
  const SharedValue w =
      shared(shard(tensor_of({2, 2}, {0.1F, 0.2F, 0.7F, 0.4F}), Layout::parse("EF_x"), torus));
  run_op("einsum(BLE,EF->BLF; x, w)", {x, w});
  const std::vector<float> zeros(2);
  const std::vector<double> want = norms(0.1F, 0.2F, 0.7F, 0.4F);
  for (std::size_t chip = 0; chip < 2; ++chip)
    EXPECT_EQ(w->f32()[chip].norms({2, 1, 0, 1, 1}).of(zeros.data(), 2, 1),
              std::vector<double>{want[chip]});
}

TEST(KeptNorms, AreApartForEachWayInWhichABufferIsAMatrix) {
  const SharedValue x =
      shared(shard(tensor_of({1, 1, 2}, kFactors), Layout::parse("BLE"), Torus()));
  const SharedValue w = matrix("FE");
  run_op("einsum(BLE,FE->BLF; x, w)", {x, w});
  EXPECT_EQ(held(*w, kRowMajor), std::vector<double>(2, 0.0));
  EXPECT_EQ(held(*w, kTurned), norms(0.1F, 0.7F, 0.2F, 0.4F));
}

TEST(KeptNorms, AreForgottenWhereNumbersAreChanged) {
  Sharded w = *matrix("EF");
  const auto made = [&] { return w.f32()[0].norms(kRowMajor).of(w.f32()[0].data(), 2, 2); };
  EXPECT_EQ(made(), norms(0.1F, 0.2F, 0.7F, 0.4F));
  w.f32_of(0)[0] = 3.0F;
  EXPECT_EQ(made(), norms(3.0F, 0.2F, 0.7F, 0.4F));
  // A chip that changes what another holds, too, gets numbers of its own.
  const Sharded other = w;
  w.f32_of(0)[0] = 4.0F;
  EXPECT_EQ(made(), norms(4.0F, 0.2F, 0.7F, 0.4F));
  EXPECT_EQ(held(other, kRowMajor), norms(3.0F, 0.2F, 0.7F, 0.4F));
}

TEST(KeptNorms, OfCopiedAndMovedBuffersAreNone) {
  const std::vector<float> zeros(2);
  Buffer<float> from(std::vector<float>{3.0F, 4.0F});
  const KeptNorms::Place place{2, 1, 0};
  const auto held_by = [&](const Buffer<float>& buffer) {
    return buffer.norms(place).of(zeros.data(), 2, 1)[0];
  };
  EXPECT_EQ(from.norms(place).of(from.data(), 2, 1)[0], 5.0);
  const Buffer<float> copied(from);
  EXPECT_EQ(held_by(copied), 0.0);
  EXPECT_EQ(held_by(from), 5.0);
  Buffer<float> moved(std::move(from));
  EXPECT_EQ(held_by(moved), 0.0);
  moved.forget_norms();
  EXPECT_EQ(moved.norms(place).of(moved.data(), 2, 1)[0], 5.0);
  moved = copied;
  EXPECT_EQ(held_by(moved), 0.0);
}

TEST(KeptNorms, AreMadeOnceForManyThreads) {
  const std::vector<float> numbers(64, 1.0F);
  for (int round = 0; round < 50; ++round) {
    KeptNorms kept;
    std::vector<const std::vector<double>*> seen(8);
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < seen.size(); ++t)
      threads.emplace_back([&, t] {
        const std::int64_t K = t % 2 == 0 ? 8 : 16;
        seen[t] = &kept.of({K, 64 / K, 0, 64 / K, 1}).of(numbers.data(), K, 64 / K);
      });
    for (std::thread& thread : threads) thread.join();
    for (std::size_t t = 2; t < seen.size(); ++t) EXPECT_EQ(seen[t], seen[t - 2]);
    EXPECT_EQ(*seen[0], std::vector<double>(8, std::sqrt(8.0)));
    EXPECT_EQ(*seen[1], std::vector<double>(4, 4.0));
  }
}

}  // namespace
}  // namespace shardproof
