#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "engine/numeric/column_norms.h"

namespace shardproof {

/// The memory that chips' shards live in: blocks of their own, returned to free lists by size and
/// taken from there again, so that a run that repeats itself asks the system for nothing. Free
/// blocks are kept only as far as live and free ones together stay below the live blocks'
/// high-water mark and an eighth of it. Safe to use from many threads.
namespace chip_memory {

/// A block of at least `bytes`, aligned to 64, with whatever it held before; filled with 0xFF (NaN
/// as f32 and f64, -1 as int32) while a Hostile is alive.
void* take(std::size_t bytes);
void give_back(void* block, std::size_t bytes) noexcept;

/// Whether returned blocks are used again; not under the address sanitizer, which is to see every
/// read of one.
bool recycles();

/// Bytes of blocks in use, in use at most, and at most held from the system, since the last reset.
struct Usage {
  std::int64_t live, peak_live, peak_held;
};
Usage usage();
/// Frees the blocks that are in free lists, and starts the peaks anew.
void reset_peaks();

/// While one is alive, fresh blocks are full of NaN, and blocks are filled with it as they are
/// given back: for every thread of the process.
class Hostile {
 public:
  Hostile(bool fresh, bool returned);
  ~Hostile();
  Hostile(const Hostile&) = delete;
  Hostile& operator=(const Hostile&) = delete;

 private:
  bool fresh_, returned_;
};

}  // namespace chip_memory

/// Takes chip memory, and leaves it uninitialised where std::allocator would write zeros.
template <class T>
struct ChipAllocator {
  using value_type = T;

  ChipAllocator() = default;
  template <class U>
  ChipAllocator(const ChipAllocator<U>&) {}

  T* allocate(std::size_t n) { return static_cast<T*>(chip_memory::take(n * sizeof(T))); }
  void deallocate(T* block, std::size_t n) noexcept {
    chip_memory::give_back(block, n * sizeof(T));
  }
  template <class U>
  void construct(U* at) {
    ::new (static_cast<void*>(at)) U;  // default-initialised: no write for numbers
  }
  template <class U, class... Args>
  void construct(U* at, Args&&... args) {
    ::new (static_cast<void*>(at)) U(std::forward<Args>(args)...);
  }
  bool operator==(const ChipAllocator&) const { return true; }
};

/// One chip's numbers. Its elements are *not* zero until written: Buffer<float>(n) has n values of
/// no meaning. The norms of what is read again and again, a weight, stay with it.
template <class T>
class Buffer : public std::vector<T, ChipAllocator<T>> {
  using Base = std::vector<T, ChipAllocator<T>>;

 public:
  using Base::Base;
  using Base::operator=;
  Buffer(const std::vector<T>& values) : Base(values.begin(), values.end()) {}
  /// Of the numbers as they are since forget_norms() was called last.
  ColumnNorms& norms(const KeptNorms::Place& place) const { return norms_.of(place); }
  void forget_norms() noexcept { norms_.forget(); }

  operator std::vector<T>() const { return {this->begin(), this->end()}; }
  friend bool operator==(const Buffer& a, const Buffer& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }
  friend bool operator==(const Buffer& a, const std::vector<T>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  mutable KeptNorms norms_;
};

}  // namespace shardproof
