#include "tests/golden/text_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

namespace shardproof {

std::string text_of_file(const std::string& path) {
  std::ifstream file(std::string(SHARDPROOF_SOURCE) + "/" + path);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string section_of_file(const std::string& path, const std::string& name) {
  const std::string text = "\n" + text_of_file(path), title = "\n== " + name + "\n";
  const auto at = text.find(title);
  EXPECT_NE(at, std::string::npos) << path << ": " << name;
  if (at == std::string::npos) return "";
  const auto begin = at + title.size() - 1;
  return text.substr(begin, text.find("\n==", begin) - begin);
}

}  // namespace shardproof
