#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "weights/base/error.h"

namespace shardproof::corpus {

/// Returns the SHA-256 as 64 hexadecimal digits.
std::string sha256(std::string_view bytes);
/// Returns the SHA-256 of a file. Throws Error("corpus_open", ...) if it cannot be read.
std::string sha256_of(const std::filesystem::path& path);

}  // namespace shardproof::corpus
