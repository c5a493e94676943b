#pragma once

// NumPy archives, made byte by byte, so that nothing of what a test says is corrected on the way.
#include <fmt/format.h>
#include <zlib.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "golden/trace/read/dump.h"
#include "tests/weights/folder.h"
#include "weights/base/tensor.h"

namespace shardproof::dump {

inline std::string little(std::uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i, value >>= 8) out.push_back(static_cast<char>(value & 0xFFU));
  return out;
}

/// The bytes of numbers one after the other, little-endian.
template <class T>
std::string bytes_of_numbers(const std::vector<T>& numbers) {
  std::string out(numbers.size() * sizeof(T), '\0');
  if (!numbers.empty()) std::memcpy(out.data(), numbers.data(), out.size());
  return out;
}

inline std::string npy_with_header(const std::string& header, const std::string& elements,
                                   int version = 1) {
  return "\x93NUMPY" + little(static_cast<std::uint64_t>(version), 1) + little(0, 1) +
         little(header.size(), version == 1 ? 2 : 4) + header + elements;
}

inline std::string npy_header(std::string_view descr, std::string_view shape,
                              bool fortran = false) {
  return fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}\n", descr,
                     fortran ? "True" : "False", shape);
}

/// An .npy file: npy("<f4", "(2, 3)", bytes).
inline std::string npy(std::string_view descr, std::string_view shape,
                       const std::string& elements) {
  return npy_with_header(npy_header(descr, shape), elements);
}

/// The member `shardproof` as numpy.bytes_ writes it.
inline std::string npy_text(const std::string& text) {
  return npy(fmt::format("|S{}", text.size()), "()", text);
}

inline std::string deflated(const std::string& bytes) {
  z_stream state{};
  ::deflateInit2(&state, 1, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY);
  std::string out(::deflateBound(&state, bytes.size()) + 64, '\0');
  state.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  state.avail_in = static_cast<uInt>(bytes.size());
  state.next_out = reinterpret_cast<Bytef*>(out.data());
  state.avail_out = static_cast<uInt>(out.size());
  ::deflate(&state, Z_FINISH);
  out.resize(state.total_out);
  ::deflateEnd(&state);
  return out;
}

class ZipFile {
 public:
  /// What a member says of itself, where that is not the truth.
  struct Said {
    int method = 0;  ///< 0 stored, 8 deflated: these are done, others said
    int flags = 0;   ///< 1: encrypted
    std::int64_t size = -1;
  };

  ZipFile& add(const std::string& name, const std::string& bytes, const Said& said) {
    const std::string stored = said.method == 8 ? deflated(bytes) : bytes;
    const auto crc =
        ::crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size()));
    const std::uint64_t size = said.size < 0 ? bytes.size() : static_cast<std::uint64_t>(said.size);
    const std::string common = little(20, 2) + little(static_cast<std::uint64_t>(said.flags), 2) +
                               little(static_cast<std::uint64_t>(said.method), 2) + little(0, 4) +
                               little(crc, 4) + little(stored.size(), 4) + little(size, 4) +
                               little(name.size(), 2) + little(0, 2);
    directory_ += "PK\1\2" + little(20, 2) + common + little(0, 2) + little(0, 2) + little(0, 2) +
                  little(0, 4) + little(members_.size(), 4) + name;
    members_ += "PK\3\4" + common + name + stored;
    ++count_;
    return *this;
  }
  ZipFile& add(const std::string& name, const std::string& bytes, bool deflate = false) {
    return add(name, bytes, Said{.method = deflate ? 8 : 0});
  }

  std::string bytes() const {
    return members_ + directory_ + "PK\5\6" + little(0, 4) + little(count_, 2) + little(count_, 2) +
           little(directory_.size(), 4) + little(members_.size(), 4) + little(0, 2);
  }

 private:
  std::string members_, directory_;
  std::uint64_t count_ = 0;
};

inline const char* const kLeastJson = R"({"format": "shardproof trace", "version": 1})";

/// What says that the value v has this encoding.
inline std::string declaring(const std::string& encoding) {
  return R"({"format":"shardproof trace","version":1,"values":{"v":{"encoding":")" + encoding +
         "\"}}}";
}

/// An archive with the member `shardproof` and nothing else yet.
inline ZipFile described(const std::string& json = kLeastJson) {
  ZipFile file;
  file.add("shardproof.npy", npy_text(json));
  return file;
}

inline void write_text(const fs::path& path, const std::string& bytes) {
  write_bytes(path, {bytes.begin(), bytes.end()});
}

inline std::vector<double> numbers(const StoredArray& stored) {
  std::vector<double> out;
  for (std::size_t i = 0; i < stored.size(); ++i) out.push_back(stored.at(i));
  return out;
}

}  // namespace shardproof::dump
