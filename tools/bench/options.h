#pragma once

#include <stdexcept>
#include <string>

#include "tools/bench/measured.h"

namespace shardproof::bench {

/// What the command line says.
struct Options {
  std::string filter = {};   ///< a part of an id; empty: all rows that are not apart
  std::string program = {};  ///< whose processes are measured
  Patience patience = {};
  bool json = false, list = false;
};

/// A wrong use: one line.
class WrongUse : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
/// --help, its text.
class HelpAsked : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

Options parse_options(int argc, const char* const* argv);

}  // namespace shardproof::bench
