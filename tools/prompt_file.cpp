#include "tools/prompt_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "weights/error.h"
#include "weights/text_file.h"

namespace shardproof::tools {
namespace {

constexpr TextFile::Rules kRules{"prompt_c1", "prompt_c6", std::size_t{16} << 20, "prompt"};
constexpr std::string_view kSpaces = " \t";

/// A place in the file, as messages name it.
struct Place {
  const std::string& path;
  std::size_t line;
};

[[noreturn]] void refuse_id(const std::string& where, const ModelConfig& model) {
  throw Error("prompt_c5", fmt::format("{}; the vocabulary has V={}, ids from 0 to {}", where,
                                       model.V, model.V - 1));
}

[[noreturn]] void refuse_length(const Place& place, const ModelConfig& model) {
  throw Error("prompt_c7", fmt::format("{} line {} is a row of more tokens than the model has "
                                       "positions, {}",
                                       place.path, place.line, model.positions));
}

/// A word as a message shows it.
std::string shown(std::string_view word) {
  constexpr std::size_t kMost = 24;
  return fmt::format("{:?}{}", word.substr(0, kMost), word.size() > kMost ? "..." : "");
}

void add_bytes(std::string_view line, const Place& place, const ModelConfig& model,
               std::vector<std::int32_t>& ids) {
  if (std::cmp_greater(line.size(), model.positions)) refuse_length(place, model);
  for (char byte : line) {
    const auto id = static_cast<unsigned char>(byte);
    if (id >= model.V)
      refuse_id(fmt::format("{} line {} holds byte {}", place.path, place.line, id), model);
    ids.push_back(id);
  }
}

void add_ids(std::string_view line, const Place& place, const ModelConfig& model,
             std::vector<std::int32_t>& ids) {
  std::int64_t words = 0;
  for (std::size_t at = 0; (at = line.find_first_not_of(kSpaces, at)) != line.npos;) {
    const std::size_t end = std::min(line.find_first_of(kSpaces, at), line.size());
    const std::string_view word = line.substr(at, end - at);
    at = end;
    if (++words > model.positions) refuse_length(place, model);
    const auto where = [&] {
      return fmt::format("{} line {} word {} is {}", place.path, place.line, words, shown(word));
    };
    std::int64_t id = 0;
    if (word.find_first_not_of("0123456789") != word.npos)
      throw Error("prompt_c8",
                  fmt::format("{}, which is not a token id: a row is decimal numbers with "
                              "spaces between them",
                              where()));
    const auto read = std::from_chars(word.data(), word.data() + word.size(), id);
    if (read.ec != std::errc() || id >= model.V) refuse_id(where(), model);
    ids.push_back(static_cast<std::int32_t>(id));
  }
}

}  // namespace

IntTensor read_prompt(const std::string& path, PromptText text, const ModelConfig& model,
                      std::optional<std::int64_t> batch) {
  const bool bytes = text == PromptText::bytes;
  // Room for ids of many digits, and for more than one space between them.
  const auto longest = static_cast<std::size_t>(model.positions) * (bytes ? 1 : 32) + 1;
  TextFile file(path, kRules);
  IntTensor prompt({0, 0});
  std::int64_t& rows = prompt.shape[0];
  std::int64_t& length = prompt.shape[1];
  for (std::string line; file.next(line, longest); ++rows) {
    const Place place{path, file.number()};
    const std::size_t before = prompt.data.size();
    (bytes ? add_bytes : add_ids)(line, place, model, prompt.data);
    if (line.size() > longest) refuse_length(place, model);
    const auto own = static_cast<std::int64_t>(prompt.data.size() - before);
    if (own == 0) throw Error("prompt_c3", fmt::format("{} line {} is empty", path, place.line));
    if (rows == 0) length = own;
    if (own != length)
      throw Error("prompt_c4",
                  fmt::format("{} line {} has {} {}, line 1 has {}; rows must be of equal length "
                              "for now",
                              path, place.line, own, bytes ? "bytes" : "ids", length));
    if (batch && rows >= *batch)
      throw Error("run_c3", fmt::format("batch={} is less than the rows of {}, which has a line {}",
                                        *batch, path, place.line));
  }
  if (rows == 0) throw Error("prompt_c2", fmt::format("{} is empty; write one row a line", path));
  return prompt;
}

}  // namespace shardproof::tools
