#include "golden/scalar/detail/sampling.h"

#include <algorithm>
#include <span>

#include "oracle/model/detail/sampling.h"
#include "weights/model/sampling.h"

namespace shardproof::scalar {
namespace {

/// Access to the rows of a complete value [B, ...].
class Rows {
 public:
  explicit Rows(const Value& t)
      : values_(t.whole()), width_(values_.size() / static_cast<std::size_t>(t.shape[0])) {}
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
  for (std::size_t b = 0; b < static_cast<std::size_t>(z.shape[0]); ++b) {
    const std::vector<float> row =
        oracle::chances(rows[b].first(static_cast<std::size_t>(std::min(V, z.shape[1]))),
                        draws.sampling.temperature, draws.unit);
    e.parts[0].insert(e.parts[0].end(), row.begin(), row.end());
    e.parts[0].resize((b + 1) * static_cast<std::size_t>(z.shape[1]), 0.0F);
  }
  return {e};
}

std::vector<Value> searched(const Op& op, const Value& e, const Sampling& how) {
  const bool counts = op.kind == OpKind::top_k;
  const std::int64_t B = e.shape[0];
  Value floors{{}, {B}, {{}}, {}}, sums{{}, {B, 0}, {}, {}}, kept{{}, e.shape, {{}}, {}};
  const Rows rows(e);
  for (std::size_t b = 0; b < static_cast<std::size_t>(B); ++b) {
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
  const auto width = static_cast<std::size_t>(e.shape[1] / blocks);
  Value sums{{}, {B, blocks, kSumWords}, {}, {}};
  for (std::size_t block = 0; block < static_cast<std::size_t>(B * blocks); ++block)
    put(oracle::words_of(oracle::sum_of_chances(
            std::span<const float>(e.whole()).subspan(block * width, width))),
        sums.ints);
  return {sums};
}

std::vector<Value> drawn(const Value& e, std::int64_t blocks, const Draws& draws) {
  const std::int64_t B = e.shape[0], width = e.shape[1] / blocks;
  Value hits{{}, {B, blocks}, {{}}, {}}, tokens{{}, {B, blocks}, {}, {}};
  const Rows rows(e);
  for (std::size_t b = 0; b < static_cast<std::size_t>(B); ++b) {
    const std::int32_t token = oracle::drawn(rows[b], draws.seed, draws.of(b));
    for (std::int64_t block = 0; block < blocks; ++block) {
      const bool here = token / width == block;
      hits.parts[0].push_back(here ? 1.0F : 0.0F);
      tokens.ints.push_back(here ? token : static_cast<std::int32_t>(block * width));
    }
  }
  return {hits, tokens};
}

}  // namespace

std::vector<Value> sampling(const Op& op, const std::vector<const Value*>& args,
                            const Setting& setting) {
  const Value& t = *args.at(0);
  const std::int64_t blocks = setting.torus.size(t.layout.axes('V'));
  switch (op.kind) {
    case OpKind::weigh:
      return weighed(t, setting.draws, setting.config.V);
    case OpKind::masses:
      return massed(t, blocks);
    case OpKind::draw:
      return drawn(t, blocks, setting.draws);
    default:
      return searched(op, t, setting.draws.sampling);
  }
}

}  // namespace shardproof::scalar
