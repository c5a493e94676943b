#pragma once

#include <string>
#include <vector>

#include "tools/bench/load.h"
#include "tools/bench/measured.h"

namespace shardproof::bench {

/// "1.23 ms" as 1.23ms, "1.20GB", a ratio as 0.97: at most seven columns.
std::string figure_text(double value, Unit unit);
/// "<=1.2", ">=15000".
std::string target_text(const Row& row);

/// The rows under their headings, 80 columns wide, and below why some have no figure and which did
/// not settle.
std::string table(const std::vector<Measured>& rows, const Patience& patience);
/// Only what would be measured: ids, names, targets.
std::string list(const std::vector<Row>& rows);
/// One object (docs/speed.md) of the rows and of what else the machine did.
std::string json(const std::vector<Measured>& rows, const Load& load);

}  // namespace shardproof::bench
