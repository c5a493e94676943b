#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace shardproof::tools {

/// A file named by a flag; an empty name means none.
struct NamedFile {
  std::string_view flag;
  std::string file;
};

/// Throws Error("output_c2", ...) if `output` is one of the inputs, by any name or link: writing it
/// would replace a file being read.
void require_not_input(const NamedFile& output, std::initializer_list<NamedFile> inputs);

}  // namespace shardproof::tools
