#include "golden/corpus/golden.h"

#include <fmt/format.h>

#include "golden/corpus/detail/collectives.h"
#include "golden/corpus/detail/layouts.h"
#include "golden/corpus/model.h"
#include "golden/corpus/not_equal.h"
#include "weights/base/detail/words.h"

namespace shardproof::corpus {
namespace {

dump::Dump expected(const dump::Dump& golden, Kind kind) {
  switch (kind) {
    case Kind::layouts:
      return expected_layouts(golden);
    case Kind::collectives:
      return expected_collectives(golden);
    case Kind::model:
      break;
  }
  return expected_model(golden);
}

struct GoldenLine {
  Kind kind = Kind::model;
  Torus torus;  ///< for layouts and collectives
  Case named;   ///< for a model
};

GoldenLine read_line(std::string_view line) {
  line = trim(line);
  const std::string_view word = line.substr(0, line.find(' '));
  const std::string_view rest = trim(line.substr(word.size()));
  for (const Kind kind : {Kind::layouts, Kind::collectives})
    if (word == to_string(kind)) return {kind, Torus::parse(rest), {}};
  if (word.find('=') == std::string_view::npos)
    throw Error("corpus_cases",
                fmt::format("{:?} is not a golden; legal: layouts TORUS, collectives "
                            "TORUS, a case line",
                            line.substr(0, 200)));
  return {Kind::model, {}, parse_case(line)};
}

}  // namespace

dump::Dump made_golden(std::string_view line) {
  const GoldenLine asked = read_line(line);
  switch (asked.kind) {
    case Kind::layouts:
      return layouts_golden(asked.torus);
    case Kind::collectives:
      return collectives_golden(asked.torus);
    case Kind::model:
      break;
  }
  return model_golden(asked.named);
}

std::string full_line(std::string_view line) {
  const GoldenLine asked = read_line(line);
  if (asked.kind == Kind::model) return print_case(asked.named);
  return fmt::format("{} {}", to_string(asked.kind), asked.torus.to_string());
}

std::string line_of(const dump::Dump& golden) {
  const Kind kind = kind_of(golden);
  if (kind == Kind::model) return print_case(case_of(golden));
  return fmt::format("{} {}", to_string(kind), torus_of(golden).to_string());
}

CheckResult check(const dump::Dump& golden) {
  CheckResult checked;
  checked.kind = kind_of(golden);
  line_of(golden);
  try {
    const dump::Dump made = expected(golden, checked.kind);
    if (const auto difference = first_difference(made, golden))
      checked.fault = *difference;
    else
      checked.values = std::ssize(made.order);
    if (checked.fault.empty() && made.order.empty()) checked.fault = "it holds no value";
  } catch (const Error& error) {
    if (error.label() == "memory_c1") throw;
    checked.fault = error.what();
  } catch (const NotEqual& found) {
    checked.fault = found.what();
  }
  return checked;
}

}  // namespace shardproof::corpus
