#include "weights/base/detail/text_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "weights/base/error.h"

namespace shardproof {

TextFile::TextFile(std::string path, const Rules& rules)
    : path_(std::move(path)), rules_(rules), file_(-1) {
  if (path_.empty()) throw Error(rules_.unreadable, "no file is named");
  do file_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
  while (file_ < 0 && errno == EINTR);
  if (file_ < 0)
    throw Error(rules_.unreadable, fmt::format("{} cannot be read: {}", path_,
                                               std::generic_category().message(errno)));
}

TextFile::~TextFile() { ::close(file_); }

void TextFile::refuse(std::string_view why) const {
  throw Error(rules_.no_text, fmt::format("{}{}{}", path_, why, rules_.more));
}

void TextFile::fill() {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  const bool first = taken_ + block_.size() == 0;
  taken_ += block_.size();
  at_ = 0;
  block_.resize(kBlock);
  std::size_t size = 0;
  // A pipe may deliver single bytes, but the byte order mark is compared as a whole.
  do {
    const ssize_t count = ::read(file_, block_.data() + size, kBlock - size);
    if (count == 0) break;
    if (count > 0)
      size += static_cast<std::size_t>(count);
    else if (errno != EINTR) {
      const int reason = errno;
      block_.clear();
      throw Error(rules_.unreadable, fmt::format("{} cannot be read: {}", path_,
                                                 std::generic_category().message(reason)));
    }
  } while (first && size < kMark.size());
  block_.resize(size);
  if (first && block_.starts_with(kMark)) refuse(" begins with a byte order mark; save it without");
  if (taken_ + size > rules_.most)
    refuse(fmt::format(" is larger than {} MiB: no {} is", rules_.most >> 20, rules_.kind));
}

bool TextFile::next(std::string& line, std::size_t longest) {
  line.clear();
  ++number_;
  offset_ = taken_ + at_;
  bool any = false;
  bool carriage = false;
  for (;; ++at_) {
    if (at_ == block_.size()) {
      fill();
      if (block_.empty()) break;
    }
    const char c = block_[at_];
    any = true;
    if (c == '\n') {
      ++at_;
      return true;
    }
    if (carriage) break;
    carriage = c == '\r';
    if (carriage) continue;
    line += c;
    if (line.size() > longest) {
      ++at_;
      return true;
    }
  }
  if (carriage)
    refuse(fmt::format(": byte {} is a carriage return alone; lines end with a newline",
                       taken_ + at_ - 1));
  return any;
}

std::string read_text(const std::string& path, const TextFile::Rules& rules) {
  TextFile file(path, rules);
  std::string text;
  for (std::string line; file.next(line); text += line + "\n") {
    for (std::size_t i = 0; i < line.size(); ++i) {
      const auto byte = static_cast<unsigned char>(line[i]);
      if ((byte >= 0x20 && byte != 0x7f) || byte == '\t') continue;
      throw Error(rules.no_text, fmt::format("{} is not text: byte {} is 0x{:02x}{}", path,
                                             file.offset() + i, byte, rules.more));
    }
  }
  return text;
}

}  // namespace shardproof
