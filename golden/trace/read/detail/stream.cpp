#include "golden/trace/read/detail/stream.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "golden/trace/read/detail/place.h"

namespace shardproof::dump {
namespace {

constexpr char kAttribute = 'A', kArray = 'V', kPiece = 'P', kInFile = 'F', kUnread = 'U',
               kIgnored = 'I', kError = 'E', kEnd = 'Z';
constexpr std::size_t kBlock = std::size_t{1} << 16;
// Overhead of a map node beside its texts.
constexpr std::uint64_t kNode = 128;
constexpr std::uint64_t kMostDims = 64;

/// Sanitizes a message from a child process that a malicious file may control.
std::string printable(std::string message) {
  for (char& c : message)
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  return message;
}

}  // namespace

// ---- writing ----

void StreamWriter::raw(const void* bytes, std::size_t size) {
  const auto* from = static_cast<const char*>(bytes);
  buffer_.insert(buffer_.end(), from, from + size);
  if (buffer_.size() >= kBlock) flush();
}

void StreamWriter::send(const char* bytes, std::size_t size) const {
  while (size > 0) {
    const ssize_t sent = ::write(pipe_, bytes, size);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) throw std::runtime_error("the pipe is broken");
    bytes += sent;
    size -= static_cast<std::size_t>(sent);
  }
}

void StreamWriter::flush() {
  send(buffer_.data(), buffer_.size());
  buffer_.clear();
}

void StreamWriter::kind(char value) { raw(&value, 1); }
void StreamWriter::number(std::uint64_t value) { raw(&value, sizeof(value)); }

void StreamWriter::text(std::string_view value) {
  number(value.size());
  raw(value.data(), value.size());
}

void StreamWriter::attribute(std::string_view name, std::string_view value) {
  kind(kAttribute);
  text(name);
  text(value);
}

void StreamWriter::all(const Attributes& attributes) {
  number(attributes.size());
  for (const auto& [name, value] : attributes) {
    text(name);
    text(value);
  }
}

void StreamWriter::array(std::string_view path, const Attributes& attributes, NumberFormat encoding,
                         const Shape& shape) {
  kind(kArray);
  text(path);
  number(static_cast<std::uint64_t>(encoding));
  all(attributes);
  number(shape.size());
  for (const std::int64_t extent : shape) number(static_cast<std::uint64_t>(extent));
}

void StreamWriter::bytes(std::span<const std::byte> piece) {
  kind(kPiece);
  number(piece.size());
  flush();
  send(reinterpret_cast<const char*>(piece.data()), piece.size());
}

void StreamWriter::in_file(std::uint64_t first) {
  kind(kInFile);
  number(first);
}

void StreamWriter::unread(std::string_view path, const Attributes& attributes,
                          std::string_view why) {
  kind(kUnread);
  text(path);
  all(attributes);
  text(why.substr(0, kLongestText));
}

void StreamWriter::ignored(std::string_view name) {
  kind(kIgnored);
  text(name);
}

void StreamWriter::end() {
  kind(kEnd);
  flush();
}

void StreamWriter::end(const Error& error) {
  kind(kError);
  text(error.label());
  text(error.message().substr(0, kLongestText));
  flush();
}

// ---- reading ----

StreamReader::StreamReader(int pipe, std::uint64_t allowance, int seconds,
                           std::span<const std::byte> file)
    : pipe_(pipe), seconds_(seconds), file_(file), allowance_(allowance), buffer_(kBlock) {}

std::size_t StreamReader::some(void* bytes, std::size_t size) const {
  while (true) {
    pollfd wait{.fd = pipe_, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&wait, 1, seconds_ * 1000);
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) throw BrokenStream(fmt::format("said nothing for {} s", seconds_));
    const ssize_t got = ready < 0 ? -1 : ::read(pipe_, bytes, size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw BrokenStream(fmt::format("could not be heard: {}", std::strerror(errno)));
    if (got == 0) throw EndOfStream("ended too early");
    return static_cast<std::size_t>(got);
  }
}

void StreamReader::raw(void* bytes, std::size_t size) {
  auto* to = static_cast<char*>(bytes);
  while (size > 0) {
    std::size_t got = std::min(size, filled_ - at_);
    if (got > 0) {
      std::memcpy(to, buffer_.data() + at_, got);
      at_ += got;
    } else if (size >= buffer_.size()) {
      got = some(to, size);
    } else {
      at_ = 0;
      filled_ = 0;
      filled_ = some(buffer_.data(), buffer_.size());
    }
    to += got;
    size -= got;
  }
}

std::uint64_t StreamReader::number() {
  std::uint64_t value = 0;
  raw(&value, sizeof(value));
  return value;
}

std::string StreamReader::text(std::size_t longest) {
  const std::uint64_t size = number();
  if (size > longest) throw BrokenStream(fmt::format("sent a text of {} bytes", size));
  allowance_.take(size + kNode, "a name or a text");
  std::string value(size, '\0');
  raw(value.data(), value.size());
  return value;
}

Attributes StreamReader::attributes() {
  Attributes attributes;
  for (std::uint64_t left = number(); left > 0; --left) {
    std::string name = text();
    attributes.insert_or_assign(std::move(name), text());
  }
  return attributes;
}

void StreamReader::unread(Dump& dump) {
  const std::string path = text();
  Attributes said = attributes();
  std::string why = printable(text());
  place(dump, path, std::move(said), StoredArray());
  dump.values.find(place_of(path).id)->second.unread = std::move(why);
}

void StreamReader::array(Dump& dump) {
  const std::string path = text();
  const Allowance before_attributes = allowance_;
  StoredArray stored;
  const std::uint64_t encoding = number();
  if (encoding >= kNumberFormats.size())
    throw BrokenStream(fmt::format("sent the encoding {}", encoding));
  stored.encoding = static_cast<NumberFormat>(encoding);
  Attributes said = attributes();
  const std::uint64_t rank = number();
  if (rank > kMostDims) throw BrokenStream(fmt::format("sent an array of {} dims", rank));
  auto bytes = static_cast<std::uint64_t>(bytes_of(stored.encoding));
  for (std::uint64_t i = 0; i < rank; ++i) {
    const std::uint64_t extent = number();
    if (extent > std::uint64_t{std::numeric_limits<std::int64_t>::max()} ||
        __builtin_mul_overflow(bytes, extent, &bytes))
      throw BrokenStream(fmt::format("sent an extent of {}", extent));
    stored.shape.push_back(static_cast<std::int64_t>(extent));
  }
  allowance_.take(bytes, fmt::format("{:?}", path));
  if (bytes > 0) content(stored, bytes);
  // Attributes of further shards are compared, not kept.
  if (!place(dump, path, std::move(said), std::move(stored))) {
    allowance_ = before_attributes;
    allowance_.take(bytes, fmt::format("{:?}", path));
  }
}

/// Reads an array's bytes: its pieces, or the place in the file that has them.
void StreamReader::content(StoredArray& array, std::uint64_t bytes) {
  char kind = 0;
  raw(&kind, 1);
  if (kind != kInFile) {
    array.bytes.resize(bytes);
    pieces(array.bytes, kind);
    return;
  }
  const std::uint64_t first = number();
  if (bytes > file_.size() || first > file_.size() - bytes)
    throw BrokenStream(
        fmt::format("sent {} bytes from {} of a file of {}", bytes, first, file_.size()));
  array.lent = file_.subspan(first, bytes);
}

/// `kind` is that of the first record, which has been read.
void StreamReader::pieces(std::span<std::byte> rest, char kind) {
  for (bool read = true; !rest.empty(); read = false) {
    if (!read) raw(&kind, 1);
    if (kind == kError) error();
    const std::uint64_t size = kind == kPiece ? number() : 0;
    if (size == 0 || size > rest.size())
      throw BrokenStream(fmt::format("sent {} bytes where {} are missing", size, rest.size()));
    raw(rest.data(), size);
    rest = rest.subspan(size);
  }
}

void StreamReader::error() {
  const std::string label = text();
  std::string message = text();
  // A malicious file may control the child process that sends this.
  constexpr std::array kLabels = {"dump_open", "dump_format", "dump_value", "dump_size"};
  if (std::find(kLabels.begin(), kLabels.end(), label) == kLabels.end())
    throw BrokenStream("ended with an unknown error");
  throw Error(label, printable(std::move(message)));
}

bool StreamReader::place(Dump& dump, const std::string& path, Attributes attributes,
                         StoredArray stored) {
  PathPlace place = place_of(path);
  const auto [at, fresh] = dump.values.try_emplace(place.id);
  Value& value = at->second;
  if (fresh) {
    dump.order.push_back(place.id);
    value.attributes = std::move(attributes);
  } else {
    if (!place.chip || !value.in_shards())
      throw Error("dump_value", fmt::format("{:?} occurs twice: a value is one array, or shards "
                                            "under chips/X_Y_Z",
                                            place.id));
    if (value.chips.contains(*place.chip))
      throw Error("dump_value", fmt::format("{:?} occurs twice", path));
    require_same(value.attributes, attributes, path);
  }
  if (place.chip)
    value.chips.emplace(*place.chip, std::move(stored));
  else
    value.whole = std::move(stored);
  return fresh;
}

bool StreamReader::record(Dump& dump) {
  char kind = 0;
  raw(&kind, 1);
  switch (kind) {
    case kAttribute: {
      std::string name = text();
      dump.attributes.insert_or_assign(std::move(name), text());
      return true;
    }
    case kArray:
      array(dump);
      return true;
    case kUnread:
      unread(dump);
      return true;
    case kIgnored:
      dump.ignored.push_back(text());
      return true;
    case kError:
      error();
    case kEnd:
      return false;
    default:
      throw BrokenStream("sent data that cannot be understood");
  }
}

Dump StreamReader::read() {
  Dump dump;
  while (record(dump)) {
  }
  return dump;
}

}  // namespace shardproof::dump
