#include "golden/compare/row_padding.h"

#include <algorithm>
#include <string>

#include "weights/base/detail/index.h"
#include "weights/model/registry.h"

namespace shardproof {

RowsOfPass::RowsOfPass(const PassPlan& pass) {
  for (const PassRows& group : pass.rows) {
    tokens.insert(tokens.end(), static_cast<std::size_t>(group.rows), group.tokens);
    samples.insert(samples.end(), static_cast<std::size_t>(group.rows), pass.samples(group));
  }
}

namespace {

bool is_cache(std::string_view dims) {
  return dims.find('M') != std::string_view::npos && dims.find('L') == std::string_view::npos;
}

/// Returns the distance between neighbours of a dim.
std::int64_t step_of(const Shape& shape, std::size_t dim) {
  std::int64_t step = 1;
  for (std::size_t d = dim + 1; d < shape.size(); ++d) step *= shape[d];
  return step;
}

/// Marks each row's places along a dim from `judged` on; a value without it has one place.
template <class Judged>
std::vector<bool> marks(std::string_view dims, const Shape& shape, char along,
                        const Judged& judged) {
  const std::size_t row_dim = dims.find('B'), place_dim = dims.find(along);
  const bool has_places = place_dim != std::string_view::npos;
  const std::int64_t B = shape[row_dim], L = has_places ? shape[place_dim] : 1;
  bool any = false;  // most passes have rows of one length
  for (std::int64_t b = 0; b < B; ++b) any = any || judged(at(b)) < L;
  if (!any) return {};
  const std::int64_t row_step = step_of(shape, row_dim);
  const std::int64_t place_step = has_places ? step_of(shape, place_dim) : 1;
  std::vector<bool> padding(at(element_count(shape)), false);
  for (std::int64_t i = 0; i < std::ssize(padding); ++i) {
    const std::int64_t place = has_places ? i / place_step % L : 0;
    padding[at(i)] = place >= judged(at(i / row_step % B));
  }
  return padding;
}

std::vector<bool> padding_of_rows(std::string_view dims, const Shape& shape, bool of_sampling,
                                  const RowsOfPass& rows) {
  const std::size_t row_dim = dims.find('B');
  if (row_dim == std::string_view::npos || shape.size() != dims.size() ||
      at(shape[row_dim]) != rows.tokens.size() || element_count(shape) == 0)
    return {};
  return marks(dims, shape, 'L', [&](std::size_t b) -> std::int64_t {
    return of_sampling ? (rows.samples[b] ? 1 : 0) : rows.tokens[b];
  });
}

}  // namespace

std::vector<bool> row_padding(std::string_view dims, const Shape& shape, bool of_sampling,
                              const RowsOfPass& rows) {
  if (is_cache(dims)) return {};
  return padding_of_rows(dims, shape, of_sampling, rows);
}

std::vector<bool> row_padding(const Role& role, const Shape& shape, const RowsOfPass& rows,
                              const ModelRows* of_model) {
  const ValueRow* const row = value_row(role, of_model);
  if (row == nullptr || role.kind == Role::Kind::previous || role.kind == Role::Kind::prefix ||
      role.kind == Role::Kind::weight || role.kind == Role::Kind::constant)
    return {};
  std::string dims(row->dims);
  if (const auto places = dims.find('L'); role.last && places != dims.npos) dims.erase(places, 1);
  const bool of_sampling =
      row->per_block || row->drawing || (row->integer && role.kind == Role::Kind::checkpoint);
  return row->cache ? std::vector<bool>() : padding_of_rows(dims, shape, of_sampling, rows);
}

std::vector<bool> padding_in_trace(std::string_view dims, const Shape& shape, bool of_sampling,
                                   const PassPlan& pass, bool view_of_cache) {
  const RowsOfPass rows(pass);
  if (!is_cache(dims) || dims.find('B') == std::string_view::npos)
    return row_padding(dims, shape, of_sampling, rows);
  if (element_count(shape) == 0) return {};
  std::vector<std::int64_t> ends;
  for (const PassRows& group : pass.rows)
    for (std::int64_t n = 0; n < group.rows; ++n)
      // Slots of a cache hold the row's own tokens; a view of it begins with those of its prefix.
      ends.push_back(!view_of_cache      ? group.end() - pass.prefix.length
                     : group.tokens == 0 ? 0
                                         : group.end());
  return marks(dims, shape, 'M', [&](std::size_t b) { return ends.at(b); });
}

}  // namespace shardproof
