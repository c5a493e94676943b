#pragma once

#include <string_view>

namespace shardproof::tools {

/// Documents that the program quotes, embedded verbatim: docs/typing.md, docs/program.md, the rules
/// of docs/layouts.md, and section 6.5 of docs/spec.md.
extern const std::string_view kTypingDocument;
extern const std::string_view kProgramDocument;
extern const std::string_view kLayoutsDocument;
extern const std::string_view kErrorsDocument;

}  // namespace shardproof::tools
