#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace shardproof {

/// Reads a user's text file, pipe or device line by line, in blocks. Lines end with "\n" or "\r\n";
/// the last line may lack its end.
class TextFile {
 public:
  /// Limits of a text, and the wording of the errors.
  struct Rules {
    std::string_view unreadable;  ///< error label: the file cannot be read
    std::string_view no_text;     ///< error label: the text breaks a rule
    std::size_t most;             ///< largest size of the text in bytes, a multiple of 2^20
    std::string_view kind;        ///< noun for the text: "layer program"
    std::string_view more = "";   ///< suffix of every message about a broken rule
  };

  /// Opens the file, and waits for a writer if it is a pipe. Throws Error(rules.unreadable, ...).
  TextFile(std::string path, const Rules& rules);
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;
  ~TextFile();

  /// Reads the next line, without its end; returns false at the end of the file. Of a line longer
  /// than `longest` bytes only `longest` + 1 bytes are read, for the caller to refuse. Throws
  /// Error(rules.unreadable, ...), or Error(rules.no_text, ...) on a byte order mark, a lone
  /// carriage return, or more bytes than rules.most.
  bool next(std::string& line, std::size_t longest = std::string::npos);

  /// 1-based number, and byte offset of the first byte, of the line last read by `next`.
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

/// Returns the whole text with "\n" after every line. Throws as TextFile does, and
/// Error(rules.no_text, ...) on a control byte other than a tab.
std::string read_text(const std::string& path, const TextFile::Rules& rules);

}  // namespace shardproof
