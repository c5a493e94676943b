#include "golden/trace/value/last_rows.h"

#include <algorithm>

#include "weights/base/detail/index.h"

namespace shardproof::dump {
namespace {

Shape without_positions(Shape whole) {
  whole.erase(whole.begin() + 1);
  return whole;
}

}  // namespace

std::vector<std::size_t> last_elements(const Shape& whole, const PassPlan& pass) {
  const std::size_t L = at(whole[1]), B = at(whole[0]);
  const std::size_t inner = at(element_count(whole)) / (B * L);
  std::vector<std::size_t> elements;
  std::size_t row = 0;
  for (const PassRows& group : pass.rows)
    for (std::int64_t i = 0; i < group.rows; ++i, ++row)
      for (std::size_t k = 0; k < inner; ++k)
        elements.push_back((row * L + at(std::max<std::int64_t>(group.tokens - 1, 0))) * inner + k);
  return elements;
}

Tensor last_rows(const Tensor& whole, const PassPlan& pass) {
  Tensor last(without_positions(whole.shape));
  std::size_t i = 0;
  for (const std::size_t element : last_elements(whole.shape, pass))
    last.data.at(i++) = whole.data.at(element);
  return last;
}

bounds::IntervalTensor last_rows(const bounds::IntervalTensor& whole, const PassPlan& pass) {
  bounds::IntervalTensor last(without_positions(whole.shape));
  std::size_t i = 0;
  for (const std::size_t element : last_elements(whole.shape, pass))
    last.set(i++, whole.number(element));
  return last;
}

}  // namespace shardproof::dump
