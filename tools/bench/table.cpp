#include "tools/bench/table.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "weights/base/detail/word_table.h"

namespace shardproof::bench {
namespace {

/// Formats with three digits.
std::string digits(double value) {
  const double size = std::abs(value);
  return fmt::format("{:.{}f}", value, size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

/// Formats without trailing zeros, as targets are written.
std::string shortest(double value) { return fmt::format("{}", value); }

std::string scaled(double value, std::string (*number)(double), Unit unit) {
  if (unit == Unit::share) return number(100.0 * value) + "%";
  if (unit == Unit::bytes)
    return value >= 0.1e9 ? number(value * 1e-9) + "GB" : number(value * 1e-6) + "MB";
  if (unit == Unit::seconds)
    return value >= 1.0    ? number(value) + "s"
           : value >= 1e-3 ? number(value * 1e3) + "ms"
                           : number(value * 1e6) + "us";
  return number(value);
}

std::string spread_text(const Measured& measured, const Patience& patience) {
  if (measured.row.once) return "once";
  const double width = measured.figure_spread();
  const std::string text = std::isfinite(width) ? fmt::format("{:.1f}%", 100.0 * width) : "?";
  return text + (measured.steady(patience) ? "" : "*");
}

/// Returns the clock by which a heading's rows are judged.
std::string clock_text(Decides decides) {
  static constexpr std::pair<std::string_view, Decides> kWords[] = {
      {" [cpu]", Decides::processor},
      {" [wall]", Decides::wall},
      {" [cpu and wall]", Decides::both}};
  return std::string(word_in(kWords, decides));
}

std::string line(const Measured& measured, const Patience& patience) {
  const Row& row = measured.row;
  const auto seconds = [](double value) { return figure_text(value, Unit::seconds); };
  if (measured.samples.empty())
    return fmt::format("  {:26}{:30}{:>8} {:7}", row.what, "", target_text(row), "failed");
  const Cost ours = measured.ours(), figure = measured.figure();
  return fmt::format("  {:26}{:>7}{:>8}{:>8}{:>7}{:>8} {:6}{:>7}", row.what,
                     seconds(ours.processor), seconds(ours.wall),
                     figure_text(figure.processor, row.unit), figure_text(figure.wall, row.unit),
                     target_text(row), measured.verdict(), spread_text(measured, patience));
}

}  // namespace

std::string figure_text(double value, Unit unit) {
  if (std::isnan(value)) return "";
  if (unit == Unit::per_minute) return fmt::format("{:.0f}", value);
  return scaled(value, digits, unit);
}

std::string target_text(const Row& row) {
  if (!row.target) return "";
  // Bytes and seconds use GB and s, as targets are stated.
  const std::string value =
      row.unit == Unit::bytes     ? fmt::format("{:.3g}GB", row.target->value * 1e-9)
      : row.unit == Unit::seconds ? shortest(row.target->value) + "s"
                                  : scaled(row.target->value, shortest, row.unit);
  return (row.target->at_least ? ">=" : "<=") + value;
}

std::string table(const std::vector<Measured>& rows, const Patience& patience) {
  std::string text =
      fmt::format("{:>43}{:>15}\n{:28}{:>7}{:>8}{:>8}{:>7}{:>8} {:6}{:>7}\n", "ours", "figure by",
                  "", "cpu", "wall", "cpu", "wall", "target", "", "spread");
  std::string heading, failures;
  bool unsteady = false;
  for (const Measured& measured : rows) {
    const std::string own = measured.row.group + clock_text(measured.row.decides);
    if (own != heading) text += own + "\n";
    heading = own;
    text += line(measured, patience) + "\n";
    if (!measured.error.empty())
      failures += fmt::format("{} failed: {}\n", measured.row.id, measured.error);
    unsteady = unsteady || !measured.steady(patience);
  }
  if (unsteady)
    text += fmt::format("* still above {:g} % after as many repeats as --repeat allows\n",
                        100.0 * patience.spread);
  return text + failures;
}

std::string list(const std::vector<Row>& rows) {
  std::string text;
  for (const Row& row : rows)
    text += fmt::format("{:25} {:26} {:>9}{}\n", row.id, row.what, target_text(row),
                        row.apart ? "  if asked for" : "");
  return text;
}

}  // namespace shardproof::bench
