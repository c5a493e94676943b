#include "engine/run/detail/handed_values.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "engine/program/execute.h"
#include "weights/text/model_text.h"

namespace shardproof {
namespace {

/// Layouts of what readers are handed, by the role that they read it as.
struct Handed {
  std::string by;  ///< "prefill layer"
  std::map<std::string, Layout> layouts;
};

/// What a program returns, as readers with `word` before its roles read it: "previous k_cache".
Handed returned(const Program& program, const std::string& phase, const std::string& word = "") {
  Handed handed{phase + program.name, {}};
  for (const std::string& output : program.outputs) {
    const ValueDecl& value = program.declared(output);
    handed.layouts.emplace(word + value.role.to_string(), value.layout);
  }
  return handed;
}

/// Lets a value be read as another role: the result of a layer as the operand of the next one.
void read_as(Handed& handed, std::string_view role, const std::string& as) {
  if (const auto at = handed.layouts.find(std::string(role)); at != handed.layouts.end())
    handed.layouts.insert_or_assign(as, Layout(at->second));
}

std::string word_of(Phase phase) {
  return phase == Phase::prefix ? "prefix " : phase == Phase::prefill ? "prefill " : "decode ";
}

class HandedValues {
 public:
  HandedValues(const RunPlan& plan, Findings& findings) : plan_(plan), findings_(findings) {
    for (const Passes::Group& group : plan.passes.groups()) {
      const PassPlan pass = plan.passes.at(group.first);
      first_.try_emplace(pass.phase, pass.name);
    }
  }

  void check() {
    for (const auto& [phase, pass] : first_) check_phase(phase);
    for (std::int64_t l = 0; l < plan_.source_case.model.layers; ++l) {
      if (first_.contains(Phase::prefix)) check_prefix_caches(l);
      if (first_.contains(Phase::decode)) check_caches(l);
    }
  }

 private:
  /// The passes of a phase: what the embedding returns, the stream, a layer's caches.
  void check_phase(Phase phase) {
    const PhasePrograms& programs = plan_.programs(phase);
    const std::string word = word_of(phase);
    const Handed embedded = returned(programs.embed, word);
    Handed stream = embedded;
    read_as(stream, result_of(TextSection::embedding), "in");
    for (std::int64_t l = 0; l < plan_.source_case.model.layers; ++l) {
      const Program& layer = programs.layer_program(l);
      take(layer, phase, stream);
      take(layer, phase, returned(layer, word, "previous "), "previous ");
      stream = returned(layer, word);
      read_as(stream, result_of(TextSection::layer), "in");
      for (const auto& [role, layout] : embedded.layouts) stream.layouts.try_emplace(role, layout);
    }
    take(programs.head, phase, stream);
    take(programs.sample, phase, returned(programs.head, word));
  }

  /// A layer's caches, from the prefill to the decode. What crosses arrives as it is taken.
  void check_caches(std::int64_t l) {
    const Program& moved = plan_.hand_over_program(l);
    const Program& filled = plan_.prefill.layer_program(l);
    if (!plan_.crosses) take(moved, Phase::prefill, returned(filled, word_of(Phase::prefill)));
    take(plan_.decode.layer_program(l), Phase::decode, returned(moved, "", "previous "),
         "previous ");
  }

  /// Those of its prefixes, to the prefill and on to the decode.
  void check_prefix_caches(std::int64_t l) {
    const Program& moved = plan_.prefix_hand_over_program(l);
    Handed filled = returned(plan_.prefix.layer_program(l), word_of(Phase::prefix), "prefix ");
    for (auto& [role, layout] : filled.layouts) layout = as_prefixes(layout);
    take(moved, Phase::prefix, filled);
    take(plan_.prefill.layer_program(l), Phase::prefill, returned(moved, ""), "prefix ");
    if (!first_.contains(Phase::decode)) return;
    const Program& on = plan_.prefix_to_decode_program(l);
    if (!plan_.crosses) take(on, Phase::prefill, returned(moved, ""));
    take(plan_.decode.layer_program(l), Phase::decode, returned(on, ""), "prefix ");
  }

  /// Holds a reader's inputs against what it is handed; those whose roles begin with `needed` must
  /// be among it.
  void take(const Program& reader, Phase phase, const Handed& handed,
            std::string_view needed = "") {
    for (const ValueDecl& input : reader.inputs) {
      const std::string role = input.role.to_string();
      const auto at = handed.layouts.find(role);
      const bool missing =
          at == handed.layouts.end() && !needed.empty() && role.starts_with(needed);
      if (!missing && (at == handed.layouts.end() || at->second == input.layout)) continue;
      const std::string is = missing ? "nothing" : at->second.to_string();
      // Layers are alike, and so are phases of one strategy.
      if (!known_.emplace(reader.name, input.name, input.layout.to_string(), is).second) continue;
      Finding found{.detector = Detector::types, .label = "program_c7"};
      found.pass = first_.at(phase);
      found.step = Scope{found.pass, "", 0}.step(reader, input.name);
      found.op = "input";
      found.where = reader.where(input.line);
      found.message = fmt::format("{}{}: declared {}, but {} hands over {} as '{}'", found.where,
                                  found.step, input.layout.to_string(), handed.by, is, role);
      if (!findings_.ended()) findings_.add(std::move(found));
    }
  }

  const RunPlan& plan_;
  Findings& findings_;
  std::map<Phase, std::string> first_;  // the first pass of each phase
  std::set<std::tuple<std::string, std::string, std::string, std::string>> known_;
};

}  // namespace

void check_handed_values(const RunPlan& plan, Findings& findings) {
  HandedValues(plan, findings).check();
}

}  // namespace shardproof
