#include "golden/scalar/detail/sampling.h"

#include <algorithm>
#include <limits>
#include <span>

#include "oracle/model/detail/sampling.h"
#include "weights/base/detail/index.h"
#include "weights/model/sampling.h"

namespace shardproof::scalar {
namespace {

/// Access to the rows of a complete value [B, ...].
class Rows {
 public:
  explicit Rows(const Value& t) : values_(t.whole()), width_(values_.size() / at(t.shape[0])) {}
  std::span<const float> operator[](std::size_t b) const {
    return std::span<const float>(values_).subspan(b * width_, width_);
  }

 private:
  const std::vector<float>& values_;
  std::size_t width_;
};

void put(const std::vector<std::uint32_t>& words, std::vector<std::int32_t>& to) {
  for (const std::uint32_t word : words) to.push_back(static_cast<std::int32_t>(word));
}

/// Returns the chances of the ids; ids from V on are padding and get +0.
std::vector<Value> weighed(const Value& z, const Draws& draws, std::int64_t V) {
  Value e{{}, z.shape, {{}}, {}};
  const Rows rows(z);
  for (std::size_t b = 0; b < at(z.shape[0]); ++b) {
    const std::vector<float> row = oracle::chances(rows[b].first(at(std::min(V, z.shape[1]))),
                                                   draws.sampling.temperature, draws.unit);
    e.parts[0].insert(e.parts[0].end(), row.begin(), row.end());
    e.parts[0].resize((b + 1) * at(z.shape[1]), 0.0F);
  }
  return {e};
}

std::vector<Value> searched(const Op& op, const Value& e, const Sampling& how) {
  const bool counts = op.kind == OpKind::top_k;
  const std::int64_t B = e.shape[0];
  Value floors{{}, {B}, {{}}, {}}, sums{{}, {B, 0}, {}, {}}, kept{{}, e.shape, {{}}, {}};
  const Rows rows(e);
  for (std::size_t b = 0; b < at(B); ++b) {
    const std::span<const float> row = rows[b];
    const float floor =
        counts ? oracle::top_k_floor(row, how.top_k) : oracle::top_p_floor(row, how.top_p);
    floors.parts[0].push_back(floor);
    put(counts ? oracle::search_counts(row, floor) : oracle::search_sums(row, floor), sums.ints);
    const std::vector<float> left = oracle::kept(row, floor);
    kept.parts[0].insert(kept.parts[0].end(), left.begin(), left.end());
  }
  sums.shape[1] = std::ssize(sums.ints) / B;
  return {sums, floors, kept};
}

std::vector<Value> massed(const Value& e, std::int64_t blocks) {
  const std::int64_t B = e.shape[0];
  const auto width = at(e.shape[1] / blocks);
  Value sums{{}, {B, blocks, kSumWords}, {}, {}};
  for (std::size_t block = 0; block < at(B * blocks); ++block)
    put(oracle::words_of(oracle::sum_of_chances(
            std::span<const float>(e.whole()).subspan(block * width, width))),
        sums.ints);
  return {sums};
}

std::vector<Value> drawn(const Value& e, std::int64_t blocks, const Draws& draws) {
  const std::int64_t B = e.shape[0], width = e.shape[1] / blocks;
  Value hits{{}, {B, blocks}, {{}}, {}}, tokens{{}, {B, blocks}, {}, {}};
  const Rows rows(e);
  for (std::size_t b = 0; b < at(B); ++b) {
    const std::int32_t token = oracle::drawn(rows[b], draws.seed, draws.of(b));
    for (std::int64_t block = 0; block < blocks; ++block) {
      const bool here = token / width == block;
      hits.parts[0].push_back(here ? 1.0F : 0.0F);
      tokens.ints.push_back(here ? token : static_cast<std::int32_t>(block * width));
    }
  }
  return {hits, tokens};
}

/// Returns the best logit of each block of the vocabulary, and its id; the first of equal ones. Ids
/// from V on are padding; a block of padding alone has the largest f32 and −1.
std::vector<Value> candidates(const Value& z, const Torus& torus, std::int64_t V) {
  const std::int64_t B = z.shape[0];
  const std::int64_t C = torus.size(z.layout.axes('V'));
  const std::int64_t width = z.shape[1] / C;
  Value best{{}, {B, C}, {{}}, {}};
  Value ids{{}, {B, C}, {}, {}};
  for (std::int64_t block = 0; block < B * C; ++block) {
    const std::int64_t own = std::min(width, V - block % C * width);
    if (own <= 0) {
      best.parts[0].push_back(std::numeric_limits<float>::max());
      ids.ints.push_back(-1);
      continue;
    }
    std::int64_t first = 0;
    for (std::int64_t v = 1; v < own; ++v)
      if (z.whole()[at(block * width + v)] > z.whole()[at(block * width + first)]) first = v;
    best.parts[0].push_back(z.whole()[at(block * width + first)]);
    ids.ints.push_back(static_cast<std::int32_t>(block % C * width + first));
  }
  return {best, ids};
}

/// Returns how many of C blocks have an id.
std::int64_t blocks_of_ids(std::int64_t C, const Setting& setting) {
  if (setting.placed_V == 0) return C;
  const std::int64_t width = setting.placed_V / C;
  return (setting.config.V + width - 1) / width;
}

/// Returns the id of the best logit over the first `blocks` blocks, those with an id.
Value argmax(const Value& best, const Value& ids, std::int64_t blocks) {
  Value token{{}, {best.shape[0]}, {}, {}};
  for (std::int64_t b = 0; b < best.shape[0]; ++b) {
    std::int64_t first = b * best.shape[1];
    for (std::int64_t c = first; c < b * best.shape[1] + blocks; ++c)
      if (best.whole()[at(c)] > best.whole()[at(first)]) first = c;
    token.ints.push_back(ids.ints[at(first)]);
  }
  return token;
}

}  // namespace

std::vector<Value> sampling(const Op& op, const std::vector<const Value*>& args,
                            const Setting& setting) {
  const Value& t = *args.at(0);
  const auto blocks = [&] { return setting.torus.size(t.layout.axes('V')); };
  switch (op.kind) {
    case OpKind::local_argmax:
      return candidates(t, setting.torus, setting.config.V);
    case OpKind::argmax:
      return {argmax(t, *args[1], blocks_of_ids(t.shape[1], setting))};
    case OpKind::weigh:
      return weighed(t, setting.draws, setting.config.V);
    case OpKind::masses:
      return massed(t, blocks());
    case OpKind::draw:
      return drawn(t, blocks(), setting.draws);
    default:
      return searched(op, t, setting.draws.sampling);
  }
}

}  // namespace shardproof::scalar
