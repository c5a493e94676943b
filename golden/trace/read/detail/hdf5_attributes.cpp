#include "golden/trace/read/detail/hdf5_attributes.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "weights/hdf5/detail/handle.h"

namespace shardproof::dump {
namespace {

using nlohmann::json;

constexpr std::size_t kMostItems = 4096;  // per list
// Limit of a list of fixed-length texts.
constexpr std::size_t kMostBytes = std::size_t{1} << 20;

class Attribute {
 public:
  Attribute(hid_t object, const std::string& name, std::string_view where)
      : label_(fmt::format("attribute {:?} of {}", name, where)),
        attribute_(H5Aopen(object, name.c_str(), H5P_DEFAULT), H5Aclose),
        type_(H5Aget_type(needed(attribute_)), H5Tclose),
        space_(H5Aget_space(attribute_.get()), H5Sclose) {
    needed(type_);
    needed(space_);
  }

  /// Returns nullopt unless it is a text, a number or a list of them.
  std::optional<std::string> text() const {
    const H5S_class_t kind = H5Sget_simple_extent_type(space_.get());
    if (kind != H5S_SCALAR && kind != H5S_SIMPLE) return std::nullopt;
    const hssize_t count = H5Sget_simple_extent_npoints(space_.get());
    if (count < 1 || H5Sget_simple_extent_ndims(space_.get()) > 1) return std::nullopt;
    if (static_cast<std::uint64_t>(count) > kMostItems)
      refuse(fmt::format("has {} items; legal: at most {}", count, kMostItems));
    const std::optional<json> items = list(static_cast<std::size_t>(count));
    if (!items) return std::nullopt;
    // An array of one number is read as that number.
    const bool one = kind == H5S_SCALAR || (count == 1 && !items->front().is_string());
    const json& value = one ? items->front() : *items;
    std::string text = value.is_string()
                           ? value.get<std::string>()
                           : value.dump(-1, ' ', false, json::error_handler_t::replace);
    if (text.size() > kLongestText) refuse(fmt::format("is longer than {} bytes", kLongestText));
    return text;
  }

 private:
  [[noreturn]] void refuse(std::string_view why) const {
    throw Error("dump_value", fmt::format("{} {}", label_, why));
  }

  hid_t needed(const Hdf5Handle& handle) const {
    need(static_cast<bool>(handle));
    return handle.get();
  }

  void need(bool dumped) const {
    if (!dumped)
      throw Error("dump_open",
                  fmt::format("{} cannot be read: {}", label_, last_hdf5_failure().reason));
  }

  std::optional<json> list(std::size_t count) const {
    switch (H5Tget_class(type_.get())) {
      case H5T_STRING:
        return H5Tis_variable_str(type_.get()) > 0 ? variable_texts(count) : fixed_texts(count);
      case H5T_INTEGER:
        return integers(count);
      case H5T_FLOAT:
        return numbers<double>(count, H5T_NATIVE_DOUBLE);
      case H5T_ENUM:
        return booleans(count);
      default:
        return std::nullopt;
    }
  }

  json fixed_texts(std::size_t count) const {
    const std::size_t size = H5Tget_size(type_.get());
    if (size > kLongestText || size * count > kMostBytes)
      refuse(fmt::format("is longer than {} bytes", kLongestText));
    std::vector<char> bytes(size * count);
    need(H5Aread(attribute_.get(), type_.get(), bytes.data()) >= 0);
    json items = json::array();
    for (std::size_t i = 0; i < count; ++i) {
      std::string text(bytes.data() + i * size, ::strnlen(bytes.data() + i * size, size));
      if (H5Tget_strpad(type_.get()) == H5T_STR_SPACEPAD)
        text.erase(text.find_last_not_of(' ') + 1);
      items.push_back(std::move(text));
    }
    return items;
  }

  json variable_texts(std::size_t count) const {
    std::vector<char*> texts(count, nullptr);
    need(H5Aread(attribute_.get(), type_.get(), texts.data()) >= 0);
    json items = json::array();
    for (const char* text : texts)
      items.push_back(text == nullptr ? std::string()
                                      : std::string(text, ::strnlen(text, kLongestText + 1)));
    H5Dvlen_reclaim(type_.get(), space_.get(), H5P_DEFAULT, texts.data());
    return items;
  }

  json integers(std::size_t count) const {
    if (H5Tget_sign(type_.get()) == H5T_SGN_NONE)
      return numbers<std::uint64_t>(count, H5T_NATIVE_UINT64);
    return numbers<std::int64_t>(count, H5T_NATIVE_INT64);
  }

  template <class T>
  json numbers(std::size_t count, hid_t in_memory) const {
    // HDF5 reads out of bounds if an element's bits lie outside of it.
    const std::size_t size = H5Tget_size(type_.get());
    if (size > sizeof(T) || H5Tget_precision(type_.get()) > 8 * size ||
        H5Tget_offset(type_.get()) != 0)
      refuse("is a number of an unusual form");
    std::vector<T> values(count);
    need(H5Aread(attribute_.get(), in_memory, values.data()) >= 0);
    json items = json::array();
    for (const T value : values) items.push_back(shown(value));
    return items;
  }

  template <class T>
  static json shown(T value) {
    return value;
  }
  static json shown(double value) {
    constexpr double kExact = 0x1p53;
    if (value >= -kExact && value <= kExact && value == std::trunc(value))
      return static_cast<std::int64_t>(value);
    return value;
  }

  /// h5py's bool: an int8 enum with FALSE = 0 and TRUE = 1.
  std::optional<json> booleans(std::size_t count) const {
    if (!is_boolean(type_.get())) return std::nullopt;
    std::vector<std::int8_t> values(count);
    need(H5Aread(attribute_.get(), type_.get(), values.data()) >= 0);
    json items = json::array();
    for (const std::int8_t value : values) items.push_back(value != 0);
    return items;
  }

  std::string label_;
  Hdf5Handle attribute_, type_, space_;
};

}  // namespace

bool is_boolean(hid_t type) {
  if (H5Tget_class(type) != H5T_ENUM || H5Tget_size(type) != 1 || H5Tget_nmembers(type) != 2)
    return false;
  std::int8_t is_false = -1, is_true = -1;
  return H5Tenum_valueof(type, "FALSE", &is_false) >= 0 &&
         H5Tenum_valueof(type, "TRUE", &is_true) >= 0 && is_false == 0 && is_true == 1;
}

Attributes attributes_of(hid_t object, std::string_view where, Allowance& allowance) {
  std::vector<std::string> names;
  const auto visit = [](hid_t, const char* name, const H5A_info_t*, void* out) -> herr_t {
    static_cast<std::vector<std::string>*>(out)->emplace_back(name);
    return 0;
  };
  // In the file's own order: HDF5 1.10 crashes on corrupt metadata when it sorts.
  if (H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_NATIVE, nullptr, visit, &names) < 0)
    throw Error("dump_open", fmt::format("the attributes of {} cannot be read: {}", where,
                                         last_hdf5_failure().reason));
  Attributes attributes;
  for (const std::string& name : names) {
    std::optional<std::string> text = Attribute(object, name, where).text();
    if (!text) continue;
    allowance.take(name.size() + text->size(), fmt::format("attribute {:?} of {}", name, where));
    attributes.insert_or_assign(name, std::move(*text));
  }
  return attributes;
}

}  // namespace shardproof::dump
