#include "tools/verbs/import_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <fstream>
#include <string_view>
#include <system_error>

#include "tools/runner/case_source.h"

namespace shardproof::tools {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBytesOfEnd = std::size_t{64} << 10;

/// Returns the first bytes of a file, or the last; "" if it cannot be read.
std::string some_of(const fs::path& path, bool last) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return "";
  const std::uintmax_t size = fs::file_size(path, error);
  if (error) return "";
  std::string text(std::min<std::uintmax_t>(size, kBytesOfEnd), '\0');
  std::ifstream file(path, std::ios::binary);
  if (last) file.seekg(static_cast<std::streamoff>(size - text.size()));
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  return file ? text : "";
}

/// Returns whether bytes begin as a safetensors file: the length of a JSON object, and the object.
bool is_safetensors(const std::string& begin) {
  constexpr std::size_t kLength = 8;
  constexpr std::string_view kNoLonger("\0\0\0", 3);  // a header of 2^40 bytes is none
  return begin.size() > kLength && std::string_view(begin).substr(5, 3) == kNoLonger &&
         begin[kLength] == '{';
}

std::string kind_of(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return "a folder";
  const std::string begin = some_of(path, false);
  constexpr std::string_view kOldTorch = "\x80\x02\x8a\x0al\xfc\x9c";
  const bool is_zip = begin.starts_with("PK\3\4");
  if (begin.starts_with(kOldTorch) ||
      (is_zip && (begin + some_of(path, true)).find("data.pkl") != std::string::npos))
    return "a file of torch.save";
  if (begin.starts_with("\x93NUMPY")) return "one array of NumPy";
  if (is_safetensors(begin)) return "a safetensors file";
  return "";
}

}  // namespace

std::string import_command(const fs::path& path) {
  const std::string kind = kind_of(path);
  if (kind.empty()) return "";
  const std::string word = shell_word(path.string());
  return fmt::format(
      "is {}, no trace; to judge it: python -m shardproof judge {} --model HFDIR; to make a trace "
      "of it: python -m shardproof import {} --out t.h5 (docs/importing.md)",
      kind, word, word);
}

}  // namespace shardproof::tools
