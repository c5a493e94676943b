#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "weights/base/error.h"
#include "weights/safetensors/tensor_files.h"

namespace shardproof {

/// Reads the header of a safetensors file: its tensors by name. Throws Error: "tensors_open",
/// "tensors_header".
std::map<std::string, StoredTensor> read_header(const std::filesystem::path& file);

/// Reads the index of a directory of files: the name of the file of each tensor. Throws Error:
/// "tensors_open", "tensors_header" (no index, or a file outside of the directory).
std::map<std::string, std::string> read_index(const std::filesystem::path& file);

}  // namespace shardproof
