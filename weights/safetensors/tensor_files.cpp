#include "weights/safetensors/tensor_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "weights/base/memory.h"
#include "weights/base/nearest.h"
#include "weights/safetensors/detail/header.h"

namespace shardproof {
namespace {

constexpr std::string_view kIndex = "model.safetensors.index.json";
constexpr std::size_t kBlock = std::size_t{1} << 20;

/// Returns the numbers of bytes as f32. Throws Error("tensors_value", ...).
void append_numbers(const StoredTensor& tensor, std::string_view name, const std::string& bytes,
                    std::vector<float>& numbers) {
  const auto width = static_cast<std::size_t>(row_of(tensor.format).bytes);
  for (std::size_t at = 0; at + width <= bytes.size(); at += width) {
    std::uint64_t bits = 0;
    for (std::size_t i = width; i-- > 0;)
      bits = bits << 8 | static_cast<unsigned char>(bytes[at + i]);
    const double number = number_of_bits(tensor.format, bits);
    const auto rounded = static_cast<float>(number);
    if (!std::isfinite(rounded))
      throw Error("tensors_value", fmt::format("{}: {:?}: element {} is {}, not a finite f32",
                                               tensor.file.string(), name, numbers.size(), number));
    numbers.push_back(rounded);
  }
}

}  // namespace

TensorFiles TensorFiles::open(const std::filesystem::path& path) {
  TensorFiles files;
  files.path_ = path;
  const auto take = [&](const std::filesystem::path& file) {
    for (auto& [name, tensor] : read_header(file)) {
      const auto [at, is_new] = files.tensors_.emplace(name, tensor);
      if (!is_new)
        throw Error("tensors_header", fmt::format("{}: {:?} is in {} too", file.string(), name,
                                                  at->second.file.string()));
    }
  };
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) {
    take(path);
    return files;
  }
  if (std::filesystem::exists(path / kIndex, error)) {
    const auto index = read_index(path / kIndex);
    std::vector<std::string> names;
    for (const auto& [name, file] : index) names.push_back(file);
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    for (const std::string& name : names) take(path / name);
    for (const auto& [name, file] : index) {
      const auto at = files.tensors_.find(name);
      if (at == files.tensors_.end() || at->second.file != path / file)
        throw Error("tensors_header",
                    fmt::format("{}: {:?} is not in {}", (path / kIndex).string(), name, file));
    }
    return files;
  }
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(path, error))
    if (entry.path().extension() == ".safetensors") found.push_back(entry.path());
  if (found.empty())
    throw Error("tensors_open", fmt::format("{}: no *.safetensors in it", path.string()));
  std::sort(found.begin(), found.end());
  for (const auto& file : found) take(file);
  return files;
}

std::vector<std::string> TensorFiles::names() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors_) names.push_back(name);
  return names;
}

Tensor TensorFiles::read(std::string_view name) const {
  const auto at = tensors_.find(name);
  if (at == tensors_.end()) {
    const std::string near = nearest(name, names());
    throw Error("tensors_name",
                fmt::format("{}: no tensor {}{}", path_.string(), name,
                            near.empty() ? "" : fmt::format("; did you mean {}?", near)));
  }
  const StoredTensor& tensor = at->second;
  const auto count = static_cast<std::size_t>(element_count(tensor.shape));
  require_memory(4.0 * static_cast<double>(count), fmt::format("the tensor {:?} needs", name),
                 "a smaller model fits");
  std::ifstream in(tensor.file, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(tensor.begin));
  Tensor result;
  result.shape = tensor.shape;
  result.data.reserve(count);
  std::size_t left = count * static_cast<std::size_t>(row_of(tensor.format).bytes);
  std::string block;
  while (left > 0) {
    block.resize(std::min(left, kBlock));
    if (!in.read(block.data(), static_cast<std::streamsize>(block.size())))
      throw Error("tensors_open",
                  fmt::format("{}: {:?} cannot be read: the file has become shorter",
                              tensor.file.string(), name));
    append_numbers(tensor, name, block, result.data);
    left -= block.size();
  }
  return result;
}

}  // namespace shardproof
