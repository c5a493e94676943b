#include "engine/ops/sampling.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>
#include <vector>

#include "engine/numeric/detail/functions.h"
#include "engine/numeric/mass.h"
#include "weights/base/error.h"
#include "weights/storage/generator.h"

namespace shardproof {
namespace {

static_assert(Mass::kWords == kSumWords);

/// t of docs/spec.md section 2.10; `unit` is the unit of the logit.
float tempered(float logit, double unit, double temperature) {
  const auto t = static_cast<float>(static_cast<double>(logit) * unit / temperature);
  if (!std::isfinite(t))
    throw Error("engine_finite",
                fmt::format("the logit {} at temperature={} is {}", logit, temperature, t));
  return t;
}

template <class T>
T* shard_of(ChipArrays<T>& chips, std::int64_t chip, std::size_t size) {
  Buffer<T>& own = chips[static_cast<std::size_t>(chip)];
  own.resize(size);
  return own.data();
}

/// The layout with its first `kept` dims followed by `more`.
Layout with_dims(const Layout& layout, std::size_t kept, const std::vector<Layout::Dim>& more) {
  std::vector<Layout::Dim> dims(layout.dims().begin(),
                                layout.dims().begin() + static_cast<std::ptrdiff_t>(kept));
  dims.insert(dims.end(), more.begin(), more.end());
  return Layout(std::move(dims), Axes());
}

/// The sum of the pieces that a chip receives.
std::vector<std::int32_t> received(const ChipArrays<std::int32_t>& words, const Moves& reduce,
                                   std::int64_t chip) {
  std::vector<std::int32_t> sum(static_cast<std::size_t>(element_count(reduce.to_local)), 0);
  for (const Piece& piece : reduce.pieces[static_cast<std::size_t>(chip)]) {
    const auto& from = words[static_cast<std::size_t>(piece.from_chip)];
    for (std::size_t i = 0; i < sum.size(); ++i)  // words wrap, as they do on the wire
      sum[i] = static_cast<std::int32_t>(static_cast<std::uint32_t>(sum[i]) +
                                         static_cast<std::uint32_t>(from[i]));
  }
  return sum;
}

/// Rule of top_k: counts a row's elements that are at least a threshold; at least k must be kept.
struct Counting {
  static constexpr std::size_t kWords = kCountWords;
  static constexpr bool kTotalFirst = false;
  std::int64_t k;

  static void ask(const float* row, std::int64_t n, std::uint32_t least, std::int32_t* words) {
    words[0] = static_cast<std::int32_t>(std::count_if(
        row, row + n, [&](float e) { return std::bit_cast<std::uint32_t>(e) >= least; }));
  }
  static void normalize(std::int32_t*) {}
  bool enough(const std::int32_t* words, const std::int32_t*) const { return words[0] >= k; }
};

/// Rule of top_p: sums a row's elements that are at least a threshold, exactly; at least p times
/// the whole row's sum must be kept.
struct Summing {
  static constexpr std::size_t kWords = kSumWords;
  static constexpr bool kTotalFirst = true;
  double p;

  static Mass mass(const std::int32_t* words) {
    Mass sum;
    sum.add(std::span<const std::int32_t, kWords>(words, kWords));
    return sum;
  }
  static void put(const Mass& mass, std::int32_t* words) {
    const Mass::Words all = mass.words();
    std::copy(all.begin(), all.end(), words);
  }
  static void ask(const float* row, std::int64_t n, std::uint32_t least, std::int32_t* words) {
    Mass sum;
    for (std::int64_t i = 0; i < n; ++i)
      if (std::bit_cast<std::uint32_t>(row[i]) >= least) sum.add(row[i]);
    put(sum, words);
  }
  /// Normalizes sums of words into the words of the sum.
  static void normalize(std::int32_t* words) { put(mass(words), words); }
  bool enough(const std::int32_t* words, const std::int32_t* total) const {
    return mass(words).at_least(p, mass(total));
  }
};

/// Finds the largest threshold that keeps enough, bit by bit: a bit is set if enough elements
/// remain with it. Works because floats ≥ 0 are ordered by their bits.
template <class Rule>
Threshold search(const Sharded& e, const Rule& rule, const Moves& reduce, Threads& threads) {
  constexpr std::size_t kWords = Rule::kWords;
  const std::int64_t rows = e.local()[0], width = e.local()[1], chips = e.torus().chips();
  const auto n = static_cast<std::size_t>(rows);
  const std::size_t rounds = kSearchRounds + (Rule::kTotalFirst ? 1 : 0);
  std::vector<std::vector<std::uint32_t>> floors(static_cast<std::size_t>(chips),
                                                 std::vector<std::uint32_t>(n, 0));
  ChipArrays<std::int32_t> all(static_cast<std::size_t>(chips)), words(all.size());
  for (std::int64_t chip = 0; chip < chips; ++chip) shard_of(all, chip, n * rounds * kWords);
  for (std::size_t round = 0; round < rounds; ++round) {
    const bool of_total = Rule::kTotalFirst && round == 0;
    const std::uint32_t bit =
        of_total ? 0 : std::uint32_t{1} << (static_cast<std::size_t>(rounds) - 1 - round);
    threads.for_each(chips, [&](std::int64_t chip) {
      const float* const own = e.f32()[static_cast<std::size_t>(chip)].data();
      std::int32_t* const mine = shard_of(words, chip, n * kWords);
      for (std::size_t b = 0; b < n; ++b)
        Rule::ask(own + static_cast<std::int64_t>(b) * width, width,
                  floors[static_cast<std::size_t>(chip)][b] | bit, mine + b * kWords);
    });
    threads.for_each(chips, [&](std::int64_t chip) {
      std::vector<std::int32_t> sums = received(words, reduce, chip);
      std::int32_t* const said = all[static_cast<std::size_t>(chip)].data();
      for (std::size_t b = 0; b < n; ++b) {
        Rule::normalize(sums.data() + b * kWords);
        std::int32_t* const of_row = said + b * rounds * kWords;
        std::int32_t* const now = of_row + round * kWords;
        std::copy_n(sums.data() + b * kWords, kWords, now);
        if (!of_total && rule.enough(now, of_row)) floors[static_cast<std::size_t>(chip)][b] |= bit;
      }
    });
  }
  ChipArrays<float> floor(all.size()), kept(all.size());
  threads.for_each(chips, [&](std::int64_t chip) {
    const auto c = static_cast<std::size_t>(chip);
    const float* const own = e.f32()[c].data();
    float* const least = shard_of(floor, chip, n);
    float* const to = shard_of(kept, chip, n * static_cast<std::size_t>(width));
    for (std::size_t b = 0; b < n; ++b) {
      least[b] = std::bit_cast<float>(floors[c][b]);
      for (std::size_t v = b * static_cast<std::size_t>(width);
           v < (b + 1) * static_cast<std::size_t>(width); ++v)
        to[v] = own[v] >= least[b] ? own[v] : 0.0F;
    }
  });
  const std::int64_t B = e.shape()[0];
  return {{e.torus(),
           with_dims(e.layout(), 1, {{'W', Axes()}}),
           {B, static_cast<std::int64_t>(rounds * kWords)},
           std::move(all)},
          {e.torus(), with_dims(e.layout(), 1, {}), {B}, std::move(floor)},
          {e.torus(), e.layout(), e.shape(), std::move(kept)}};
}

/// The layout [BC] of per-block results of a value [BV], or [BCW] with words.
Layout of_blocks(const Sharded& e, bool words) {
  std::vector<Layout::Dim> more{{'C', e.layout().axes('V')}};
  if (words) more.push_back({'W', Axes()});
  return with_dims(e.layout(), 1, more);
}

}  // namespace

Sharded weigh(const Sharded& z, const Sharded& best, double temperature, Threads& threads,
              double unit, std::int64_t V) {
  const std::int64_t rows = z.local()[0], width = z.local()[1], C = best.local()[1];
  // Blocks with at least one id that is not padding.
  const std::int64_t blocks = V > 0 ? std::min(C, (V * C + z.shape()[1] - 1) / z.shape()[1]) : C;
  ChipArrays<float> chips(static_cast<std::size_t>(z.torus().chips()));
  threads.for_each(z.torus().chips(), [&](std::int64_t chip) {
    const auto c = static_cast<std::size_t>(chip);
    const float* const own = z.f32()[c].data();
    const float* const tops = best.f32()[c].data();
    float* const to = shard_of(chips, chip, static_cast<std::size_t>(rows * width));
    const std::int64_t base = z.torus().block(static_cast<int>(chip), z.layout().axes('V')) * width;
    const std::int64_t ids = V > 0 ? std::clamp<std::int64_t>(V - base, 0, width) : width;
    for (std::int64_t b = 0; b < rows; ++b) {
      // Division by T > 0 and rounding keep the order, so the largest logit has the largest t.
      const float top =
          tempered(*std::max_element(tops + b * C, tops + b * C + blocks), unit, temperature);
      for (std::int64_t v = b * width; v < b * width + ids; ++v)
        to[v] = exp32(tempered(own[v], unit, temperature) - top);
      std::fill(to + b * width + ids, to + (b + 1) * width, 0.0F);
    }
  });
  return {z.torus(), z.layout(), z.shape(), std::move(chips)};
}

Threshold top_k(const Sharded& e, std::int64_t k, const Moves& reduce, Threads& threads) {
  return search(e, Counting{k > 0 ? k : e.shape()[1]}, reduce, threads);
}

Threshold top_p(const Sharded& e, double p, const Moves& reduce, Threads& threads) {
  return search(e, Summing{p}, reduce, threads);
}

Sharded masses(const Sharded& e, Threads& threads) {
  const std::int64_t rows = e.local()[0], width = e.local()[1];
  ChipArrays<std::int32_t> chips(static_cast<std::size_t>(e.torus().chips()));
  threads.for_each(e.torus().chips(), [&](std::int64_t chip) {
    const float* const own = e.f32()[static_cast<std::size_t>(chip)].data();
    std::int32_t* const to =
        shard_of(chips, chip, static_cast<std::size_t>(rows) * Summing::kWords);
    for (std::int64_t b = 0; b < rows; ++b)
      Summing::ask(own + b * width, width, 0, to + b * std::int64_t{kSumWords});
  });
  return {e.torus(),
          of_blocks(e, true),
          {e.shape()[0], e.torus().size(e.layout().axes('V')), kSumWords},
          std::move(chips)};
}

TokenDraw draw(const Sharded& e, const Sharded& masses, const Draws& draws, Threads& threads) {
  const std::int64_t rows = e.local()[0], width = e.local()[1], C = masses.local()[1];
  const auto chips = static_cast<std::size_t>(e.torus().chips());
  ChipArrays<float> hits(chips);
  ChipArrays<std::int32_t> tokens(chips);
  threads.for_each(e.torus().chips(), [&](std::int64_t chip) {
    const auto c = static_cast<std::size_t>(chip);
    const std::int64_t mine = e.torus().block(static_cast<int>(chip), e.layout().axes('V'));
    const std::int64_t first_row =
        e.torus().block(static_cast<int>(chip), e.layout().axes('B')) * rows;
    const float* const own = e.f32()[c].data();
    float* const hit = shard_of(hits, chip, static_cast<std::size_t>(rows));
    std::int32_t* const token = shard_of(tokens, chip, static_cast<std::size_t>(rows));
    for (std::int64_t b = 0; b < rows; ++b) {
      Mass before, total;
      for (std::int64_t block = 0; block < C; ++block) {
        const std::span<const std::int32_t, kSumWords> words(
            masses.i32()[c].data() + (b * C + block) * kSumWords, kSumWords);
        total.add(words);
        if (block < mine) before.add(words);
      }
      const Draw key = draws.of(static_cast<std::size_t>(first_row + b));
      const std::uint64_t number =
          (static_cast<std::uint64_t>(key.row) << 32) + static_cast<std::uint64_t>(key.token);
      const std::uint32_t r = counter_random(draws.seed, "sample", number)[0] >> 8;
      hit[b] = 0.0F;
      token[b] = static_cast<std::int32_t>(mine * width);
      if (before.more_than(r, total)) continue;  // the random number falls before this block
      const std::span<const float> row(own + b * width, static_cast<std::size_t>(width));
      const std::int64_t v = before.falls_on(row, r, total);
      if (v == width) continue;  // the random number falls after this block
      hit[b] = 1.0F;
      token[b] += static_cast<std::int32_t>(v);
    }
  });
  const Layout layout = of_blocks(e, false);
  const Shape shape{e.shape()[0], e.torus().size(e.layout().axes('V'))};
  return {{e.torus(), layout, shape, std::move(hits)},
          {e.torus(), layout, shape, std::move(tokens)}};
}

}  // namespace shardproof
