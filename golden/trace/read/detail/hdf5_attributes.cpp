#include "golden/trace/read/detail/hdf5_attributes.h"

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "golden/trace/read/detail/json_text.h"

namespace shardproof::dump {
namespace {

using nlohmann::json;

constexpr std::size_t kMostItems = 4096;  // per list

[[noreturn]] void refuse(const Hdf5Attribute& attribute, std::string_view why) {
  throw Error("dump_value", fmt::format("{} {}", attribute.what(), why));
}

template <class Items>
json list(const Hdf5Attribute& attribute, const std::optional<Items>& items,
          std::string_view why_not) {
  if (!items) refuse(attribute, why_not);
  json all = json::array();
  for (const auto& item : *items)
    if constexpr (std::is_same_v<Items, std::vector<double>>)
      all.push_back(as_integer(item));
    else
      all.push_back(item);
  return all;
}

std::string too_long() { return fmt::format("is longer than {} bytes", kLongestText); }

/// Returns nullopt unless its elements are texts, numbers or h5py's bools.
std::optional<json> items_of(const Hdf5Attribute& attribute) {
  constexpr std::string_view kOdd = "is a number of an unusual form";
  switch (attribute.kind()) {
    case H5T_STRING:
      return list(attribute, attribute.texts(kLongestText), too_long());
    case H5T_INTEGER:
      return H5Tget_sign(attribute.type()) == H5T_SGN_NONE
                 ? list(attribute, attribute.numbers<std::uint64_t>(H5T_NATIVE_UINT64), kOdd)
                 : list(attribute, attribute.numbers<std::int64_t>(H5T_NATIVE_INT64), kOdd);
    case H5T_FLOAT:
      return list(attribute, attribute.numbers<double>(H5T_NATIVE_DOUBLE), kOdd);
    case H5T_ENUM: {
      if (!is_boolean(attribute.type())) return std::nullopt;
      std::vector<std::int8_t> values(attribute.count());
      attribute.read(attribute.type(), values.data());
      return list(attribute, std::optional(std::vector<bool>(values.begin(), values.end())), "");
    }
    default:
      return std::nullopt;
  }
}

/// Returns nullopt unless it is a text, a number or a list of them.
std::optional<std::string> text_of(const Hdf5Attribute& attribute) {
  const std::size_t count = attribute.count();
  if (count < 1 || attribute.rank() > 1) return std::nullopt;
  if (count > kMostItems)
    refuse(attribute, fmt::format("has {} items; legal: at most {}", count, kMostItems));
  const std::optional<json> items = items_of(attribute);
  if (!items) return std::nullopt;
  // An array of one number is read as that number.
  const bool one = attribute.rank() == 0 || (count == 1 && !items->front().is_string());
  std::string text = json_text(one ? items->front() : *items);
  if (text.size() > kLongestText) refuse(attribute, too_long());
  return text;
}

}  // namespace

bool is_boolean(hid_t type) {
  if (H5Tget_class(type) != H5T_ENUM || H5Tget_size(type) != 1 || H5Tget_nmembers(type) != 2)
    return false;
  std::int8_t is_false = -1, is_true = -1;
  return H5Tenum_valueof(type, "FALSE", &is_false) >= 0 &&
         H5Tenum_valueof(type, "TRUE", &is_true) >= 0 && is_false == 0 && is_true == 1;
}

Attributes attributes_of(const Hdf5Object& object, Allowance& allowance) {
  Attributes attributes;
  for (const std::string& name : object.attributes()) {
    const Hdf5Attribute attribute =
        object.attribute(name.c_str(), fmt::format("attribute {:?} of {}", name, object.what()));
    std::optional<std::string> text = text_of(attribute);
    if (!text) continue;
    allowance.take(name.size() + text->size(), attribute.what());
    attributes.insert_or_assign(name, std::move(*text));
  }
  return attributes;
}

}  // namespace shardproof::dump
