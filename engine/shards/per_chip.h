#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "engine/numeric/buffer.h"

namespace shardproof {

/// One V per chip, held by reference: chips may share one V, which then exists once. Reading is
/// free; a non-const access first gives the chip a V of its own (copy on write), so that no other
/// chip sees the change. Copies of a PerChip share the same Vs.
///
/// Concurrent writes for different chips are safe if no two of the chips share a V.
template <class V>
class PerChip {
  template <class Owner, class Value>
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = V;
    using difference_type = std::ptrdiff_t;
    using pointer = Value*;
    using reference = Value&;

    Iterator() = default;
    Iterator(Owner* owner, std::size_t chip) : owner_(owner), chip_(chip) {}
    reference operator*() const { return (*owner_)[chip_]; }
    pointer operator->() const { return &(*owner_)[chip_]; }
    Iterator& operator++() {
      ++chip_;
      return *this;
    }
    Iterator operator++(int) { return {owner_, chip_++}; }
    bool operator==(const Iterator& other) const { return chip_ == other.chip_; }

   private:
    Owner* owner_ = nullptr;
    std::size_t chip_ = 0;
  };

 public:
  using value_type = V;
  using iterator = Iterator<PerChip, V>;
  using const_iterator = Iterator<const PerChip, const V>;

  PerChip() = default;
  /// An empty V for each chip.
  explicit PerChip(std::size_t chips) : held_(chips) {}
  /// A V of its own for each chip.
  PerChip(std::size_t chips, const V& each) : held_(chips) {
    for (auto& held : held_) held = std::make_shared<V>(each);
  }
  PerChip(std::initializer_list<V> all) {
    for (const V& each : all) push_back(each);
  }

  std::size_t size() const { return held_.size(); }
  bool empty() const { return held_.empty(); }
  void resize(std::size_t chips) { held_.resize(chips); }
  void reserve(std::size_t chips) { held_.reserve(chips); }
  void assign(std::size_t chips, const V& each) { *this = PerChip(chips, each); }
  void push_back(V each) { held_.push_back(std::make_shared<V>(std::move(each))); }
  void pop_back() { held_.pop_back(); }

  const V& operator[](std::size_t chip) const {
    static const V none{};
    return held_[chip] ? *held_[chip] : none;
  }
  /// Non-const access: gives the chip a V of its own and drops cached norms of its numbers.
  V& operator[](std::size_t chip) {
    std::shared_ptr<V>& held = held_[chip];
    if (!held)
      held = std::make_shared<V>();
    else if (held.use_count() > 1)
      held = std::make_shared<V>(*held);
    else if constexpr (requires(V & v) { v.forget_norms(); })
      held->forget_norms();
    return *held;
  }
  const V& at(std::size_t chip) const {
    static_cast<void>(held_.at(chip));
    return (*this)[chip];
  }
  V& at(std::size_t chip) {
    static_cast<void>(held_.at(chip));
    return (*this)[chip];
  }
  const V& front() const { return (*this)[0]; }
  const V& back() const { return (*this)[size() - 1]; }
  V& back() { return (*this)[size() - 1]; }

  /// Equal for two chips iff they share one V, or both hold an empty one.
  const void* identity(std::size_t chip) const { return held_[chip].get(); }
  bool shares(std::size_t chip, std::size_t other) const {
    return identity(chip) == identity(other);
  }
  /// Makes `chip` share what `other` holds.
  void share(std::size_t chip, std::size_t other) { held_[chip] = held_[other]; }
  void put(std::size_t chip, std::shared_ptr<V> value) { held_[chip] = std::move(value); }

  iterator begin() { return {this, 0}; }
  iterator end() { return {this, size()}; }
  const_iterator begin() const { return {this, 0}; }
  const_iterator end() const { return {this, size()}; }

  friend bool operator==(const PerChip& a, const PerChip& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  std::vector<std::shared_ptr<V>> held_;  // null: an empty V
};

/// One buffer per chip, row-major in the shard's local shape. A chip's op reads its own buffer;
/// only collectives read another chip's. Chips share a buffer only if one result was computed for
/// all of them (engine/collectives/chip_groups.h), or if they were given the same block.
template <class T>
using ChipArrays = PerChip<Buffer<T>>;

}  // namespace shardproof
