#pragma once

// Tables of layouts in files, and what the command line says of them.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/tools/cli_fixture.h"

/// The lines of ws2d:heads, to be changed one at a time.
inline const std::vector<std::string> kLines{"in : BLE_xzy -> BLE_x", "weights : E_x F_zy H_zy",
                                             "hidden : BLF_zyx", "attend : BLH_zyxQ"};

class Layouts : public Cli {
 protected:
  /// A file of one table `t`, its lines from line 2 on.
  std::string table(const std::vector<std::string>& lines, const std::string& file = "t.layouts",
                    const std::string& name = "t") const {
    std::string text = "layouts " + name + "\n";
    for (const std::string& line : lines) text += line + "\n";
    write(file, text);
    return file;
  }
  /// ws2d:heads with one line changed, or one added where `at` is past the end.
  static std::vector<std::string> with(std::size_t at, const std::string& line) {
    std::vector<std::string> lines = kLines;
    lines.resize(std::max(lines.size(), at + 1));
    lines[at] = line;
    return lines;
  }
  /// A strategy's table as `explain --layouts` prints it, under another name.
  std::string shipped(const std::string& name, const std::string& flags = "") const {
    std::string text = run("explain " + name + " --layouts " + flags).out;
    const auto at = text.find("\nlayouts " + name);
    EXPECT_NE(at, std::string::npos) << text;
    return text.replace(at, 9 + name.size(), "\nlayouts mine");
  }
  nlohmann::json json(const std::string& arguments) const {
    const Outcome o = run(arguments + " --json");
    EXPECT_EQ(o.code, 0) << arguments << o.out << o.err;
    return nlohmann::json::parse(o.out);
  }
  void expect_equal(const std::string& arguments) const {
    const Outcome o = run(arguments);
    EXPECT_EQ(o.code, 0) << arguments << "\n" << o.out << o.err;
    EXPECT_NE(o.out.find("1 case: 1 equal"), std::string::npos) << arguments << "\n" << o.out;
  }
};
