#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>
#include <system_error>

#include "engine/shards/finding.h"
#include "golden/trace/read/dump.h"
#include "tools/command/command_line.h"
#include "tools/command/interrupt.h"
#include "tools/command/verbs.h"
#include "tools/runner/crash_report.h"
#include "weights/base/error.h"

namespace {

constexpr int kBadInput = 2;

/// Prints the message as one line on stderr, even if stderr is closed; returns the exit code.
int refuse(std::string message) {
  shardproof::tools::keep_from_ending();
  constexpr std::size_t kLongest = 800;
  for (char& c : message)
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  if (message.size() > kLongest) message = message.substr(0, kLongest) + "...";
  std::fprintf(stderr, "shardproof: %s\n", message.c_str());
  return kBadInput;
}

int finish(int code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  return refuse("output_c1: standard output cannot be written");
}

/// Keeps newer releases of CLI11 from reflowing descriptions and footers.
template <class Formatter>
void keep_lines(Formatter& formatter) {
  if constexpr (requires { formatter.enable_footer_formatting(false); }) {
    formatter.enable_footer_formatting(false);
    formatter.enable_description_formatting(false);
  }
}

}  // namespace

int main(int argc, char** argv) {
  using namespace shardproof;
  tools::watch_interrupts();
  tools::report_crashes(dump::mapped_file_at);
  CLI::App app{
      "Shardproof runs partitioned transformer inference on a simulated torus of chips\n"
      "and proves every layout equal to the unsharded model, bit for bit.\n"};
  app.name("shardproof");
  keep_lines(*app.get_formatter());
  app.set_version_flag("--version", "shardproof " SHARDPROOF_VERSION);
  app.footer(
      "Each verb has --help with examples. Strategies, models, the ops of programs and\n"
      "the labels of errors: shardproof list --help.\n"
      "Exit codes: 0 all checks passed, 1 a check failed, 2 bad input.\n"
      "Example: shardproof verify --torus 4x2x3 --prefill wg-xyz:batch");
  app.require_subcommand(1);
  tools::Action chosen;
  for (const tools::AddVerb add : tools::verbs_of_program()) add(app, chosen);
  try {
    tools::check_command_line(app, {argv + std::min(argc, 1), argv + argc});
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    return finish(app.exit(success));
  } catch (const Error& error) {
    return refuse(error.what());
  } catch (const CLI::ParseError& error) {
    return refuse(fmt::format("internal error: {} (see shardproof --help)", error.what()));
  }
  try {
    return finish(chosen());
  } catch (const FindingsError& error) {
    for (const Finding& finding : error.findings()) refuse(finding.to_string());
    return kBadInput;
  } catch (const Error& error) {
    return refuse(error.what());
  } catch (const std::bad_alloc&) {
    return refuse("memory_c1: out of memory; a smaller torus, model, batch or prompt fits");
  } catch (const std::system_error&) {  // thrown by fmt::print
    return refuse("output_c1: standard output cannot be written");
  } catch (const std::exception& error) {
    return refuse(fmt::format("internal error: {}", error.what()));
  }
}
