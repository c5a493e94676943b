#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace shardproof::tools {

/// A file that a flag names; an empty name stands for none.
struct NamedFile {
  std::string_view flag;
  std::string file;
};

/// Throws Error("output_c2", ...) if `output` is one of the inputs, by whatever name or link: it
/// would replace what is being read.
void require_not_input(const NamedFile& output, std::initializer_list<NamedFile> inputs);

}  // namespace shardproof::tools
