#include "tools/verbs/explain_subject.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "engine/run/dim_padding.h"
#include "tools/command/layer_files.h"
#include "tools/text/wrapped.h"
#include "weights/base/error.h"

namespace shardproof::tools {

std::string Subject::pass() const {
  const std::string shared =
      c().prefix.given() ? fmt::format(", the first {} of {}", c().prefix.length, prefixes()) : "";
  if (!prefill)
    return fmt::format("one decode step: batch {}, {} cached positions{}", c().batch, c().prompt,
                       shared);
  return fmt::format(
      "one prefill pass (L is sharded, so it cannot decode): batch {}, {} positions{}", c().batch,
      c().prompt, shared);
}

std::string Subject::prefixes() const {
  return fmt::format("{} prefix{}", c().prefix.rows, c().prefix.rows == 1 ? "" : "es");
}

std::vector<std::int64_t> Subject::row_lengths() const {
  if (!c().lengths.given()) return {};
  return lengths_of_rows(c().lengths, c().seed, c().batch, c().prompt, c().prefix.length);
}

Subject subject(const Strategy& strategy, CaseFlags flags) {
  Subject of;
  of.title = strategy.to_string();
  of.strategy = strategy;
  of.prefill = !decodes(strategy);
  if (of.prefill && flags.has("prefill"))
    throw Error("flag_c6", fmt::format("--prefill has no effect on {}, which is a prefill itself, "
                                       "leave it out (see shardproof explain --help)",
                                       of.title));
  flags.set_default("prefill", strategy.to_string());
  flags.set_default("torus", "4x2x3");
  if (!flags.has("batch")) flags.set_default("batch", std::to_string(flags.parse().torus.chips()));
  Case c = flags.parse();
  of.hands_over = !(c.prefill == strategy);
  c.decode = strategy;
  c.gen = of.prefill ? 1 : 2;
  of.typed = make_typed_plan(c);
  return of;
}

Subject subject(const std::string& program, CaseFlags& flags) {
  if (flags.has("prefill"))
    throw Error("program_f4", fmt::format("--program {} is both prefill and decode; leave prefill "
                                          "out of the case",
                                          program));
  Subject of;
  of.title = program;
  LayerFiles files;
  files.program_prefill = program;
  Case c = load_given_case(files, flags);
  of.prefill = smallest_length(c.prefill, c.torus) > 1;
  if (!of.prefill) {
    c.decode = c.prefill;
    c.gen = 3;  // as in verify --program
  }
  of.typed = make_typed_plan(c);
  return of;
}

std::string model_text(const Case& c) {
  const std::string padding = padding_text(c);
  return print_model(c.model) + (padding.empty() ? "" : ", " + padding);
}

std::string rows_text(const Subject& of, std::string_view indent) {
  constexpr std::size_t kShown = 8;
  std::vector<std::int64_t> lengths = of.row_lengths();
  if (lengths.empty()) return "";
  const bool more = lengths.size() > kShown;
  lengths.resize(std::min(lengths.size(), kShown));
  return std::string(indent) +
         wrapped(fmt::format("rows have {}{} tokens, padded on the right; padding is not cached "
                             "and never read: what follows a row stands right behind its tokens",
                             fmt::join(lengths, ", "), more ? ", ..." : ""),
                 78, indent) +
         "\n";
}

}  // namespace shardproof::tools
