// A layout, and that one prints as itself.
#include "engine/layout/layout.h"

#include "tests/fuzz/target.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shardproof;
  fuzzed([&] {
    const Layout layout = Layout::parse(text_of(data, size));
    must(Layout::parse(layout.to_string()) == layout);
  });
  return 0;
}
