#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "weights/base/error.h"

namespace shardproof::corpus {

/// Returns whether a text is the id of a listed file: small letters, digits, '-', '.' and '/',
/// below the list's folder.
bool is_id(std::string_view id);

/// Reads the text of a list. Throws Error("corpus_open", ...).
std::string list_text(const std::filesystem::path& path, std::string_view kind);

}  // namespace shardproof::corpus
