#pragma once

#include <string>

#include "weights/base/error.h"

namespace shardproof::tools {

/// Prints a model's text in its canonical form: of the keys "llama,K=4", or of a file, whose name
/// has a '/' or '.' in it. `rounding`, of keys alone, is where it stores too. Returns the exit
/// code. Throws what parse_model, text_of_model and load_model_text throw, and what sizes_of throws
/// where the text has small sizes.
int print_model_listing(const std::string& model, const std::string& rounding, bool json);
/// Prints the ops of model texts.
int list_model_ops(bool json);

}  // namespace shardproof::tools
