// A map: what it says of a config, its example, is a number, a table or an error.
#include "weights/maps/model_map.h"

#include "tests/fuzz/target.h"
#include "weights/maps/map_sizes.h"
#include "weights/text/model_text.h"
#include "weights/text/writer.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shardproof;
  static const ModelText kText = parse_model_text(text_of_model(parse_model("llama")));
  fuzzed([&] {
    const ModelMap map = parse_model_map(text_of(data, size), "a.map");
    (void)mapped_sizes(map, kText, example_config(map));
  });
  return 0;
}
