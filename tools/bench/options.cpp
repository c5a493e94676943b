#include "tools/bench/options.h"

#include <CLI/CLI.hpp>
#include <filesystem>

namespace shardproof::bench {
namespace {

constexpr const char* kFooter = R"(
Every row is measured in repeats, each of its two sides in turn; its figure is
the median of the repeats'. In this process a repeat is 15 rounds of at least a
millisecond a side, and gives the ratio of the sides' medians.

The spread is how far the true median may be: the width, over the measured one,
of the interval between two of the repeats' figures, as far from either end,
that holds it with a probability of at least 90 %. (How many lie below the true
median is binomial.) It falls with more repeats, and takes five. A row ends at
a spread of no more than --spread, or after --repeat repeats; then a * says so.
"once" is a row that is measured once: the mean of very much work, or memory.

cpu is processor time, user and system: of the calling thread for rows of one
thread, else of all threads and, of a process, as a whole. What stands in
brackets after a heading is by which clock its targets must be met. What else
the machine did is said above the table: by the wall clock, figures are only
worth something if that is nothing.

Exit codes: 0 measured, whether targets are met or not; 1 a row could not be
measured, or an answer was wrong; 2 wrong use.
Example: shardproof_bench --filter ffn/64
         shardproof_bench --filter large --json > large.json
docs/speed.md says what is compared with what.)";

std::string beside_this_program() {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "shardproof" : (self.parent_path() / "shardproof").string();
}

}  // namespace

Options parse_options(int argc, const char* const* argv) {
  Options options;
  double percent = 100.0 * options.patience.spread;
  CLI::App app{"Measures what simulating chips costs, beside what it is to cost at most",
               "shardproof_bench"};
  app.footer(kFooter);
  app.add_option("--filter", options.filter, "Rows whose id has this in it [all but large]")
      ->option_text("TEXT");
  app.add_option("--repeat", options.patience.repeats, "Repeats of a row at most [15]")
      ->check(CLI::Range(1, 1000))
      ->option_text("N");
  app.add_option("--spread", percent, "A row ends when its spread is no more [3]")
      ->check(CLI::Range(0.0, 100.0))
      ->option_text("PERCENT");
  app.add_option("--program", options.program, "Whose processes are measured [beside this]")
      ->option_text("FILE");
  app.add_flag("--list", options.list, "Print the rows and their targets; measure nothing");
  app.add_flag("--json", options.json, "Print JSON (docs/speed.md)");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    throw HelpAsked(app.help());
  } catch (const CLI::ParseError& error) {
    throw WrongUse(error.what());
  }
  options.patience.spread = percent / 100.0;
  if (options.program.empty()) options.program = beside_this_program();
  return options;
}

}  // namespace shardproof::bench
