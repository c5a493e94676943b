#include "engine/numeric/buffer.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <limits>
#include <mutex>

namespace shardproof::chip_memory {
namespace {

constexpr std::size_t kAlign = 64;
constexpr int kNaN = 0xFF;
/// Free memory that is kept whatever the high-water mark is.
constexpr std::int64_t kAlwaysKept = 1 << 20;

// Under the address sanitizer every block is a separate allocation of exactly the requested size:
// reads after its return, or past its end, must be detected.
#ifdef __has_feature  // clang++; g++ defines __SANITIZE_ADDRESS__
#if __has_feature(address_sanitizer)
#define SHARDPROOF_ADDRESS_SANITIZER
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define SHARDPROOF_ADDRESS_SANITIZER
#endif
#ifdef SHARDPROOF_ADDRESS_SANITIZER
constexpr bool kRecycled = false;
#else
constexpr bool kRecycled = true;
#endif

/// Eight sizes per octave, so that a block is at most an eighth larger than requested.
std::size_t rounded_up(std::size_t bytes) {
  if (!kRecycled) return bytes;
  if (bytes <= 8 * kAlign) return (bytes + kAlign - 1) / kAlign * kAlign;
  const std::size_t step = std::bit_floor(bytes - 1) / 8;
  return (bytes + step - 1) / step * step;
}

/// The index of a rounded size in the table of free lists.
std::size_t size_class(std::size_t rounded) {
  const auto octave = static_cast<std::size_t>(std::bit_width(rounded - 1));
  const std::size_t step = octave > 3 ? std::size_t{1} << (octave - 4) : 1;
  return octave * 8 + (rounded - 1) / step % 8;
}

/// The inverse of size_class.
std::int64_t size_of_class(std::size_t c) {
  const std::size_t octave = c / 8;
  const std::size_t step = octave > 3 ? std::size_t{1} << (octave - 4) : 1;
  return static_cast<std::int64_t>((8 + c % 8 + 1) * step);
}

struct FreeBlock {
  void* at;
  bool nan;  ///< filled with NaN up to its rounded size
};

struct FreeList {
  std::mutex mutex;
  std::vector<FreeBlock> blocks;
};

class Memory {
 public:
  FreeBlock take(std::size_t bytes) {
    const std::size_t size = rounded_up(std::max<std::size_t>(bytes, 1));
    const auto grown = static_cast<std::int64_t>(size);
    raise(peak_live_, live_.fetch_add(grown, std::memory_order_relaxed) + grown);
    FreeList& list = lists_[size_class(size)];
    {
      const std::lock_guard lock(list.mutex);
      if (!list.blocks.empty()) {
        const FreeBlock block = list.blocks.back();
        list.blocks.pop_back();
        return block;
      }
    }
    make_room(grown);
    void* block = ::operator new (size, std::align_val_t{kAlign}, std::nothrow);
    if (block == nullptr) {
      live_.fetch_sub(grown, std::memory_order_relaxed);
      throw std::bad_alloc();
    }
    raise(peak_held_, held_.fetch_add(grown, std::memory_order_relaxed) + grown);
    return {block, false};
  }

  void give_back(void* block, std::size_t bytes, bool fill) noexcept {
    const std::size_t size = rounded_up(std::max<std::size_t>(bytes, 1));
    if (fill) std::memset(block, kNaN, size);
    const auto shrunk = static_cast<std::int64_t>(size);
    live_.fetch_sub(shrunk, std::memory_order_relaxed);
    if (kRecycled && held_.load(std::memory_order_relaxed) <= most_held()) {
      FreeList& list = lists_[size_class(size)];
      try {
        const std::lock_guard lock(list.mutex);
        list.blocks.push_back({block, fill});
        return;
      } catch (const std::bad_alloc&) {
        // The free list cannot grow: return the block to the system.
      }
    }
    held_.fetch_sub(shrunk, std::memory_order_relaxed);
    ::operator delete (block, std::align_val_t{kAlign});
  }

  Usage usage() const { return {live_, peak_live_, peak_held_}; }

  void reset_peaks() {
    make_room(std::numeric_limits<std::int64_t>::max() / 2);
    peak_live_ = live_.load();
    peak_held_ = held_.load();
  }

 private:
  static void raise(std::atomic<std::int64_t>& peak, std::int64_t now) {
    std::int64_t before = peak.load(std::memory_order_relaxed);
    while (before < now && !peak.compare_exchange_weak(before, now, std::memory_order_relaxed)) {
    }
  }

  /// The limit of live and free blocks together.
  std::int64_t most_held() const {
    const std::int64_t mark = peak_live_.load(std::memory_order_relaxed);
    return mark + std::max(mark / 8, kAlwaysKept);
  }

  /// Returns free blocks to the system, the largest first, until `more` bytes fit.
  void make_room(std::int64_t more) {
    for (std::size_t c = lists_.size(); c-- > 0;) {
      if (held_.load(std::memory_order_relaxed) + more <= most_held()) return;
      const std::lock_guard lock(lists_[c].mutex);
      auto& blocks = lists_[c].blocks;
      while (!blocks.empty() && held_.load(std::memory_order_relaxed) + more > most_held()) {
        ::operator delete (blocks.back().at, std::align_val_t{kAlign});
        blocks.pop_back();
        held_.fetch_sub(size_of_class(c), std::memory_order_relaxed);
      }
    }
  }

  std::array<FreeList, 65 * 8> lists_;
  std::atomic<std::int64_t> live_{0}, held_{0}, peak_live_{0}, peak_held_{0};
};

/// Never destroyed: static shards may outlive any other static object.
Memory& memory() {
  static Memory& shared = *new Memory;
  return shared;
}

std::atomic<int> hostile_fresh{0};
std::atomic<int> hostile_returned{0};

}  // namespace

void* take(std::size_t bytes) {
  const FreeBlock block = memory().take(bytes);
  if (!block.nan && hostile_fresh.load(std::memory_order_relaxed) > 0)
    std::memset(block.at, kNaN, bytes);
  return block.at;
}

void give_back(void* block, std::size_t bytes) noexcept {
  memory().give_back(block, bytes, hostile_returned.load(std::memory_order_relaxed) > 0);
}

bool recycles() { return kRecycled; }

Usage usage() { return memory().usage(); }
void reset_peaks() { memory().reset_peaks(); }

Hostile::Hostile(bool fresh, bool returned) : fresh_(fresh), returned_(returned) {
  hostile_fresh += fresh_ ? 1 : 0;
  hostile_returned += returned_ ? 1 : 0;
}
Hostile::~Hostile() {
  hostile_fresh -= fresh_ ? 1 : 0;
  hostile_returned -= returned_ ? 1 : 0;
}

}  // namespace shardproof::chip_memory

namespace shardproof {

template class Buffer<float>;
template class Buffer<double>;
template class Buffer<std::int32_t>;

bool all_finite(const Buffer<float>& values) {
  constexpr std::uint32_t kExponent = 0x7f800000;
  std::uint32_t unfinite = 0;  // without a branch: finite unless all bits of the exponent are set
  for (const float v : values)
    unfinite |= (std::bit_cast<std::uint32_t>(v) & kExponent) == kExponent ? 1U : 0U;
  return unfinite == 0;
}

}  // namespace shardproof

template class std::vector<float, shardproof::ChipAllocator<float>>;
template class std::vector<double, shardproof::ChipAllocator<double>>;
template class std::vector<std::int32_t, shardproof::ChipAllocator<std::int32_t>>;
