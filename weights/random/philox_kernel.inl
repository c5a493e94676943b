// The kernels of random words: templates over an instruction set's lanes of 64 bits,
//   splat(x), above(x)         x in each lane; x + the index that each lane computes
//   product(a, b)              of the lower halves
//   upper(v), mix(a, b, c)     the upper half as the lower one; a ^ b ^ c
//   pair(a, b)                 the lower halves, a's below b's
//   lower_part(a, b), upper_part(a, b)   lanes of a and b in turn, those of the lower indices first
//   store(p, v), store(p, v, low, f)     the words; those plus low, as f32, times the factors at f
// Upper halves of Philox's words are whatever its products leave there: nothing reads them.
namespace shardproof {
namespace {

/// The keys of all rounds: found once for all words of a call.
struct PhiloxKeys {
  RandomPair of[kPhiloxRounds][2];

  explicit PhiloxKeys(RandomPair seed) {
    auto first = static_cast<RandomWord>(seed), second = static_cast<RandomWord>(seed >> 32);
    for (auto& round : of) {
      round[0] = first, round[1] = second;
      first += kPhiloxGrowth[0], second += kPhiloxGrowth[1];
    }
  }
};

template <class T>
struct PhiloxLanes {
  using Vec = typename T::Vec;
  Vec a, b, c, d;

  static PhiloxLanes of(const PhiloxKeys& keys, RandomPair hash_of_name, RandomPair first) {
    const Vec index = T::above(first), hash = T::splat(hash_of_name);
    const Vec first_by = T::splat(kPhiloxMultipliers[0]),
              second_by = T::splat(kPhiloxMultipliers[1]);
    PhiloxLanes x{index, T::upper(index), hash, T::upper(hash)};
#if defined(__clang__)
#pragma clang loop unroll(full)
#else
#pragma GCC unroll 16
#endif
    for (int round = 0; round < kPhiloxRounds; ++round) {
      const Vec p = T::product(x.a, first_by), q = T::product(x.c, second_by);
      x = {T::mix(T::upper(q), x.b, T::splat(keys.of[round][0])), q,
           T::mix(T::upper(p), x.d, T::splat(keys.of[round][1])), p};
    }
    return x;
  }
  /// Returns each word's floor(w·count / 2^32).
  PhiloxLanes times(RandomWord count) const {
    const Vec by = T::splat(count);
    return {T::upper(T::product(a, by)), T::upper(T::product(b, by)), T::upper(T::product(c, by)),
            T::upper(T::product(d, by))};
  }
  /// Stores the words in the order of indices, by two calls of store(word, vector).
  template <class Store>
  void store(Store&& store) const {
    const Vec ab = T::pair(a, b), cd = T::pair(c, d);
    store(0, T::lower_part(ab, cd));
    store(2 * T::kLanes, T::upper_part(ab, cd));
  }
};

template <class T>
void random_words(const RandomStream& stream, RandomPair first, long runs, RandomWord* out) {
  const PhiloxKeys keys(stream.seed);
  const RandomPair end = first + static_cast<RandomPair>(runs * kRunIndices);
  for (; first != end; first += T::kLanes, out += 4 * T::kLanes)
    PhiloxLanes<T>::of(keys, stream.hash, first).store([&](long word, typename T::Vec v) {
      T::store(out + word, v);
    });
}

template <class T>
void random_products(const RandomStream& stream, RandomPair first, long runs,
                     const RandomRange& range, const RepeatedFactors& factors, long at,
                     float* out) {
  const PhiloxKeys keys(stream.seed);
  const RandomPair end = first + static_cast<RandomPair>(runs * kRunIndices);
  for (; first != end; first += T::kLanes, out += 4 * T::kLanes) {
    if (at >= factors.count) at %= factors.count;
    const float* const f = factors.of + at;
    PhiloxLanes<T>::of(keys, stream.hash, first)
        .times(range.count)
        .store([&](long word, typename T::Vec v) { T::store(out + word, v, range.low, f + word); });
    at += 4 * T::kLanes;
  }
}

}  // namespace
}  // namespace shardproof
