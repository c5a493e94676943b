#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace shardproof {

/// The elements of a tensor as words to compare, row-major. Usually a view of another object's
/// tensor, which is not copied. Word is std::uint32_t, the bits of an f32 or an int32, or a number
/// of the field regime. Copies refer to the same words and cannot change them.
template <class Word>
class Words {
 public:
  Words() = default;
  /// Owns its words.
  Words(std::vector<Word> own)  // NOLINT(google-explicit-constructor): the same words
      : own_(std::make_shared<const std::vector<Word>>(std::move(own))),
        first_(bytes_of(*own_)),
        size_(own_->size()) {}
  Words(std::initializer_list<Word> own) : Words(std::vector<Word>(own)) {}

  /// Refers to a tensor, which must outlive the result and have elements as large as a Word.
  template <class T>
  static Words of(const std::vector<T>& tensor) {
    Words words;
    words.first_ = bytes_of(tensor);
    words.size_ = tensor.size();
    return words;
  }
  template <class T>
  static Words of(std::vector<T>&& tensor) = delete;
  /// Refers to several tensors of one size, concatenated, which must outlive the result.
  template <class T>
  static Words of_parts(const std::vector<std::vector<T>>& parts) {
    if (parts.size() == 1) return of(parts[0]);
    Words words;
    for (const std::vector<T>& part : parts) {
      words.parts_.push_back(bytes_of(part));
      words.size_ += part.size();
    }
    return words;
  }
  template <class T>
  static Words of_parts(std::vector<std::vector<T>>&& parts) = delete;

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  Word operator[](std::size_t i) const {
    Word word;
    std::memcpy(&word, from(i), sizeof word);
    return word;
  }
  /// Returns a pointer to the bytes of word i and of those after it in its tensor.
  const std::byte* from(std::size_t i) const {
    if (parts_.empty() || size_ == 0) return first_ + i * sizeof(Word);
    const std::size_t of_part = size_ / parts_.size();
    return parts_[i / of_part] + i % of_part * sizeof(Word);
  }
  std::vector<Word> copy() const {
    std::vector<Word> all(size_);
    for (std::size_t i = 0; i < size_; ++i) all[i] = (*this)[i];
    return all;
  }

 private:
  static_assert(std::has_unique_object_representations_v<Word>, "equal words have equal bytes");
  template <class T>
  static const std::byte* bytes_of(const std::vector<T>& tensor) {
    static_assert(sizeof(T) == sizeof(Word) && std::is_trivially_copyable_v<T>);
    return reinterpret_cast<const std::byte*>(tensor.data());
  }

  std::shared_ptr<const std::vector<Word>> own_;
  const std::byte* first_ = nullptr;
  std::vector<const std::byte*> parts_;
  std::size_t size_ = 0;
};

}  // namespace shardproof
