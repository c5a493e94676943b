#pragma once

#include <string>

#include "weights/base/error.h"

namespace shardproof::tools {

/// How a zoo's check is printed.
struct ZooOutput {
  bool json = false, quiet = false;
  bool released = false;  ///< a zoo that is not released fails
};

/// Checks a zoo, prints a row for each dump, and returns the exit code. Throws what
/// zoo::check_zoo throws.
int check_zoo_folder(const std::string& folder, const ZooOutput& output);

}  // namespace shardproof::tools
