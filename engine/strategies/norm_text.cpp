#include "engine/strategies/norm_text.h"

#include "weights/registry.h"

namespace shardproof {
namespace {

bool has_bias(const ModelConfig& config) {
  for (const WeightSpec& spec : weight_specs(config))
    if (spec.name == "final_norm_bias") return true;
  return false;
}

}  // namespace

void norm_inputs(ProgramText& p, const ModelConfig& config, const NormText& n) {
  p.line("input g{} : E is weight {}norm{}", n.behind, n.before, n.behind);
  if (has_bias(config))
    p.line("input gb{} : E is weight {}norm{}_bias", n.behind, n.before, n.behind);
  if (config.norm == Norm::layernorm && n.behind.empty())
    p.line("input ones : {} is constant ones", dim('E', n.e));
}

std::string norm_lines(ProgramText& p, const ModelConfig& config, const NormText& n) {
  const std::string last = n.last ? "last " : "";
  const auto stat = [&](std::string_view of) {
    return fmt::format("stat {}{}{}{}", last, n.before, of, n.behind);
  };
  const std::string rows = n.layout.substr(0, n.layout.rfind('E'));
  const std::string letters = Layout::parse(n.layout).letters();
  const std::string row_letters = letters.substr(0, letters.size() - 1);
  // A sum over E of `value` times `by`, whole on every chip.
  const auto sum = [&](std::string_view name, std::string_view of, const std::string& value,
                       const std::string& by, std::string_view by_letters) {
    const std::string s = fmt::format("s{}{}", name, n.behind);
    p.line("{} : {}{} = einsum({},{}->{}; {}, {}) is {}", s, rows,
           n.e.empty() ? "" : " partialsum-" + n.e.sorted().to_string(), letters, by_letters,
           row_letters, value, by, stat(of));
    if (n.e.empty()) return s;
    const std::string all = fmt::format("{}a{}", name == "s" ? "s" : "sx", n.behind);
    p.line("{} : {} = all_reduce({}, {}) is {}", all, rows, s, n.e.to_string(), stat(of));
    return all;
  };
  // Gains and bias rest whole; a chip takes its own part.
  const auto part = [&](const std::string& vector, std::string_view weight) {
    const std::string name = vector + n.behind;
    if (n.e.empty()) return name;
    const std::string own = fmt::format("{}x{}", vector, n.behind);
    p.line("{} : {} = slice({}, E, {}) is weight {}norm{}{}", own, dim('E', n.e), name,
           n.e.to_string(), n.before, n.behind, weight);
    return own;
  };

  std::string x = n.x;
  if (config.norm == Norm::layernorm) {
    const std::string total = sum("x", "sum", n.x, "ones", "E");
    p.line("mu{0} : {1} = divide_by({2}, E) is {3}", n.behind, rows, total, stat("mu"));
    x = "xd" + n.behind;
    p.line("{} : {} = center({}, mu{}) is {}", x, n.layout, n.x, n.behind, stat("d"));
  }
  const std::string ss = sum("s", "ss", x, x, letters);
  const std::string g = part("g", "");
  const std::string b = has_bias(config) ? ", " + part("gb", "_bias") : "";
  const std::string checkpoint = fmt::format("{}{}norm{}", last, n.before, n.behind);
  const std::string xn = "xn" + n.behind;
  p.line("{} : {} = norm({}, {}, {}{}) is {}", xn, n.layout, x, ss, g, b, p.unstored(checkpoint));
  return p.stored(xn, n.layout, checkpoint);
}

}  // namespace shardproof
