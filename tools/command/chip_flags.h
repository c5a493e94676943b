#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "engine/cost/chip/chip.h"

namespace shardproof::tools {

/// The flags `--chip NAME` and `--chips-file FILE` of a verb of the cost model.
class ChipFlags {
 public:
  /// Adds the flags; `preset` is the default chip. The object must outlive the parsing.
  void add_to(CLI::App& verb, const std::string& preset = "tpu-v4");

  /// Returns the chip that the flags name. Throws what load_chips and find_chip throw.
  cost::Chip chip() const;

 private:
  std::string name_, file_;
};

/// Parses the type given to `flag`, e.g. "bf16". Throws Error("flag_c9", ...) naming the legal
/// words.
NumberFormat type_of_flag(const CLI::App& verb, const std::string& flag, const std::string& word);

}  // namespace shardproof::tools
