#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "engine/cost/chip/chip.h"

namespace shardproof::tools {

/// The flags `--chip NAME` and `--chips-file FILE` of a verb of the cost model.
class ChipFlags {
 public:
  /// The object must outlive the parsing; `preset` is the chip where the flags name none.
  void add_to(CLI::App& verb, const std::string& preset = "tpu-v4");

  /// The chip that the flags name. Throws what load_chips and find_chip throw.
  cost::Chip chip() const;

 private:
  std::string name_, file_;
};

/// The type that `flag` names: "bf16". Throws Error("flag_c9", ...) naming the legal words.
WeightType type_of_flag(const CLI::App& verb, const std::string& flag, const std::string& word);

}  // namespace shardproof::tools
