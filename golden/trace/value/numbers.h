#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "golden/compare/block_map.h"
#include "golden/trace/layout/conventions.h"
#include "golden/trace/read/dump.h"

namespace shardproof::dump {

/// A chip's numbers of a value: its own, or some of an array of the trace, which outlives whatever
/// reads them.
class Numbers {
 public:
  Numbers() = default;
  Numbers(std::vector<double> own) : own_(std::move(own)) {}  // NOLINT(google-explicit-constructor)
  /// `count` numbers of an array, one after the other from `first` on.
  Numbers(const StoredArray& stored, std::size_t first, std::size_t count)
      : stored_(&stored),
        bytes_(stored.elements().data() +
               first * static_cast<std::size_t>(bytes_of(stored.encoding))),
        first_(first),
        count_(count),
        encoding_(stored.encoding) {}

  std::size_t size() const { return stored_ == nullptr ? own_.size() : count_; }
  bool empty() const { return size() == 0; }
  double operator[](std::size_t i) const {
    if (stored_ == nullptr) return own_[i];
    if (encoding_ == NumberFormat::f32) return static_cast<double>(loaded<float>(i));
    if (encoding_ == NumberFormat::f64) return loaded<double>(i);
    return stored_->at(first_ + i);
  }
  /// Returns the bytes of f32 numbers in the trace; null for others.
  const std::byte* f32_bytes() const {
    return stored_ != nullptr && encoding_ == NumberFormat::f32 ? bytes_ : nullptr;
  }
  void clear() { *this = {}; }
  /// Returns numbers of its own, to be changed; those of an array are copied.
  std::vector<double>& own();

 private:
  template <class T>
  T loaded(std::size_t i) const {
    T v;
    std::memcpy(&v, bytes_ + i * sizeof(T), sizeof(T));
    return v;
  }

  std::vector<double> own_;
  const StoredArray* stored_ = nullptr;  // null: own_
  const std::byte* bytes_ = nullptr;
  std::size_t first_ = 0, count_ = 0;
  NumberFormat encoding_ = NumberFormat::f64;
};

/// The element of the model's value that each number of a chip is, row-major: of a block of the
/// value, or one by one.
class Places {
 public:
  static constexpr std::int64_t kNone = Place::kNone;

  Places() = default;
  Places(std::vector<std::int64_t> own)  // NOLINT(google-explicit-constructor)
      : own_(std::move(own)) {}
  Places(std::shared_ptr<const JudgedBlocks> blocks, int chip)
      : blocks_(std::move(blocks)), first_(blocks_->first(chip)) {}

  std::size_t size() const {
    return blocks_ ? static_cast<std::size_t>(blocks_->elements()) : own_.size();
  }
  std::int64_t operator[](std::size_t i) const {
    if (!blocks_) return own_[i];
    const auto run = static_cast<std::size_t>(blocks_->run());
    return first_ + blocks_->runs()[i / run] + static_cast<std::int64_t>(i % run);
  }
  /// Returns whether they are those of a block, without padding.
  bool of_block() const { return blocks_ != nullptr; }
  void clear() { *this = {}; }
  /// Returns places of its own, to be changed; those of a block are written out.
  std::vector<std::int64_t>& own();
  bool operator==(const Places& other) const;

  /// Calls see(i, place, count) for neighbouring numbers i to i + count at neighbouring places, of
  /// those from `first` to `last`; padding is left out.
  template <class See>
  void each_run(std::size_t first, std::size_t last, See&& see) const {
    if (!blocks_) {
      for (std::size_t i = first; i < last; ++i)
        if (own_[i] != kNone) see(i, own_[i], std::size_t{1});
      return;
    }
    if (first >= last) return;
    const auto run = static_cast<std::size_t>(blocks_->run());
    std::size_t in_run = first % run;
    for (std::size_t n = first / run; first < last; ++n, in_run = 0) {
      const std::size_t count = std::min(run - in_run, last - first);
      see(first, first_ + blocks_->runs()[n] + static_cast<std::int64_t>(in_run), count);
      first += count;
    }
  }
  /// Calls see(i, place) for each number but padding.
  template <class See>
  void each(See&& see) const {
    each_run(0, size(), [&](std::size_t i, std::int64_t place, std::size_t count) {
      for (const std::size_t end = i + count; i < end; ++i, ++place) see(i, place);
    });
  }

 private:
  std::vector<std::int64_t> own_;
  std::shared_ptr<const JudgedBlocks> blocks_;  // null: own_
  std::int64_t first_ = 0;
};

}  // namespace shardproof::dump
