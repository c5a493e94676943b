#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "weights/base/tensor.h"

namespace shardproof {

/// Reads a NumPy file, version 1.0, C order, exactly the type asked for (f32 or int32) and exactly
/// the bytes its shape needs. Throws std::runtime_error naming the file otherwise.
template <class T>
Array<T> read_npy(const std::filesystem::path& path) {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, std::int32_t>);
  const auto broken = [&](const char* why) {
    return std::runtime_error(path.string() + ": " + why);
  };
  std::ifstream file(path, std::ios::binary);
  if (!file) throw broken("cannot be opened");
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (bytes.size() < 10 || bytes.compare(0, 8, std::string("\x93NUMPY\x01\x00", 8)) != 0)
    throw broken("is no NumPy file of version 1.0");
  const std::size_t header = static_cast<unsigned char>(bytes[8]) +
                             std::size_t{256} * static_cast<unsigned char>(bytes[9]);
  if (bytes.size() < 10 + header) throw broken("ends within its header");

  static const std::regex form(
      R"(\{'descr': '<([fi]4)', 'fortran_order': False, 'shape': \(([0-9, ]*)\), \} *\n)");
  const std::string text = bytes.substr(10, header);
  std::smatch match;
  if (!std::regex_match(text, match, form)) throw broken("has another header");
  if (match[1] != (std::is_same_v<T, float> ? "f4" : "i4")) throw broken("has another type");
  Shape shape;
  const std::string extents = match[2];
  static const std::regex number("[0-9]+");
  for (std::sregex_iterator at(extents.begin(), extents.end(), number), end; at != end; ++at)
    shape.push_back(std::stoll(at->str()));

  Array<T> array(shape);
  if (bytes.size() != 10 + header + array.data.size() * sizeof(T)) throw broken("has another size");
  std::memcpy(array.data.data(), bytes.data() + 10 + header, array.data.size() * sizeof(T));
  return array;
}

}  // namespace shardproof
