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

/// The memory of chips' shards: blocks returned to free lists by size and taken from there again,
/// so that a run that repeats itself asks the system for nothing. Free blocks are kept only while
/// live and free ones together stay below the live blocks' high-water mark plus an eighth of it.
/// Thread-safe.
namespace chip_memory {

/// Returns a block of at least `bytes`, aligned to 64, with whatever it held before; filled with
/// 0xFF (NaN as f32 and f64, -1 as int32) while a Hostile is alive.
void* take(std::size_t bytes);
void give_back(void* block, std::size_t bytes) noexcept;

/// Returns true if returned blocks are reused; not under the address sanitizer, which must see
/// every read of one.
bool recycles();

/// Bytes of blocks in use, their peak, and the peak held from the system, since the last reset.
struct Usage {
  std::int64_t live, peak_live, peak_held;
};
Usage usage();
/// Frees the blocks in free lists, and restarts the peaks.
void reset_peaks();

/// While one is alive, fresh blocks (`fresh`) and blocks given back (`returned`) are filled with
/// NaN, for every thread of the process.
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

/// Allocates chip memory, and leaves it uninitialised where std::allocator would write zeros.
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

/// One chip's numbers. Its elements are *not* zero until written: Buffer<float>(n) has n
/// indeterminate values. Norms of a matrix that is read repeatedly (a weight) are cached with it.
template <class T>
class Buffer : public std::vector<T, ChipAllocator<T>> {
  using Base = std::vector<T, ChipAllocator<T>>;

 public:
  using Base::Base;
  using Base::operator=;
  Buffer() = default;
  Buffer(const std::vector<T>& values) : Base(values.begin(), values.end()) {}
  Buffer(const Buffer&) = default;
  Buffer(Buffer&&) noexcept = default;
  Buffer& operator=(const Buffer&) = default;
  Buffer& operator=(Buffer&&) noexcept = default;
  /// Not compiled into what destroys a buffer, for the reason below.
  [[gnu::noinline]] ~Buffer();
  /// Norms of the numbers as of the last call of forget_norms().
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

template <class T>
Buffer<T>::~Buffer() = default;

// Their loops, over elements that need no construction and no destruction, are compiled away in
// this library, but not in those with less optimization, whose copies the linker might take.
extern template class Buffer<float>;
extern template class Buffer<double>;
extern template class Buffer<std::int32_t>;

/// Returns true if no element is infinite or NaN.
bool all_finite(const Buffer<float>& values);

}  // namespace shardproof

extern template class std::vector<float, shardproof::ChipAllocator<float>>;
extern template class std::vector<double, shardproof::ChipAllocator<double>>;
extern template class std::vector<std::int32_t, shardproof::ChipAllocator<std::int32_t>>;
