#pragma once

#include <string>
#include <string_view>

namespace shardproof::tools {

/// Writes a file, whole or not at all: to a temporary file beside `path`, then renamed.
/// Throws Error("file_write", ...) naming the path and the reason.
void write_text_file(const std::string& path, std::string_view text);

}  // namespace shardproof::tools
