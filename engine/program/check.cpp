#include <fmt/format.h>

#include <set>
#include <span>

#include "engine/program/loop_rules.h"
#include "engine/program/rethrow.h"
#include "engine/program/typing.h"
#include "weights/base/error.h"
#include "weights/model/registry.h"

namespace shardproof {
namespace {

/// Replaces a split head dim by the whole one.
std::string unsplit(std::string letters) {
  if (const auto at = letters.find("SR"); at != std::string::npos) letters.replace(at, 2, "H");
  return letters;
}

/// Returns true if two layouts differ at most by the order of axes.
bool same_sets(const Layout& a, const Layout& b) {
  if (a.letters() != b.letters() || !(a.partial() == b.partial())) return false;
  for (std::size_t i = 0; i < a.rank(); ++i)
    if (!(a.dims()[i].axes.sorted() == b.dims()[i].axes.sorted())) return false;
  return true;
}

std::string did_you_mean(const std::string& name, const std::map<std::string, Type>& made) {
  std::vector<std::string> names;
  for (const auto& [known, type] : made) names.push_back(known);
  const std::string near = nearest(name, names);
  return near.empty() ? "" : ", did you mean " + near + "?";
}

/// Types the values of one program.
class Typing {
 public:
  Typing(const Program& program, const std::map<std::string, Shape>& inputs, const Torus& torus,
         Findings& findings)
      : program_(program), inputs_(inputs), torus_(torus), findings_(findings) {}

  std::map<std::string, Type> run() {
    for (const ValueDecl& input : program_.inputs)
      if (!holds(input.name, "input", input.line, [&] { type_input(input); })) fail({&input, 1});
    for (const Op& op : program_.ops) {
      const std::string step = op.results.empty() ? op.to_string() : op.results[0].name;
      const Line line = op.results.empty() ? Line() : op.results[0].line;
      const std::string value = op.results.empty() ? "" : step;
      if (!holds(value, op.to_string(), line, [&] { type_step(op, step); })) fail(op.results);
    }
    for (const std::string& name : program_.outputs)
      holds(name, "output", program_.output_line, [&] {
        if (!types_.contains(name) && !unknown_.contains(name))
          throw Error("program_c1", fmt::format("output {} is never defined", name));
      });
    return std::move(types_);
  }

 private:
  /// Returns true if `rules` does not throw; reports an Error as a finding unless the run ended.
  template <class Rules>
  bool holds(const std::string& value, const std::string& op, const Line& line, Rules&& rules) {
    if (findings_.ended()) return false;
    try {
      rules();
      return true;
    } catch (const Error& error) {
      Finding found{.detector = Detector::types, .label = error.label()};
      found.step = value;
      found.op = op;
      found.where = program_.where(line);
      found.message = program_.source.file.empty()
                          ? error.message()
                          : fmt::format("{}{} (docs/typing.md)", found.where, error.message());
      findings_.add(std::move(found));
      return false;
    }
  }

  /// Marks the results as untyped: errors that follow from them are not reported.
  void fail(std::span<const ValueDecl> results) {
    for (const ValueDecl& result : results)
      if (!types_.contains(result.name)) unknown_.insert(result.name);
  }

  void define(const ValueDecl& result, Type type) {
    check_dims(result, program_.rows.get());
    if (!types_.emplace(result.name, std::move(type)).second)
      throw Error("program_c2", fmt::format("{} is defined twice", result.name));
  }

  void type_input(const ValueDecl& input) {
    const auto shape = inputs_.find(input.name);
    if (shape == inputs_.end() || shape->second.size() != input.layout.rank())
      throw Error("program_c1", fmt::format("input {} : {} is not supplied", input.name,
                                            input.layout.to_string()));
    try {
      local_shape(input.layout, shape->second, torus_);
    } catch (const Error& error) {
      rethrow_about(error, input.name + ": ");
    }
    define(input, {input.layout, shape->second, input.role.kind == Role::Kind::input});
  }

  void type_step(const Op& op, const std::string& step) {
    std::vector<Type> args;
    for (const std::string& name : op.args) {
      const auto made = types_.find(name);
      if (made == types_.end()) {
        if (unknown_.contains(name)) return fail(op.results);
        throw Error("program_c1", fmt::format("{}: {} is used before it is defined{}", step, name,
                                              did_you_mean(name, types_)));
      }
      args.push_back(made->second);
    }
    std::vector<Type> results;
    try {
      results = infer(op, args, torus_);
      for (const Type& type : results) local_shape(type.layout, type.shape, torus_);
      if (!op.results.empty()) require_loops(program_, op, results.at(0).layout);
    } catch (const Error& error) {
      rethrow_about(error, step + ": ");
    }
    const int count = op_row(op.kind).results;
    if (std::ssize(op.results) != count)
      throw Error("program_c4", fmt::format("{}: {} returns {} results, not {}", step,
                                            op.to_string(), count, op.results.size()));
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (!(op.results[i].layout == results[i].layout))
        throw Error("program_c3", fmt::format("{}: declared {}, but {} returns {}{}",
                                              op.results[i].name, op.results[i].layout.to_string(),
                                              op.to_string(), results[i].layout.to_string(),
                                              same_sets(op.results[i].layout, results[i].layout)
                                                  ? "; axes are written major to minor, and their "
                                                    "order says which chip has which block"
                                                  : ""));
      define(op.results[i], std::move(results[i]));
    }
  }

  const Program& program_;
  const std::map<std::string, Shape>& inputs_;
  const Torus& torus_;
  Findings& findings_;
  std::map<std::string, Type> types_;
  std::set<std::string> unknown_;  // values without a type because of a finding
};

}  // namespace

void check_dims(const ValueDecl& result, const ModelRows* rows) {
  const std::string want = dims_of(result.role, rows);
  if (want.empty())
    throw Error("program_c5",
                fmt::format("{}: there is no value '{}'", result.name, result.role.to_string()));
  if (unsplit(result.layout.letters()) != want)
    throw Error("program_c5",
                fmt::format("{} is {}, but {} has dims {}", result.name, result.layout.to_string(),
                            result.role.to_string(), want));
}

std::map<std::string, Type> check(const Program& program,
                                  const std::map<std::string, Shape>& inputs, const Torus& torus,
                                  Findings& findings) {
  return Typing(program, inputs, torus, findings).run();
}

std::map<std::string, Type> check(const Program& program,
                                  const std::map<std::string, Shape>& inputs, const Torus& torus) {
  Findings findings;
  std::map<std::string, Type> types = check(program, inputs, torus, findings);
  if (!findings.all().empty()) throw Error(findings.all()[0].label, findings.all()[0].message);
  return types;
}

}  // namespace shardproof
