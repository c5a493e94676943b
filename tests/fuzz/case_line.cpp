// A case line, and that a case that is one prints as one.
#include "engine/run/case.h"
#include "tests/fuzz/target.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shardproof;
  fuzzed([&] {
    const Case c = parse_case(text_of(data, size));
    must(parse_case(print_case(c)) == c);
  });
  return 0;
}
