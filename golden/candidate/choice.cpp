#include "golden/candidate/choice.h"

#include <algorithm>
#include <cmath>

namespace shardproof::candidate {

Choice::Choice(const bounds::Carried& logits, std::size_t blocks)
    : logits_(logits),
      blocks_(blocks),
      width_(static_cast<std::size_t>(logits.shape[1]) / blocks) {}

std::size_t Choice::best(std::size_t at) const {
  const auto first = logits_.center.begin() + static_cast<std::ptrdiff_t>(at * width_);
  const auto top = std::max_element(first, first + static_cast<std::ptrdiff_t>(width_));
  return at % blocks_ * width_ + static_cast<std::size_t>(top - first);
}

Choice::May Choice::of(std::size_t at, double token) const {
  const auto first_id = static_cast<double>(at % blocks_ * width_);
  if (!(token >= first_id && token < first_id + static_cast<double>(width_)) ||
      token != std::floor(token))
    return May::not_be;
  const auto t = at * width_ + static_cast<std::size_t>(token - first_id);
  const auto top = at * width_ + best(at) % width_;
  const std::vector<double>&z = logits_.center, &radius = logits_.radius;
  const double room = radius[t] + radius[top];
  if (t != top && !(room > 0 && z[t] + room >= z[top])) return May::not_be;
  for (std::size_t k = at * width_; k < (at + 1) * width_; ++k)
    if (k != t && radius[k] + radius[t] > 0 && z[k] + radius[k] >= z[t] - radius[t])
      return May::among_others;
  return May::alone;
}

bounds::Carried Choice::largest() const {
  bounds::Carried most(Shape{logits_.shape[0], static_cast<std::int64_t>(blocks_)});
  for (std::size_t i = 0; i < most.size(); ++i) {
    const auto in_block = [&](const std::vector<double>& of) {
      const auto first = of.begin() + static_cast<std::ptrdiff_t>(i * width_);
      return *std::max_element(first, first + static_cast<std::ptrdiff_t>(width_));
    };
    most.center[i] = in_block(logits_.center);
    most.radius[i] = in_block(logits_.radius);
  }
  return most;
}

}  // namespace shardproof::candidate
