// The JSON of an npz, and the paths that its values may have.
#include "golden/trace/read/detail/json_attributes.h"
#include "golden/trace/read/detail/place.h"
#include "tests/fuzz/target.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shardproof;
  const std::string text = text_of(data, size);
  fuzzed([&] {
    const dump::JsonAttributes read = dump::parse_json_attributes(text);
    for (const auto& value : read.values) {
      dump::require_same(value.second, value.second, value.first);
      fuzzed([&] { dump::place_of(value.first); });
    }
    dump::require_trace(read.file);
  });
  fuzzed([&] { must(!dump::place_of(text).id.empty()); });
  return 0;
}
