// The kernels of random words: on every instruction set of this machine the words that Random123
// computes for one index, and the numbers that are made of them.
#include "weights/random/detail/kernels.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

#include "weights/base/isa.h"
#include "weights/storage/detail/philox.h"
#include "weights/storage/generator.h"

namespace shardproof {
namespace {

/// Calls body() with the kernels of each instruction set that this machine has.
template <class Body>
void on_each_isa(Body&& body) {
  for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512}) {
    if (!has_isa(isa)) continue;
    const ForcedIsa forced(isa);
    body();
  }
}

/// A stream and the beginning of runs: also those about the end of the index's lower word, and of
/// the index itself.
struct Beginning {
  RandomStream stream;
  RandomPair first;

  std::uint32_t word(std::size_t i) const {
    return philox_words(stream.seed, stream.hash, first + i / 4)[i % 4];
  }
};

Beginning random_beginning() {
  const auto any = rc::gen::arbitrary<std::uint64_t>();
  const auto end = *rc::gen::elementOf(std::vector<std::uint64_t>{0, std::uint64_t{1} << 32});
  const auto before = *rc::gen::inRange<std::uint64_t>(0, 40);
  const bool anywhere = *rc::gen::arbitrary<bool>();
  return {{*any, *any}, anywhere ? *any : end - before};
}

RC_GTEST_PROP(RandomKernels, WordsAreThoseOfTheirIndices, ()) {
  const Beginning from = random_beginning();
  const auto runs = *rc::gen::inRange(0L, 5L);
  std::vector<std::uint32_t> expected;
  for (std::size_t i = 0; i < static_cast<std::size_t>(runs * kRunWords); ++i)
    expected.push_back(from.word(i));
  on_each_isa([&] {
    std::vector<std::uint32_t> words(expected.size() + 1, 7);
    random_kernels().words(from.stream, from.first, runs, words.data());
    RC_ASSERT(words.back() == 7U);
    words.pop_back();
    RC_ASSERT(words == expected);
  });
}

// Factors repeat within a run, at its end, and after several.
RC_GTEST_PROP(RandomKernels, ProductsAreIntegersOfARangeTimesFactorsInTurn, ()) {
  const Beginning from = random_beginning();
  const auto runs = *rc::gen::inRange(0L, 5L), period = *rc::gen::inRange(1L, 3 * kRunWords);
  const auto at = *rc::gen::inRange(0L, period);
  const auto most = *rc::gen::inRange(0, 1 << 17);
  const auto low = *rc::gen::inRange(-most, 1);
  std::vector<float> factors;
  for (long i = 0; i < period + kRunWords - 1; ++i)
    factors.push_back(i < period ? static_cast<float>(*rc::gen::inRange(8, 81)) * 0x1p-23F
                                 : factors[static_cast<std::size_t>(i - period)]);
  std::vector<float> expected;
  for (std::size_t i = 0; i < static_cast<std::size_t>(runs * kRunWords); ++i) {
    const auto factor =
        factors[(static_cast<std::size_t>(at) + i) % static_cast<std::size_t>(period)];
    expected.push_back(static_cast<float>(ranged(from.word(i), low, most)) * factor);
  }
  const RandomRange range{low, static_cast<std::uint32_t>(most - low + 1)};
  on_each_isa([&] {
    std::vector<float> products(expected.size() + 1, 7.0F);
    random_kernels().products(from.stream, from.first, runs, range, {factors.data(), period}, at,
                              products.data());
    RC_ASSERT(products.back() == 7.0F);
    products.pop_back();
    RC_ASSERT(products == expected);
  });
}

}  // namespace
}  // namespace shardproof
