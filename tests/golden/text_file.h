#pragma once

#include <string>

namespace shardproof {

/// The text of a file of the source tree, "tests/golden/cases/matrix_rows.txt"; fails the test if
/// there is none.
std::string text_of_file(const std::string& path);

/// What stands in such a file between "== NAME" and the next "==".
std::string section_of_file(const std::string& path, const std::string& name);

}  // namespace shardproof
