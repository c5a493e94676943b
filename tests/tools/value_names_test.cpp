// Names of a layer's values as literals: they stand in the texts and in the tables listed here, and
// hardly anywhere else.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>

namespace shardproof {
namespace {

namespace fs = std::filesystem;

/// Tables of values, of weights, of places that round and of ops, and the text of keys.
const std::set<std::string> kTables{
    "engine/layouts/table.cpp",        "engine/program/ops.cpp",
    "golden/rerun/arithmetic.cpp",     "weights/model/registry.h",
    "weights/model/registry_rows.cpp", "weights/model/rounding_places.cpp",
    "weights/model/rounding_places.h", "weights/text/ops.cpp",
    "weights/text/writer.cpp"};

bool counts(const std::string& path) {
  // The oracle and the scalar model write the layer by hand, since they are what is compared with.
  return !kTables.contains(path) && !path.starts_with("oracle/") &&
         !path.starts_with("golden/scalar/");
}

TEST(ValueNames, AreFewAsLiterals) {
  const std::regex name(
      "\"(norm|norm2|q|k|v|q_rot|k_rot|k_cache|v_cache|score|exp|max|denom|attn|gate|up|hidden|"
      "block_out|attn_out|ffn_out|mid|out|logits|final_norm|embed|rstd|ss|sum|mu|xs|xi)\"");
  std::map<std::string, std::ptrdiff_t> found;
  std::ptrdiff_t all = 0;
  for (const char* folder : {"engine", "golden", "oracle", "tools", "weights"})
    for (const auto& entry :
         fs::recursive_directory_iterator(fs::path(SHARDPROOF_SOURCE) / folder)) {
      const std::string path = fs::relative(entry.path(), SHARDPROOF_SOURCE).generic_string();
      if ((!path.ends_with(".h") && !path.ends_with(".cpp")) || !counts(path)) continue;
      std::ostringstream text;
      text << std::ifstream(entry.path()).rdbuf();
      const std::string source = text.str();
      found[path] = std::distance(std::sregex_iterator(source.begin(), source.end(), name), {});
      all += found[path];
    }
  ASSERT_GT(found.size(), 500U);
  std::string most;
  for (const auto& [path, count] : found)
    if (count > 3) most += "\n" + std::to_string(count) + " " + path;
  EXPECT_LT(all, 150) << "read operands from weights/text/composites.h, or names from a table:"
                      << most;
}

TEST(ValueNames, OfTheTablesAreFiles) {
  for (const std::string& path : kTables)
    EXPECT_TRUE(fs::exists(fs::path(SHARDPROOF_SOURCE) / path)) << path;
}

}  // namespace
}  // namespace shardproof
