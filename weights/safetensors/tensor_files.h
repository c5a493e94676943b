#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "weights/base/error.h"
#include "weights/base/number_format.h"
#include "weights/base/tensor.h"

namespace shardproof {

/// A tensor of a safetensors file: where its bytes are, little-endian and row-major.
struct StoredTensor {
  std::filesystem::path file;
  NumberFormat format = NumberFormat::f32;
  Shape shape;
  std::uint64_t begin = 0;  ///< byte of the file
};

/// Tensors by name, which are read where they are asked for.
class TensorSource {
 public:
  virtual ~TensorSource() = default;
  virtual bool has(std::string_view name) const = 0;
  virtual std::vector<std::string> names() const = 0;
  /// Returns a tensor's numbers, rounded to f32.
  virtual Tensor read(std::string_view name) const = 0;
};

/// The tensors of one safetensors file, or of those of a directory: of its
/// model.safetensors.index.json if it has one, otherwise all. Only headers are held; numbers are
/// read where they are asked for.
class TensorFiles : public TensorSource {
 public:
  /// Throws Error, each with file and values: "tensors_open" (no such file, none in the directory,
  /// unreadable), "tensors_header" (no safetensors file, cut off, or a header that contradicts
  /// itself: a tensor of unknown type, beyond the file, over another, or named twice; an index that
  /// names a file that lacks the tensor).
  static TensorFiles open(const std::filesystem::path& path);

  const std::map<std::string, StoredTensor, std::less<>>& all() const { return tensors_; }
  bool has(std::string_view name) const override { return tensors_.contains(name); }
  std::vector<std::string> names() const override;
  /// Returns a tensor's numbers, rounded to f32. Throws Error: "tensors_name" (there is none),
  /// "tensors_open" (it cannot be read any more), "tensors_value" (a number that f32 has not: not
  /// finite, or beyond it), "memory_c1".
  Tensor read(std::string_view name) const override;

 private:
  std::filesystem::path path_;
  std::map<std::string, StoredTensor, std::less<>> tensors_;
};

}  // namespace shardproof
