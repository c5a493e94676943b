#include "golden/trace/write/dump_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>

#include "golden/trace/read/detail/place.h"
#include "weights/base/detail/replace_file.h"
#include "weights/hdf5/detail/writer.h"

namespace shardproof {
namespace {

using dump::Attributes;

constexpr std::string_view kChips = "chips";

std::optional<int> whole_number(const std::string& text) {
  int number = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && at == end ? std::optional(number) : std::nullopt;
}

/// `of`: whose attributes they are.
void put_attributes(const Hdf5Writer::Object& object, const Attributes& attributes,
                    std::string_view of) {
  for (const auto& [name, text] : attributes) {
    if (name.empty() || (name + text).find('\0') != std::string::npos)
      throw Error(
          "dump_attribute",
          fmt::format("{:?}: {:?} has a zero character, or no name; legal: text", of, name));
    const auto number = name == "order" || name == "version" || name == dump::kListed
                            ? whole_number(text)
                            : std::nullopt;
    if (number)
      object.put(name.c_str(), *number);
    else
      object.put_text(name.c_str(), text);
  }
}

void require_name(const std::string& name, const dump::Value& value) {
  if (name == kChips || name == "." || dump::place_of(name).chip)
    throw Error("dump_value", fmt::format("{:?} is not a name of a value", name));
  if (!value.unread.empty())
    throw Error("dump_value", fmt::format("{:?} {}, and cannot be written", name, value.unread));
  // The attribute `encoding` is the same of all shards.
  const auto is_bf16 = [](const auto& chip) { return chip.second.encoding == NumberFormat::bf16; };
  if (std::any_of(value.chips.begin(), value.chips.end(), is_bf16) &&
      !std::all_of(value.chips.begin(), value.chips.end(), is_bf16))
    throw Error("dump_value",
                fmt::format("{:?} has shards of bf16 and of other types; legal: one type", name));
}

/// Returns whether the values' own places in the run give all of them one order.
bool in_one_order(const dump::Dump& dump) {
  std::set<std::int64_t> places;
  for (const auto& [name, value] : dump.values)
    if (const auto place = dump::place_in_run(value)) places.insert(*place);
  return places.size() == dump.values.size();
}

class DumpFile {
 public:
  DumpFile(const std::filesystem::path& target, const std::string& label) : file_(target, label) {}

  void write(const dump::Dump& dump) {
    put(dump);
    chips_.clear();
    all_chips_.reset();
    file_.write();
  }

 private:
  void put(const dump::Dump& dump) {
    const Hdf5Writer::Object root = file_.root();
    const bool listed = !in_one_order(dump);
    put_attributes(root, dump.attributes, "the file");
    for (std::size_t place = 0; place < dump.order.size(); ++place) {
      const std::string& name = dump.order[place];
      const dump::Value& value = dump.values.find(name)->second;
      require_name(name, value);
      Attributes attributes = value.attributes;
      attributes.erase(std::string(dump::kListed));
      if (listed) attributes.emplace(std::string(dump::kListed), std::to_string(place));
      if (!value.in_shards()) put(root, name, attributes, value.whole);
      for (const auto& [chip, shard] : value.chips)
        put(group_of(root, chip), name, attributes, shard);
    }
  }

  void put(const Hdf5Writer::Object& parent, const std::string& name, Attributes attributes,
           const dump::StoredArray& array) {
    if (array.encoding == NumberFormat::bf16)
      attributes.insert_or_assign("encoding", "bf16");
    else
      attributes.erase("encoding");
    put_attributes(file_.dataset(parent, name, array.shape, array.encoding, array.elements()),
                   attributes, name);
  }

  const Hdf5Writer::Object& group_of(const Hdf5Writer::Object& root,
                                     const std::array<int, 3>& chip) {
    if (!all_chips_) all_chips_.emplace(file_.group(root, std::string(kChips)));
    auto at = chips_.find(chip);
    if (at == chips_.end())
      at = chips_
               .emplace(chip, file_.group(*all_chips_,
                                          fmt::format("{}_{}_{}", chip[0], chip[1], chip[2])))
               .first;
    return at->second;
  }

  Hdf5Writer file_;
  std::optional<Hdf5Writer::Object> all_chips_;
  std::map<std::array<int, 3>, Hdf5Writer::Object> chips_;
};

}  // namespace

void write_dump(const dump::Dump& dump, const std::filesystem::path& target,
                const std::string& label) {
  require_replaceable(target, label);
  DumpFile(target, label).write(dump);
}

}  // namespace shardproof
