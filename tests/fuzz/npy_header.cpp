// The header of an .npy file, and what its elements are.
#include "golden/trace/read/detail/npy_header.h"

#include <algorithm>
#include <span>

#include "tests/fuzz/target.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shardproof;
  fuzzed([&] {
    if (size >= dump::kNpyPrefix)
      dump::npy_header_bytes(
          std::as_bytes(std::span<const std::uint8_t, dump::kNpyPrefix>(data, dump::kNpyPrefix)),
          "v");
  });
  fuzzed([&] {
    const dump::NpyHeader header = dump::parse_npy_header(text_of(data, size), "v");
    must(std::all_of(header.shape.begin(), header.shape.end(),
                     [](std::int64_t extent) { return extent >= 0; }));
    must(header.is_text() || header.element_bytes() > 0);
    const dump::ElementType type = dump::element_type(header, "v");
    const dump::EncodingOrNot known = dump::encoding_of(type, {});
    must(known.encoding ? static_cast<std::size_t>(bytes_of(*known.encoding)) >= type.bytes
                        : !known.why.empty());
  });
  return 0;
}
