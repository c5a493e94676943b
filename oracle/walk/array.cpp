#include "oracle/walk/array.h"

#include <fmt/format.h>

namespace shardproof::oracle::graph {

std::vector<size_t> places_in(std::string_view letters, const Shape& shape, std::string_view of,
                              const Shape& of_shape) {
  std::vector<std::int64_t> steps;
  for (const char c : letters) steps.push_back(step_of(of, of_shape, c));
  std::vector<size_t> places(count_of(shape));
  std::vector<std::int64_t> index(shape.size(), 0);
  std::int64_t at = 0;
  for (size_t& place : places) {
    place = static_cast<size_t>(at);
    for (size_t d = shape.size(); d-- > 0;) {
      at += steps[d];
      if (++index[d] < shape[d]) break;
      at -= steps[d] * shape[d];
      index[d] = 0;
    }
  }
  return places;
}

std::optional<Presence> both(const std::optional<Presence>& a, const std::optional<Presence>& b,
                             std::string_view letters, const Shape& shape) {
  if (!a) return b;
  if (!b) return a;
  Presence out;
  for (size_t i = 0; i < letters.size(); ++i)
    if (a->letters.find(letters[i]) != std::string::npos ||
        b->letters.find(letters[i]) != std::string::npos) {
      out.letters += letters[i];
      out.shape.push_back(shape[i]);
    }
  const auto in_a = places_in(out.letters, out.shape, a->letters, a->shape);
  const auto in_b = places_in(out.letters, out.shape, b->letters, b->shape);
  for (size_t i = 0; i < in_a.size(); ++i) out.here.push_back(a->here[in_a[i]] & b->here[in_b[i]]);
  return out;
}

std::vector<std::uint8_t> here_in(const std::optional<Presence>& presence, std::string_view letters,
                                  const Shape& shape) {
  std::vector<std::uint8_t> here;
  if (!presence) return here;
  for (const size_t place : places_in(letters, shape, presence->letters, presence->shape))
    here.push_back(presence->here[place]);
  return here;
}

void require_row(double row, std::int64_t rows, const std::string& where) {
  if (!(row >= 0 && row < static_cast<double>(rows)))
    throw Error("oracle_graph", fmt::format("{}: gather reads row {} of {}", where, row, rows));
}

}  // namespace shardproof::oracle::graph
