#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "engine/program/program.h"
#include "engine/program/typing.h"

namespace shardproof {

/// A program that breaks one condition of docs/typing.md and no earlier one, and what the message
/// must name: step, axis or dim, layout.
struct BrokenProgram {
  std::string label;
  std::string program;
  std::vector<std::string> words;
  std::string torus = "2x2x3";
  std::map<std::string, Shape> shapes = {};  ///< of inputs that differ from the usual extents
};

inline std::ostream& operator<<(std::ostream& out, const BrokenProgram& b) {
  return out << b.label;
}

inline const std::string kX = "input x : BLE_zy is in\n";
inline const std::string kP = "input p : BLE_x partialsum-yz is raw block_out\n";
inline const std::string kQ = "input q : BLH_zyxQ is q\n";
inline const std::string kPos = "input pos : BL is input pos\n";

/// Integer candidates come only from local_argmax.
inline const std::string kArgmax = R"(input z : BV_zyx is logits
cv : BC_zyx, ci : BC_zyx = local_argmax(z) is stat candidates, stat indices
gv : BC = all_gather(cv, C, zyx) is stat candidates
gi : BC = all_gather(ci, C, zyx) is stat indices
)";

inline std::string input(const std::string& name, const std::string& layout,
                         const std::string& role) {
  return "input " + name + " : " + layout + " is " + role + "\n";
}

/// Parses and checks, with the usual extents for every input that names no shape.
inline void parse_and_check(const BrokenProgram& b) {
  static const std::map<char, std::int64_t> extents{
      {'B', 12}, {'L', 2},  {'M', 4},  {'N', 12}, {'T', 3},  {'E', 24},
      {'F', 24}, {'H', 12}, {'K', 12}, {'Q', 4},  {'V', 24}, {'C', 12},
      {'S', 3},  {'R', 4},  {'P', 9},  {'J', 2},  {'W', 12}};
  const Torus torus = Torus::parse(b.torus);
  const Program program = parse_program("test", b.program);
  std::map<std::string, Shape> shapes = b.shapes;
  for (const ValueDecl& input : program.inputs) {
    if (shapes.contains(input.name)) continue;
    for (const Layout::Dim& dim : input.layout.dims())
      shapes[input.name].push_back(extents.at(dim.letter));
  }
  check(program, shapes, torus);
}

/// What is demanded of every row is in rule_test.cpp; the other files give it rows.
class TypingRule : public ::testing::TestWithParam<BrokenProgram> {};

/// The label, and from its second row on the row's number: all_gather_c1, all_gather_c1_2.
inline auto named_by_label(const std::vector<BrokenProgram>& rows) {
  return [rows](const ::testing::TestParamInfo<BrokenProgram>& given) {
    const std::string& label = given.param.label;
    const auto count =
        std::count_if(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(given.index) + 1,
                      [&](const BrokenProgram& b) { return b.label == label; });
    return count == 1 ? label : label + "_" + std::to_string(count);
  };
}

}  // namespace shardproof
