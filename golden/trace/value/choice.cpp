#include "golden/trace/value/choice.h"

#include <algorithm>
#include <cmath>

namespace shardproof::dump {

Choice::Choice(const bounds::IntervalTensor& logits, std::size_t blocks, std::size_t width)
    : logits_(logits),
      blocks_(blocks),
      V_(static_cast<std::size_t>(logits.shape[1])),
      width_(width == 0 ? V_ / blocks : width) {}

Choice::Block Choice::block(std::size_t at) const {
  const std::size_t id = at % blocks_ * width_;
  const std::size_t first = at / blocks_ * V_ + id;
  return {id, first, first + std::min(width_, V_ - id)};
}

std::size_t Choice::best(std::size_t at) const {
  const Block of = block(at);
  const auto z = logits_.center.begin();
  const auto top = std::max_element(z + static_cast<std::ptrdiff_t>(of.first),
                                    z + static_cast<std::ptrdiff_t>(of.last));
  return of.id + static_cast<std::size_t>(top - z) - of.first;
}

ArgmaxFit Choice::of(std::size_t at, double token) const {
  const Block of = block(at);
  const auto first_id = static_cast<double>(of.id);
  if (!(token >= first_id && token < first_id + static_cast<double>(of.last - of.first)) ||
      token != std::floor(token))
    return ArgmaxFit::impossible;
  const auto t = of.first + static_cast<std::size_t>(token - first_id);
  const auto top = of.first + best(at) - of.id;
  const std::vector<double>&z = logits_.center, &radius = logits_.radius;
  const double room = radius[t] + radius[top];
  if (t != top && !(room > 0 && z[t] + room >= z[top])) return ArgmaxFit::impossible;
  for (std::size_t k = of.first; k < of.last; ++k)
    if (k != t && radius[k] + radius[t] > 0 && z[k] + radius[k] >= z[t] - radius[t])
      return ArgmaxFit::ambiguous;
  return ArgmaxFit::certain;
}

bounds::IntervalTensor Choice::largest() const {
  bounds::IntervalTensor most(Shape{logits_.shape[0], static_cast<std::int64_t>(blocks_)});
  for (std::size_t i = 0; i < most.size(); ++i) {
    const Block of = block(i);
    const auto in_block = [&](const std::vector<double>& all) {
      return *std::max_element(all.begin() + static_cast<std::ptrdiff_t>(of.first),
                               all.begin() + static_cast<std::ptrdiff_t>(of.last));
    };
    most.center[i] = in_block(logits_.center);
    most.radius[i] = in_block(logits_.radius);
    most.likely[i] = in_block(logits_.likely);
  }
  return most;
}

}  // namespace shardproof::dump
