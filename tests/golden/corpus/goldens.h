#pragma once

// Goldens to change and to look at.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "golden/corpus/detail/collectives.h"
#include "golden/corpus/golden.h"
#include "golden/trace/read/dump.h"

namespace shardproof::corpus {

/// One bit of one element is another one.
inline void flip(dump::StoredArray& stored, std::size_t element, int bit = 0) {
  const std::size_t byte = element * static_cast<std::size_t>(bytes_of(stored.encoding)) +
                           static_cast<std::size_t>(bit) / 8;
  stored.bytes.at(byte) ^= static_cast<std::byte>(1 << (bit % 8));
}

inline dump::Dump flipped(dump::Dump golden, const std::string& name, std::size_t element,
                          int bit = 0) {
  flip(golden.values.find(name)->second.whole, element, bit);
  return golden;
}

inline void erase(dump::Dump& golden, const std::string& name) {
  golden.values.erase(golden.values.find(name));
  std::erase(golden.order, name);
}

/// What check() finds, or what it throws.
inline std::string fault_of(const dump::Dump& golden) {
  try {
    return check(golden).fault;
  } catch (const Error& error) {
    return error.what();
  }
}

/// A golden of these values of a larger one.
inline dump::Dump only(const dump::Dump& golden, const std::vector<std::string>& names) {
  dump::Dump few;
  few.attributes = golden.attributes;
  for (const std::string& name : names) {
    dump::Value value = golden.values.find(name)->second;
    value.attributes["order"] = std::to_string(few.order.size());
    few.values.emplace(name, std::move(value));
    few.order.push_back(name);
  }
  return few;
}

/// A collective with its operand.
inline dump::Dump only_collective(const dump::Dump& golden, const std::string& name) {
  return only(golden, {name + std::string(kOperandSuffix), name});
}

/// Names of results.
inline std::vector<std::string> results_of(const dump::Dump& golden) {
  std::vector<std::string> names;
  for (const std::string& name : golden.order)
    if (!name.ends_with(kOperandSuffix)) names.push_back(name);
  return names;
}

/// Whether a fault is of the value with this name, or of its operand: it begins with it, after the
/// label where it is an Error's.
inline bool names(std::string fault, const std::string& name) {
  if (const auto label = fault.find(": ");
      fault.starts_with("golden_") && label != std::string::npos)
    fault.erase(0, label + 2);
  return fault.starts_with(name) && fault.size() > name.size() &&
         (fault[name.size()] == ' ' || fault[name.size()] == ':' ||
          fault.substr(name.size()).starts_with(kOperandSuffix));
}

}  // namespace shardproof::corpus
