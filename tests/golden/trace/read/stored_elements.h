#pragma once

// Arrays of a trace, of elements as they are stored.
#include <cstdint>
#include <cstring>
#include <vector>

#include "golden/trace/read/dump.h"

namespace shardproof::dump {

template <class T>
StoredArray stored(NumberFormat encoding, const std::vector<T>& elements) {
  StoredArray s{
      .shape = {static_cast<std::int64_t>(elements.size())}, .encoding = encoding, .bytes = {}};
  s.bytes.resize(elements.size() * sizeof(T));
  std::memcpy(s.bytes.data(), elements.data(), s.bytes.size());
  return s;
}

}  // namespace shardproof::dump
