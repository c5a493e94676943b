#pragma once

#include <filesystem>
#include <string>

namespace shardproof::tools {

/// Returns what to do with a file or folder that is no trace but one that the Python package
/// imports: "is a folder; to judge it: python -m shardproof judge d --model HFDIR". Returns "" if
/// it is none: a folder, a file of torch.save, safetensors, an array of NumPy.
std::string import_command(const std::filesystem::path& path);

}  // namespace shardproof::tools
