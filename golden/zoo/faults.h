#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weights/base/error.h"

namespace shardproof::zoo {

/// The file that lists a zoo's faults and the dumps of each.
inline constexpr std::string_view kFaults = "FAULTS";

/// A dump of a run with a fault, ID.npz, and what has to be said of it.
struct Specimen {
  std::string id;      ///< "attention/kv-head-mod.hooks"
  std::string line;    ///< its case line
  std::string first;   ///< first divergence: the array that the fault makes wrong first
  std::string cause;   ///< kind of the fault, as the diagnosis names it
  bool named = false;  ///< the diagnosis names it; false: not yet
};

/// A fault that people met.
struct Fault {
  std::string says;                  ///< what is wrong, in a sentence
  std::string met;                   ///< the kind of system that it was met in
  std::vector<std::string> reports;  ///< public ones of its class, "owner/repository#number"
  std::vector<Specimen> dumps;
};

/// Reads a text of records; empty lines and those that begin with # are skipped, each other line is
/// a key and its text. A fault begins with "fault NUMBER", the numbers from 1 on, then says, met
/// and any number of report; each of its dumps begins with "dump ID", then case, first and cause,
/// and "named not yet" where the diagnosis does not name the cause yet. Throws
/// Error("zoo_faults", ...) naming the line: another key or number, a key that occurs twice, is
/// missing or has no text, an id that occurs twice, a cause that is none of diagnosis::faults()
/// and should be named, no fault at all.
std::vector<Fault> parse_faults(std::string_view text);

}  // namespace shardproof::zoo
