#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace shardproof {

/// A text that a user wrote, read line by line and block by block: a file, a pipe or a device.
/// Lines end with a newline, or with a carriage return and a newline; the last needs no end.
class TextFile {
 public:
  /// What is refused, and how it is said.
  struct Rules {
    std::string_view unreadable;  ///< the label of a file that cannot be read
    std::string_view no_text;     ///< the label of one that breaks a rule of texts
    std::size_t most;             ///< bytes of the whole text, in MiB 2^20
    std::string_view kind;        ///< what it should be: "layer program"
    std::string_view more = "";   ///< ends every message about a rule of texts
  };

  /// Opens the file, and waits for a writer if it is a pipe. Throws Error(rules.unreadable, ...).
  TextFile(std::string path, const Rules& rules);
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;
  ~TextFile();

  /// The next line without its end; false if there is none. A line longer than `longest` bytes is
  /// given up after one more, for the caller to refuse. Throws Error: rules.unreadable;
  /// rules.no_text (a byte order mark, a carriage return alone, more bytes than allowed).
  bool next(std::string& line, std::size_t longest = std::string::npos);

  /// Of the line that `next` gave last: its number, from 1, and where its first byte stands.
  std::size_t number() const { return number_; }
  std::size_t offset() const { return offset_; }

 private:
  static constexpr std::size_t kBlock = std::size_t{1} << 16;

  void fill();
  [[noreturn]] void refuse(std::string_view why) const;

  std::string path_;
  Rules rules_;
  int file_;
  std::string block_;
  std::size_t at_ = 0;     // in block_
  std::size_t taken_ = 0;  // bytes of the text before block_
  std::size_t number_ = 0;
  std::size_t offset_ = 0;
};

/// The whole text with every line ended by a newline. Throws as TextFile does, and
/// Error(rules.no_text, ...) on a control byte other than a tab.
std::string read_text(const std::string& path, const TextFile::Rules& rules);

}  // namespace shardproof
