#include "golden/compare/row_padding.h"

#include <algorithm>
#include <string>

#include "weights/model/registry.h"

namespace shardproof {

RowsOfPass::RowsOfPass(const PassPlan& pass) {
  for (const PassRows& group : pass.rows) {
    tokens.insert(tokens.end(), static_cast<std::size_t>(group.rows), group.tokens);
    samples.insert(samples.end(), static_cast<std::size_t>(group.rows), pass.samples(group));
  }
}

std::vector<bool> row_padding(std::string_view dims, const Shape& shape, bool of_sampling,
                              const RowsOfPass& rows) {
  if (!dims.starts_with("B") || dims.starts_with("BM") || shape.empty() ||
      static_cast<std::size_t>(shape[0]) != rows.tokens.size())
    return {};
  const bool has_places = dims.starts_with("BL");
  const std::int64_t L = has_places ? shape[1] : 1;
  const auto B = static_cast<std::size_t>(shape[0]);
  if (element_count(shape) == 0) return {};
  const std::int64_t place = element_count(shape) / (shape[0] * L);
  const auto judged = [&](std::size_t b) -> std::int64_t {
    return of_sampling ? (rows.samples[b] ? 1 : 0) : std::min(rows.tokens[b], L);
  };
  std::vector<bool> padding;  // stays empty without padding: most passes have rows of one length
  for (std::size_t b = 0; b < B; ++b) {
    if (judged(b) == L) continue;
    if (padding.empty()) padding.resize(static_cast<std::size_t>(element_count(shape)), false);
    const auto row = padding.begin() + static_cast<std::int64_t>(b) * L * place;
    std::fill(row + judged(b) * place, row + L * place, true);
  }
  return padding;
}

std::vector<bool> row_padding(const Role& role, const Shape& shape, const RowsOfPass& rows,
                              const ModelRows* of_model) {
  const ValueRow* const row = value_row(role, of_model);
  if (row == nullptr || role.kind == Role::Kind::previous || role.kind == Role::Kind::prefix ||
      role.kind == Role::Kind::weight || role.kind == Role::Kind::constant)
    return {};
  std::string dims(row->dims);
  if (role.last && dims.starts_with("BL")) dims.erase(1, 1);
  const bool of_sampling =
      row->per_block || row->drawing || (row->integer && role.kind == Role::Kind::checkpoint);
  return row_padding(dims, shape, of_sampling, rows);
}

std::vector<bool> padding_in_trace(std::string_view dims, const Shape& shape, bool of_sampling,
                                   const PassPlan& pass) {
  if (!dims.starts_with("BM")) return row_padding(dims, shape, of_sampling, RowsOfPass(pass));
  const std::int64_t M = shape[1];
  if (element_count(shape) == 0) return {};
  const std::int64_t slot = element_count(shape) / (shape[0] * M);
  std::vector<bool> padding(static_cast<std::size_t>(element_count(shape)), false);
  bool any = false;
  std::int64_t row = 0;
  for (const PassRows& group : pass.rows)
    for (std::int64_t n = 0; n < group.rows; ++n, ++row) {
      // Slots hold the row's own tokens.
      const std::int64_t end = std::min(group.end() - pass.prefix.length, M);
      any = any || end < M;
      std::fill(padding.begin() + (row * M + end) * slot, padding.begin() + (row + 1) * M * slot,
                true);
    }
  return any ? padding : std::vector<bool>();
}

}  // namespace shardproof
