#pragma once

#include <string>
#include <vector>

#include "tools/bench/load.h"
#include "tools/bench/measured.h"

namespace shardproof::bench {

/// Prints a figure in at most seven columns: "1.23ms", "1.20GB", a ratio as "0.97".
std::string figure_text(double value, Unit unit);
/// Prints a target: "<=1.2", ">=15000".
std::string target_text(const Row& row);

/// Prints the rows under their headings, 80 columns wide, followed by the reasons for missing
/// figures and the rows that did not settle.
std::string table(const std::vector<Measured>& rows, const Patience& patience);
/// Lists the rows without measuring: ids, names, targets.
std::string list(const std::vector<Row>& rows);
/// Prints the rows and the other load of the machine as one JSON object (docs/speed.md).
std::string json(const std::vector<Measured>& rows, const Load& load);

}  // namespace shardproof::bench
