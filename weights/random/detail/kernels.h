#pragma once

// The kernels of random words, for each instruction set. Included by the files compiled for one
// set, so this header includes nothing.
namespace shardproof {

using RandomWord = unsigned int;
using RandomPair = unsigned long long;  ///< of two words

/// A stream of words: Philox4x32-10 with the seed as key, the index and the hash as counter.
struct RandomStream {
  RandomPair seed, hash;
};

/// Philox4x32: multipliers, what its keys grow by from round to round, and the rounds.
constexpr RandomWord kPhiloxMultipliers[2] = {0xD2511F53, 0xCD9E8D57};
constexpr RandomWord kPhiloxGrowth[2] = {0x9E3779B9, 0xBB67AE85};
constexpr int kPhiloxRounds = 10;

/// A kernel works on runs: the words of kRunIndices neighbouring indices, four each.
constexpr long kRunIndices = 8, kRunWords = 4 * kRunIndices;

/// An integer for a word w: low + floor(w·count / 2^32). From -2^24 to 2^24.
struct RandomRange {
  int low;
  RandomWord count;
};

/// Factors that repeat after `count`, with the first kRunWords - 1 of the repetition after them.
struct RepeatedFactors {
  const float* of;
  long count;
};

struct RandomKernels {
  /// Writes the words of the stream's runs from index `first` on.
  void (*words)(const RandomStream& stream, RandomPair first, long runs, RandomWord* out);
  /// Writes for each of these words its integer times the next factor, from number `at` on.
  void (*products)(const RandomStream& stream, RandomPair first, long runs,
                   const RandomRange& range, const RepeatedFactors& factors, long at, float* out);
};

extern const RandomKernels kRandomScalar, kRandomAvx2, kRandomAvx512;

/// The kernels of isa_in_use().
const RandomKernels& random_kernels();

}  // namespace shardproof
