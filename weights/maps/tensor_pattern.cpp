#include "weights/maps/tensor_pattern.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "weights/base/detail/words.h"

namespace shardproof {
namespace {

bool is_letter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }

/// An axis of the part that is taken: its letter, its extent, and how far its elements are apart.
struct Stride {
  char letter;
  std::int64_t extent, step;
};

/// Where the elements of a part are in the stored tensor.
struct Place {
  std::int64_t begin = 0;
  std::vector<Stride> strides;
};

class Unpacking {
 public:
  Unpacking(const Tensor& stored, const TensorPattern& pattern,
            const std::map<char, std::int64_t>& extents)
      : stored_(stored), pattern_(pattern), extents_(extents) {}

  Place place() const {
    if (stored_.shape.size() != pattern_.axes.size()) refuse();
    Place place;
    std::int64_t step = 1;
    for (std::size_t axis = pattern_.axes.size(); axis-- > 0;) {
      const std::int64_t extent = stored_.shape[axis];
      const std::int64_t skip = axis == 0 ? pattern_.skip : 0;
      std::int64_t left = extent - skip, inner = step;
      place.begin += skip * step;
      const auto& factors = pattern_.axes[axis];
      for (std::size_t i = factors.size(); i-- > 0;) {
        const std::int64_t size = take(factors[i], inner, place);
        // Of positions a file may have more.
        const bool longer = factors.size() == 1 && factors[i].letter == 'P' && left > size;
        if (longer) left = size;
        if (left % size != 0) refuse();
        left /= size;
        inner *= size;
      }
      if (left != 1) refuse();
      step *= extent;
    }
    return place;
  }

  [[noreturn]] void refuse() const {
    std::vector<std::string> sizes;
    for (const auto& [letter, extent] : extents_)
      if (pattern_.text.find(letter) != std::string::npos)
        sizes.push_back(fmt::format("{}={}", letter, extent));
    throw Error(
        "model_map_c5",
        fmt::format("the tensor's shape [{}] is not {} of {}{}", fmt::join(stored_.shape, ", "),
                    pattern_.text, fmt::join(sizes, ", "),
                    pattern_.skip > 0 ? fmt::format(" and {} rows before it", pattern_.skip) : ""));
  }

 private:
  std::int64_t extent_of(char letter) const {
    if (letter == '1') return 1;
    const auto at = extents_.find(letter);
    if (at == extents_.end())
      throw Error("model_map_c5",
                  fmt::format("the text has no letter {}, which {} has", letter, pattern_.text));
    return at->second;
  }

  std::int64_t size_of(std::string_view letters) const {
    std::int64_t size = 1;
    for (const char letter : letters) size *= extent_of(letter);
    return size;
  }

  /// Puts the factor's letters in front, and returns the factor's extent.
  std::int64_t take(const TensorPattern::Factor& factor, std::int64_t step, Place& place) const {
    if (factor.parts.empty()) {
      const std::int64_t extent = extent_of(factor.letter);
      if (factor.letter != '1')
        place.strides.insert(place.strides.begin(), {factor.letter, extent, step});
      return extent;
    }
    std::int64_t total = 0;
    for (std::size_t part = 0; part < factor.parts.size(); ++part) {
      if (part == pattern_.take) place.begin += total * step;
      total += size_of(factor.parts[part]);
    }
    const std::string& letters = factor.parts[pattern_.take];
    std::int64_t inner = step;
    for (std::size_t i = letters.size(); i-- > 0;) inner *= take({letters[i], {}}, inner, place);
    return total;
  }

  const Tensor& stored_;
  const TensorPattern& pattern_;
  const std::map<char, std::int64_t>& extents_;
};

/// Returns the strides in the order of the letters, each of which is one of them or a product of
/// two: H of KG. nullopt if they are others.
std::optional<std::vector<Stride>> in_order(std::vector<Stride> strides, std::string_view letters,
                                            const std::map<char, std::int64_t>& extents) {
  std::vector<Stride> ordered;
  const auto take = [&](char letter) {
    const auto at = std::find_if(strides.begin(), strides.end(),
                                 [&](const Stride& s) { return s.letter == letter; });
    if (at == strides.end()) return false;
    ordered.push_back(*at);
    strides.erase(at);
    return true;
  };
  for (const char letter : letters) {
    if (take(letter)) continue;
    const bool both = letter == 'H' && take('K') && take('G');
    if (!both || extents.at('K') * extents.at('G') != extents.at('H')) return std::nullopt;
  }
  if (!strides.empty()) return std::nullopt;
  return ordered;
}

}  // namespace

TensorPattern TensorPattern::parse(std::string_view text, std::size_t take, std::int64_t skip) {
  TensorPattern pattern;
  pattern.text = text, pattern.take = take, pattern.skip = skip;
  const auto fail = [&](const std::string& why) {
    throw Error("model_map_c3", fmt::format("'{}': {}", text.substr(0, 80), why));
  };
  bool grouped = false;
  std::size_t brackets = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    TensorPattern::Factor factor;
    if (text[i] == '(' || text[i] == ')') {
      if (grouped == (text[i] == '(')) fail("parentheses stand around the letters of one axis");
      grouped = text[i] == '(';
      if (grouped) pattern.axes.emplace_back();
      continue;
    }
    if (text[i] == '[') {
      const auto end = text.find(']', i);
      if (end == std::string_view::npos) fail("] is missing");
      for (const std::string_view part : split(text.substr(i + 1, end - i - 1), ",")) {
        const bool good =
            part == "1" || (!part.empty() && std::all_of(part.begin(), part.end(), is_letter));
        if (!good) fail("parts are letters, or 1: [G,1,1]");
        factor.parts.emplace_back(part);
      }
      if (++brackets > 1) fail("one axis has parts");
      i = end;
    } else if (is_letter(text[i]) || text[i] == '1') {
      factor.letter = text[i];
    } else {
      fail("it has letters, 1, ( ) around an axis and [ , ] around parts");
    }
    if (!grouped) pattern.axes.emplace_back();
    pattern.axes.back().push_back(std::move(factor));
  }
  if (grouped) fail(") is missing");
  if (pattern.axes.empty()) fail("it has no letters");
  for (const auto& axis : pattern.axes) {
    if (axis.empty()) fail("an axis has no letters");
    for (const Factor& factor : axis)
      if (!factor.parts.empty() && take >= factor.parts.size())
        fail(fmt::format("take {} of {} parts", take, factor.parts.size()));
  }
  if (brackets == 0 && take > 0) fail(fmt::format("take {} of a pattern without parts", take));
  const std::string letters = pattern.letters();
  for (std::size_t i = 0; i < letters.size(); ++i)
    if (letters.find(letters[i], i + 1) != std::string::npos)
      fail(fmt::format("{} stands twice", letters[i]));
  return pattern;
}

std::string TensorPattern::letters() const {
  std::string letters;
  for (const auto& axis : axes)
    for (const Factor& factor : axis)
      letters += factor.parts.empty() ? std::string(1, factor.letter) : factor.parts[take];
  std::erase(letters, '1');
  return letters;
}

Tensor unpack(const Tensor& stored, const TensorPattern& pattern, std::string_view letters,
              const std::map<char, std::int64_t>& extents) {
  const Unpacking unpacking(stored, pattern, extents);
  const Place place = unpacking.place();
  const auto strides = in_order(place.strides, letters, extents);
  if (!strides)
    throw Error("model_map_c5", fmt::format("{} has the letters {}, not {}", pattern.text,
                                            pattern.letters(), letters));
  Shape shape;
  for (const char letter : letters) shape.push_back(extents.at(letter));
  Tensor result(shape);
  std::vector<std::int64_t> at(strides->size(), 0);
  std::int64_t from = place.begin;
  for (float& value : result.data) {
    value = stored.data[static_cast<std::size_t>(from)];
    for (std::size_t i = strides->size(); i-- > 0;) {
      const Stride& stride = (*strides)[i];
      from += stride.step;
      if (++at[i] < stride.extent) break;
      from -= stride.step * stride.extent;
      at[i] = 0;
    }
  }
  return result;
}

}  // namespace shardproof
