#include "engine/layout/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "weights/base/error.h"

namespace shardproof {
namespace {

constexpr std::string_view kPartial = " partialsum-", kPartialMax = " partialmax-";
static_assert(kPartial.size() == kPartialMax.size(), "axes begin at one place");

}  // namespace

Layout::Layout(std::vector<Dim> dims, const Axes& partial, bool by_max)
    : dims_(std::move(dims)), partial_(partial.sorted()), by_max_(by_max && !partial.empty()) {
  Axes seen;
  const auto see = [&](const Axes& axes) {
    for (Axis a : axes) {
      if (seen.has(a))
        throw Error("layout_c3",
                    fmt::format("axis {} appears twice in {}", to_char(a), to_string()));
      seen = seen.with(a);
    }
  };
  for (std::size_t i = 0; i < dims_.size(); ++i) {
    const char letter = dims_[i].letter;
    if (!is_letter(letter))
      throw Error(
          "layout_c1",
          fmt::format("'{}' in {} is not a dim letter; all letters are, but x, y and z, the "
                      "axes",
                      letter, to_string()));
    for (std::size_t j = 0; j < i; ++j)
      if (dims_[j].letter == letter)
        throw Error("layout_c2", fmt::format("dim {} appears twice in {}", letter, to_string()));
    see(dims_[i].axes);
  }
  see(partial_);
}

Layout Layout::parse(std::string_view text) {
  // Escaped: a message must stay one line, also where a file's attribute is read as a layout.
  if (std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c == 0x7F; }))
    throw Error("layout_c0", fmt::format("{:?} is not a valid layout: it has control bytes", text));
  std::string_view rest = text;
  Axes partial;
  bool by_max = false;
  if (const auto at = rest.find(' '); at != std::string_view::npos) {
    const std::string_view words = rest.substr(at);
    by_max = words.starts_with(kPartialMax);
    if ((!by_max && !words.starts_with(kPartial)) || words.size() == kPartial.size())
      throw Error("layout_c0",
                  fmt::format("'{}' is not a valid layout; write dims, then ' partialsum-AXES' "
                              "if it is partial, as in BLE_x partialsum-yz",
                              text));
    partial = Axes::parse(words.substr(kPartial.size()));
    rest = rest.substr(0, at);
  }
  std::vector<Dim> dims;
  for (std::size_t i = 0; i < rest.size();) {
    const char letter = rest[i++];
    if (!((letter >= 'A' && letter <= 'Z') || (letter >= 'a' && letter <= 'z')))
      throw Error("layout_c0",
                  fmt::format("'{}' in '{}': a dim letter is expected here", letter, text));
    Axes axes;
    if (i < rest.size() && rest[i] == '_') {
      const std::size_t begin = ++i;
      while (i < rest.size() && rest[i] >= 'x' && rest[i] <= 'z') ++i;
      if (i == begin && i < rest.size() && is_letter(rest[i]) && rest[i] >= 'a') ++i;  // no axis
      if (i == begin)
        throw Error("layout_c0", fmt::format("'{}': no axes after {}_", text, letter));
      axes = Axes::parse(rest.substr(begin, i - begin));
    }
    dims.push_back({letter, axes});
  }
  return Layout(std::move(dims), partial, by_max);
}

std::string Layout::letters() const {
  std::string text;
  for (const Dim& dim : dims_) text += dim.letter;
  return text;
}

std::optional<std::size_t> Layout::find(char letter) const {
  for (std::size_t i = 0; i < dims_.size(); ++i)
    if (dims_[i].letter == letter) return i;
  return std::nullopt;
}

Axes Layout::axes(char letter) const {
  const auto at = find(letter);
  if (!at) throw Error("layout_c4", fmt::format("{} has no dim {}", to_string(), letter));
  return dims_[*at].axes;
}

Axes Layout::axes_or_none(char letter) const {
  const auto at = find(letter);
  return at ? dims_[*at].axes : Axes();
}

Axes Layout::used() const {
  Axes all = partial_;
  for (const Dim& dim : dims_) all = all.with(dim.axes);
  return all.sorted();
}

Layout Layout::with_axes(std::size_t dim, const Axes& axes) const {
  std::vector<Dim> dims = dims_;
  dims[dim].axes = axes;
  return Layout(std::move(dims), partial_, by_max_);
}

Layout Layout::with_partial(const Axes& partial) const { return Layout(dims_, partial, by_max_); }

std::string Layout::to_string() const {
  std::string text;
  for (const Dim& dim : dims_) {
    text += dim.letter;
    if (!dim.axes.empty()) text += "_" + dim.axes.to_string();
  }
  if (is_partial()) text += std::string(by_max_ ? kPartialMax : kPartial) + partial_.to_string();
  return text;
}

Shape local_shape(const Layout& layout, const Shape& shape, const Torus& torus) {
  Shape local = shape;
  for (std::size_t i = 0; i < layout.rank(); ++i) {
    const Layout::Dim& dim = layout.dims()[i];
    const int blocks = torus.size(dim.axes);
    if (shape[i] % blocks != 0)
      throw Error("local_c1", fmt::format("{}={} of {} is not divisible by {}={} on torus {}",
                                          dim.letter, shape[i], layout.to_string(),
                                          dim.axes.to_string(), blocks, torus.to_string()));
    local[i] /= blocks;
  }
  return local;
}

std::ostream& operator<<(std::ostream& out, const Layout& layout) {
  return out << layout.to_string();
}

}  // namespace shardproof
