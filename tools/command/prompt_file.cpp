#include "tools/command/prompt_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "weights/base/detail/text_file.h"
#include "weights/base/error.h"

namespace shardproof::tools {
namespace {

constexpr TextFile::Rules kRules{"prompt_c1", "prompt_c6", std::size_t{16} << 20, "prompt"};
constexpr std::string_view kSpaces = " \t";

/// A location in the file, for messages.
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

/// Quotes a word for a message, truncated.
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

std::int64_t PromptRows::longest() const {
  return lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end());
}

bool PromptRows::equal() const {
  return std::adjacent_find(lengths.begin(), lengths.end(), std::not_equal_to<>()) == lengths.end();
}

void PromptRows::go_on_from(const PromptRows& prefixes) {
  prefix_ids = prefixes.ids;
  prefix_length = prefixes.longest();
  const SharedPrefix of_lines{prefix_length, std::ssize(prefixes.lengths)};
  for (std::int64_t& length : lengths) {
    prefix_of.push_back(of_lines.of_row(std::ssize(prefix_of), std::ssize(lengths)));
    length += prefix_length;
  }
}

PromptRows PromptRows::chosen(const std::vector<std::int64_t>& rows) const {
  std::vector<std::int64_t> begins;  // start of each row's ids
  std::int64_t at = 0;
  for (const std::int64_t length : lengths)
    begins.push_back(std::exchange(at, at + length - prefix_length));
  PromptRows some;
  some.prefix_ids = prefix_ids;
  some.prefix_length = prefix_length;
  for (const std::int64_t row : rows) {
    const auto r = static_cast<std::size_t>(row);
    const auto from = ids.begin() + begins.at(r);
    some.ids.insert(some.ids.end(), from, from + lengths[r] - prefix_length);
    some.lengths.push_back(lengths[r]);
    if (!prefix_of.empty()) some.prefix_of.push_back(prefix_of[r]);
  }
  return some;
}

SharedPrefix PromptRows::prefix(std::int64_t batch) const {
  if (prefix_of.empty()) return {};
  SharedPrefix shared{prefix_length, 1};
  const auto mixes = [&](std::int64_t row) {  // needs another prefix than the row before
    const auto r = static_cast<std::size_t>(row);
    return prefix_of[r] != prefix_of[r - 1] &&
           shared.of_row(row, batch) == shared.of_row(row - 1, batch);
  };
  for (std::int64_t row = 1; row < std::ssize(prefix_of);) {
    if (mixes(row))
      ++shared.rows, row = 1;
    else
      ++row;
  }
  return shared;
}

IntTensor PromptRows::padded(std::int64_t batch) const {
  IntTensor padded({batch, longest()});
  const auto begin_at = [&](std::int64_t row) {
    return padded.data.begin() + row * padded.shape[1];
  };
  const auto copy_prefix = [&](std::size_t of_row, std::int64_t to) {
    if (prefix_length > 0)
      std::copy_n(prefix_ids.begin() + prefix_of[of_row] * prefix_length, prefix_length,
                  begin_at(to));
  };
  auto from = ids.begin();
  std::int64_t to = 0;
  for (const std::int64_t length : lengths) {
    copy_prefix(static_cast<std::size_t>(to), to);
    std::copy_n(from, length - prefix_length, begin_at(to) + prefix_length);
    from += length - prefix_length;
    ++to;
  }
  const SharedPrefix shared = prefix(batch);
  for (; shared.given() && to < batch; ++to)
    if (const std::int64_t first = shared.first_row(shared.of_row(to, batch), batch);
        first < std::ssize(lengths))
      copy_prefix(static_cast<std::size_t>(first), to);
  return padded;
}

PromptRows read_prompt(const std::string& path, PromptText text, const ModelConfig& model,
                       std::optional<std::int64_t> batch) {
  const bool bytes = text == PromptText::bytes;
  // Allows ids of many digits, and several spaces between them.
  const auto longest = static_cast<std::size_t>(model.positions) * (bytes ? 1 : 32) + 1;
  TextFile file(path, kRules);
  PromptRows prompt;
  for (std::string line; file.next(line, longest);) {
    const Place place{path, file.number()};
    const std::size_t before = prompt.ids.size();
    (bytes ? add_bytes : add_ids)(line, place, model, prompt.ids);
    if (line.size() > longest) refuse_length(place, model);
    const auto own = static_cast<std::int64_t>(prompt.ids.size() - before);
    if (own == 0) throw Error("prompt_c3", fmt::format("{} line {} is empty", path, place.line));
    if (batch && std::ssize(prompt.lengths) >= *batch)
      throw Error("run_c3", fmt::format("batch={} is less than the rows of {}, which has a line {}",
                                        *batch, path, place.line));
    prompt.lengths.push_back(own);
  }
  if (prompt.lengths.empty())
    throw Error("prompt_c2", fmt::format("{} is empty; write one row a line", path));
  return prompt;
}

PromptRows read_prefixes(const std::string& path, PromptText text, const ModelConfig& model) {
  PromptRows prefixes = read_prompt(path, text, model, {});
  const std::int64_t length = prefixes.lengths[0];
  for (std::size_t row = 1; row < prefixes.lengths.size(); ++row)  // lines are not empty
    if (prefixes.lengths[row] != length)
      throw Error("prompt_c9", fmt::format("{} line {} has {} tokens and line 1 has {}: prefixes "
                                           "are of one length; nearest legal: {}",
                                           path, row + 1, prefixes.lengths[row], length, length));
  return prefixes;
}

}  // namespace shardproof::tools
