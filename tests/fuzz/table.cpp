// The text of tables of layouts, and that tables print as such.
#include "engine/layouts/table.h"

#include "tests/fuzz/target.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shardproof;
  fuzzed([&] {
    std::string printed;
    for (const LayoutTable& table : parse_layouts(text_of(data, size), "my.layouts"))
      printed += print_layouts(table);
    std::string again;
    for (const LayoutTable& table : parse_layouts(printed)) again += print_layouts(table);
    must(printed == again);
  });
  return 0;
}
