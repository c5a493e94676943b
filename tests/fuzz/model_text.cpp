// The text of a model: its canonical form reads as the same text.
#include "weights/text/model_text.h"

#include "tests/fuzz/target.h"
#include "weights/text/sizes.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shardproof;
  fuzzed([&] {
    const ModelText text = parse_model_text(text_of(data, size), "m.model");
    const std::string printed = print_model_text(text);
    must(print_model_text(parse_model_text(printed)) == printed);
    (void)sizes_of(text);
  });
  return 0;
}
