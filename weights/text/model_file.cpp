#include "weights/text/model_file.h"

#include "weights/base/detail/text_file.h"

namespace shardproof {

ModelText load_model_text(const std::string& path) {
  return parse_model_text(read_text(path, {.unreadable = "model_f1",
                                           .no_text = "model_f2",
                                           .most = std::size_t{1} << 20,
                                           .kind = "model",
                                           .more = " (docs/spec-model-text.md)"}),
                          path);
}

}  // namespace shardproof
