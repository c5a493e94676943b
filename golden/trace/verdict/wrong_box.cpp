#include "golden/trace/verdict/wrong_box.h"

#include <algorithm>
#include <cstddef>

#include "golden/compare/reach_meter.h"

namespace shardproof::dump {

std::vector<std::vector<std::int64_t>> wrong_box(const Shape& shape, const std::vector<bool>& wrong,
                                                 const std::vector<bool>& padding) {
  const std::int64_t count = std::count(wrong.begin(), wrong.end(), true);
  const std::int64_t padded = std::count(padding.begin(), padding.end(), true);
  if (count < 2 || count + padded == std::ssize(wrong)) return {};
  std::vector<std::vector<bool>> met;
  for (const std::int64_t extent : shape) met.emplace_back(static_cast<std::size_t>(extent), false);
  for (std::size_t i = 0; i < wrong.size(); ++i) {
    if (!wrong[i]) continue;
    const Shape index = global_index(shape, static_cast<std::int64_t>(i));
    for (std::size_t d = 0; d < index.size(); ++d)
      met[d][static_cast<std::size_t>(index[d])] = true;
  }
  std::vector<std::vector<std::int64_t>> box;
  std::int64_t combinations = 1;
  for (const std::vector<bool>& of_dim : met) {
    std::vector<std::int64_t>& indices = box.emplace_back();
    for (std::size_t i = 0; i < of_dim.size(); ++i)
      if (of_dim[i]) indices.push_back(static_cast<std::int64_t>(i));
    combinations *= std::ssize(indices);
  }
  for (std::size_t i = 0; i < padding.size(); ++i) {
    if (!padding[i]) continue;
    const Shape index = global_index(shape, static_cast<std::int64_t>(i));
    bool inside = true;
    for (std::size_t d = 0; d < index.size(); ++d)
      inside = inside && met[d][static_cast<std::size_t>(index[d])];
    combinations -= inside ? 1 : 0;
  }
  // All wrong elements are among the combinations, so equal counts mean a full box.
  if (combinations != count) box.clear();
  return box;
}

}  // namespace shardproof::dump
