#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/golden/diagnosis/planted.h"

namespace shardproof::diagnosis {

/// A run whose products are of a fused weight that was taken apart wrongly.
class FusedRun : public Planted {
 public:
  struct Part {
    std::string value, matrix;
    std::size_t columns, first;  ///< first: among those of all parts
  };
  using Parts = std::vector<Part>;

  explicit FusedRun(const std::string& keys) : Planted(keys) {}

  Parts parts(const std::vector<std::string>& names) const {
    Parts all;
    std::size_t first = 0;
    for (const std::string& name : names) {
      const std::string matrix =
          name == "gate" || name == "up" ? "layer1.w_" + name : "layer1.w" + name;
      const Shape& shape = weights().at(matrix)->shape;
      const std::size_t columns = at(element_count(shape) / shape[0]);
      all.push_back({name, matrix, columns, first});
      first += columns;
    }
    return all;
  }
  Parts qkv() const { return parts({"q", "k", "v"}); }
  Parts gate_up() const { return parts({"gate", "up"}); }
  static std::size_t width(const Parts& all) { return all.back().first + all.back().columns; }

  /// Where column c of a part lies in n blocks that have one of each.
  static std::size_t in_blocks(const Parts& all, const Part& part, std::size_t c, std::size_t n) {
    const std::size_t own = part.columns / n;
    return c / own * (width(all) / n) + part.first / n + c % own;
  }
  /// And which column of all, part by part, lies there.
  static std::size_t out_of_blocks(const Parts& all, std::size_t place, std::size_t n) {
    const std::size_t block = width(all) / n;
    for (const Part& part : all)
      if (place % block < (part.first + part.columns) / n)
        return part.first + place / block * (part.columns / n) + place % block - part.first / n;
    return 0;
  }

  /// The numbers of part `part` if its column c is column from(part, c) of all.
  using From = std::function<std::size_t(const Part&, std::size_t)>;
  Value with(const Parts& all, const Part& part, const std::string& operand,
             const From& from) const {
    Value w = weight(part.matrix);
    for (std::size_t i = 0; i < w.data.size(); ++i) {
      const std::size_t other = from(part, i % part.columns), row = i / part.columns;
      for (const Part& of : all)
        if (other >= of.first && other < of.first + of.columns)
          w.data[i] = wide(weights().at(of.matrix)->data[row * of.columns + other - of.first]);
    }
    return product_with(kAt + operand, part.matrix, w);
  }
  /// The bias of that column of all.
  double bias(const Parts& all, std::size_t column) const {
    for (const Part& of : all)
      if (column >= of.first && column < of.first + of.columns)
        return wide(weights().at("layer1.b" + of.value)->data[column - of.first]);
    return 0;
  }
  void plant(const Part& part, const Value& v) {
    Value& own = dump.at(kAt + part.value);
    own = f32(v, own.shape);
  }
  void plant(const Parts& all, const std::string& operand, const From& from) {
    for (const Part& part : all) plant(part, with(all, part, operand, from));
  }
  /// What is said of a value as the dump has it, cut over a torus.
  Said said_of(const std::string& name, const Torus& torus, const std::string& layout) {
    return ask(kAt + name, layout, torus, cut(value(kAt + name), layout, torus));
  }
};

}  // namespace shardproof::diagnosis
