#pragma once

#include <bit>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "weights/base/number_format.h"
#include "weights/base/tensor.h"

namespace shardproof {

/// A safetensors file in parts, which tests put together, or wrongly.
struct TensorFile {
  nlohmann::json header = nlohmann::json::object();
  std::string data;

  void add(const std::string& name, NumberFormat format, const Shape& shape,
           const std::vector<std::uint64_t>& bits) {
    const std::size_t begin = data.size();
    const NumberFormatRow& row = row_of(format);
    for (const std::uint64_t one : bits)
      for (int i = 0; i < row.bytes; ++i) data += static_cast<char>(one >> (8 * i) & 0xff);
    header[name] = {{"dtype", std::string(row.safetensors)},
                    {"shape", shape},
                    {"data_offsets", {begin, data.size()}}};
  }
  void add(const std::string& name, const Tensor& tensor) {
    std::vector<std::uint64_t> bits;
    for (const float x : tensor.data) bits.push_back(std::bit_cast<std::uint32_t>(x));
    add(name, NumberFormat::f32, tensor.shape, bits);
  }
  std::string bytes() const {
    const std::string text = header.dump();
    std::string all;
    for (int i = 0; i < 8; ++i) all += static_cast<char>(text.size() >> (8 * i) & 0xff);
    return all + text + data;
  }
  void write(const std::filesystem::path& path) const {
    std::ofstream(path, std::ios::binary) << bytes();
  }
};

}  // namespace shardproof
