// The text of a program, and that a program prints as one.
#include "engine/program/program.h"

#include "tests/fuzz/target.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shardproof;
  fuzzed([&] {
    const Program program = parse_program("layer", text_of(data, size), "p.txt");
    const std::string printed = print_program(program);
    must(print_program(parse_program("layer", printed)) == printed);
  });
  return 0;
}
