#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <span>

namespace shardproof::tools {

/// Runs the chosen verb: returns the exit code, 0 if all checks held, 1 if one failed. Bad input
/// throws shardproof::Error, which main prints as one line and turns into exit code 2.
using Action = std::function<int()>;

/// Each add_* function adds its verb to the command line and sets `chosen` when the verb is given.
void add_verify(CLI::App& app, Action& chosen);
void add_explain(CLI::App& app, Action& chosen);
void add_run(CLI::App& app, Action& chosen);
void add_weights(CLI::App& app, Action& chosen);
void add_list(CLI::App& app, Action& chosen);
void add_compare(CLI::App& app, Action& chosen);
void add_trace(CLI::App& app, Action& chosen);
void add_golden(CLI::App& app, Action& chosen);
void add_faults(CLI::App& app, Action& chosen);
void add_plan(CLI::App& app, Action& chosen);
void add_cost(CLI::App& app, Action& chosen);
void add_intensity(CLI::App& app, Action& chosen);
void add_layout(CLI::App& app, Action& chosen);
void add_paper(CLI::App& app, Action& chosen);

using AddVerb = void (*)(CLI::App& app, Action& chosen);
/// Returns the verbs of this program, in the order of its help: all in shardproof, verify alone in
/// what tools/verify builds first.
std::span<const AddVerb> verbs_of_program();

}  // namespace shardproof::tools
