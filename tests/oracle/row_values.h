#pragma once

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstddef>
#include <cstring>
#include <map>
#include <string>

#include "oracle/request/model_values.h"
#include "weights/model/registry.h"

// A batch's values, and those of its rows that ran by themselves.

namespace shardproof::oracle {

inline std::string name_of(const std::string& id) { return id.substr(id.rfind('.') + 1); }
inline std::string pass_of(const std::string& id) {
  return id.substr(0, id.find('.', id.find('.') + 1));
}

/// Whether element `at` of the batch's value of the pass is of a token, or a slot, that row b has,
/// and which element of the row's own value it is then.
struct Element {
  std::size_t b = 0, of_row = 0;
  bool held = false;
};
inline Element element(std::size_t at, const Shape& whole, const Shape& row) {
  Element e;
  e.held = true;
  std::size_t stride = 1;
  for (std::size_t d = whole.size(); d-- > 1;) {
    const std::size_t place = at % static_cast<std::size_t>(whole[d]);
    at /= static_cast<std::size_t>(whole[d]);
    e.held = e.held && place < static_cast<std::size_t>(row[d]);
    e.of_row += place * stride;
    stride *= static_cast<std::size_t>(row[d]);
  }
  e.b = at;
  return e;
}

/// Holds every value of the batch against those of its rows alone.
template <class T, class Values>
void expect_rows(const std::map<std::string, T>& whole, std::size_t rows, Values&& of_row) {
  for (const auto& [id, value] : whole) {
    for (std::size_t b = 0; b < rows; ++b) {
      const T* const own = of_row(b, id);
      for (std::size_t at = 0; at < value.data.size(); ++at) {
        const bool mine = at / (value.data.size() / rows) == b;
        if (!mine) continue;
        const Element e = own == nullptr ? Element{} : element(at, value.shape, own->shape);
        const auto want = e.held ? own->data[e.of_row] : decltype(value.data[at]){};
        RC_ASSERT(std::memcmp(&value.data[at], &want, sizeof want) == 0);
      }
    }
  }
}

/// The value of a row that ran alone; of a cache in a pass without its tokens that of its last one.
template <class T>
const T* own_value(const ModelValues<T>& row, const std::map<std::string, T>& values,
                   const std::string& id) {
  if (const auto found = values.find(id); found != values.end()) return &found->second;
  const ValueRow* const value = value_row(name_of(id));
  if (value == nullptr || !value->cache) return nullptr;
  std::string before;
  for (const std::string& pass : row.passes)
    if (pass.starts_with("prefill")) before = pass;
  return &values.at(before + id.substr(pass_of(id).size()));
}

}  // namespace shardproof::oracle
