#pragma once

#include <stdexcept>
#include <string>

#include "tools/bench/measured.h"

namespace shardproof::bench {

/// Options of the command line.
struct Options {
  std::string filter = {};   ///< part of an id; empty: all rows that are not apart
  std::string program = {};  ///< the program to measure
  Patience patience = {};
  bool json = false, list = false;
};

/// Invalid command line; what() is one line.
class WrongUse : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
/// Thrown for --help; what() is its text.
class HelpAsked : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

Options parse_options(int argc, const char* const* argv);

}  // namespace shardproof::bench
