#include "golden/corpus/detail/listed.h"

#include <fmt/format.h>

#include <algorithm>

#include "weights/base/detail/text_file.h"

namespace shardproof::corpus {

bool is_id(std::string_view id) {
  return !id.empty() && id.front() != '/' && id.back() != '/' &&
         id.find("..") == std::string_view::npos && id.find("//") == std::string_view::npos &&
         std::all_of(id.begin(), id.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
                  c == '/';
         });
}

std::string list_text(const std::filesystem::path& path, std::string_view kind) {
  std::error_code error;
  if (std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error))
    throw Error("corpus_open", fmt::format("{:?} is not a regular file", path.string()));
  return read_text(path.string(), {.unreadable = "corpus_open",
                                   .no_text = "corpus_open",
                                   .most = std::size_t{1} << 20,
                                   .kind = kind});
}

}  // namespace shardproof::corpus
