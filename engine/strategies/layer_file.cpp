#include "engine/strategies/layer_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "engine/program/rethrow.h"
#include "engine/program/typing.h"
#include "weights/base/detail/text_file.h"
#include "weights/base/error.h"
#include "weights/model/registry.h"

namespace shardproof {
namespace {

constexpr std::string_view kDoc = " (docs/program.md)";

/// The checks of one layer; every Error names file and line.
class Layer {
 public:
  Layer(const Program& program, const ModelConfig& config, const Numerics& numerics)
      : program_(program), config_(config), numerics_(numerics) {}

  void require_inputs() const {
    std::map<std::string, int> given;
    for (const ValueDecl& input : program_.inputs) {
      require_input(input);
      ++given[input.role.to_string()];
    }
    for (const char* one : {"in", "previous k_cache", "previous v_cache"})
      if (given[one] != 1)
        refuse("layer_c1", {},
               fmt::format("{} input is '{}'; a layer takes one, as in 'input {}'",
                           given[one] == 0 ? "no" : "more than one", one,
                           std::string_view(one) == "in" ? "x : BLE_xzy is in"
                                                         : fmt::format("old : BMKQ is {}", one)));
  }

  void require_outputs() const {
    std::map<std::string, int> given;
    for (const std::string& name : program_.outputs) {
      const ValueDecl& result = declared(name);
      ++given[result.role.to_string()];
      if (result.layout.is_partial())
        refuse("layer_c2", program_.output_line,
               fmt::format("{} is {}; the outputs of a layer must be complete", name,
                           result.layout.to_string()));
    }
    for (const char* one : {"out", "k_cache", "v_cache"})
      if (given[one] != 1)
        refuse("layer_c2", program_.output_line,
               fmt::format("{} output is '{}'; a layer ends with 'output X, KC, VC', which are its "
                           "out, k_cache and v_cache",
                           given[one] == 0 ? "no" : "more than one", one));
    if (!program_.ops.empty() &&
        program_.output_line.number < program_.ops.back().results[0].line.number)
      refuse("layer_c2", program_.output_line, "output must follow the last step");
    if (program_.outputs.size() != 3)
      refuse("layer_c2", program_.output_line,
             "the outputs of a layer are out, k_cache and v_cache only");
  }

  void require_caches() const {
    const ValueDecl* caches[] = {input("previous k_cache"), input("previous v_cache")};
    if (!(caches[0]->layout == caches[1]->layout))
      refuse("layer_c3", caches[1]->line,
             fmt::format("{} is supplied as {}, but {} as {}; both caches must have one layout",
                         caches[1]->name, caches[1]->layout.to_string(), caches[0]->name,
                         caches[0]->layout.to_string()));
  }

  /// Checks the dims of inputs and outputs: paths to other layouts rely on them.
  void require_dims() const {
    const auto require = [&](const ValueDecl& result) {
      try {
        check_dims(result);
      } catch (const Error& error) {
        rethrow_about(error, program_.where(result.line), kDoc);
      }
    };
    for (const ValueDecl& input : program_.inputs) require(input);
    for (const std::string& name : program_.outputs) require(declared(name));
  }

  void require_roles() const {
    for (const Op& op : program_.ops)
      for (const ValueDecl& result : op.results)
        if (!has(result.role))
          refuse("layer_c5", result.line,
                 fmt::format("{}: a layer of {} has no '{}'", result.name, print_model(config_),
                             result.role.to_string()));
  }

  void require_storage() const {
    const NumberFormat act = numerics_.act;
    const Op* first = nullptr;
    for (const Op& op : program_.ops)
      if (op.kind == OpKind::store && first == nullptr) first = &op;
    if (act == NumberFormat::bf16 && first == nullptr)
      refuse("layer_c4", {},
             "act=bf16 stores every activation by a line like 'xn_st : BLE_x = store(xn) is norm', "
             "and this program has no such line: it is written for act=f32");
    if (act == NumberFormat::f32 && first != nullptr)
      refuse("layer_c4", first->results[0].line,
             "a store line rounds to bf16, so this program is written for act=bf16; the case says "
             "act=f32");
  }

  void require_scales() const {
    const bool scales = std::any_of(program_.ops.begin(), program_.ops.end(),
                                    [](const Op& op) { return op.kind == OpKind::scale; });
    if (numerics_.weights == NumberFormat::int8 && !scales)
      refuse(
          "layer_c4", {},
          "weights=int8 multiplies every projection by its scale, by a line like 'hs : BLF_zyx = "
          "scale(hr, gs) is gate', and this program has no such line: it is written for "
          "weights=f32 or bf16");
  }

 private:
  /// Returns true if a layer of the model has a value of this name.
  bool has(const Role& m) const {
    if (m.kind == Role::Kind::weight) return has_weight(config_, m.name, numerics_.weights);
    const ValueRow* const row = value_row(m);
    if (row == nullptr) return false;
    if (m.kind == Role::Kind::previous) return row->cache;
    if (m.kind == Role::Kind::prefix) return false;  // a layer in a file has one cache
    if (m.kind == Role::Kind::input) return row->of_layer_input;
    if (m.kind == Role::Kind::scaled && numerics_.weights != NumberFormat::int8) return false;
    return row->kind == ValueKind::constant || (row->per_layer && row->in_model(config_));
  }

  /// Returns true if the value is an input of a layer; weights are not considered.
  static bool is_layer_input(const Role& m) {
    const ValueRow* const row = value_row(m);
    const bool made =
        m.kind == Role::Kind::raw || m.kind == Role::Kind::scaled || m.kind == Role::Kind::unstored;
    return row != nullptr && row->of_layer_input && !m.last && !made &&
           (m.kind == Role::Kind::previous) == row->cache;
  }

  /// The weights that a layer may take.
  std::vector<std::string> weights() const {
    std::vector<std::string> all;
    for (const WeightRow& row : all_weights())
      if (has_weight(config_, row.name, numerics_.weights)) all.emplace_back(row.name);
    return all;
  }

  [[noreturn]] void refuse(std::string_view label, const Line& line, std::string_view why) const {
    throw Error(label, fmt::format("{}{}{}", program_.where(line), why, kDoc));
  }

  const ValueDecl& declared(const std::string& name) const {
    for (const ValueDecl& input : program_.inputs)
      if (input.name == name) return input;
    for (const Op& op : program_.ops)
      for (const ValueDecl& result : op.results)
        if (result.name == name) return result;
    refuse("program_c1", program_.output_line, fmt::format("output {} is never defined", name));
  }

  const ValueDecl* input(std::string_view role) const {
    for (const ValueDecl& input : program_.inputs)
      if (input.role.to_string() == role) return &input;
    return nullptr;
  }

  void require_input(const ValueDecl& input) const {
    const Role& m = input.role;
    const auto refuse_it = [&](const std::string& why) {
      refuse("layer_c1", input.line, fmt::format("{}: {}", input.name, why));
    };
    if (!program_.ops.empty() && input.line.number > program_.ops[0].results[0].line.number)
      refuse_it("inputs must precede the first step");
    if (input.layout.is_partial())
      refuse_it(fmt::format("{}; inputs must be complete", input.layout.to_string()));
    const std::string text = m.to_string();
    if (m.kind == Role::Kind::weight && !m.last) return require_weight(input);
    if (m.kind == Role::Kind::input && is_layer_input(m)) {
      if (input.layout.to_string() != "BL")
        refuse_it(fmt::format(
            "{}; positions are supplied unsharded, as BL: get a part by slice(pos, B, AXES)",
            input.layout.to_string()));
      return;
    }
    if (!is_layer_input(m) && m.kind != Role::Kind::constant)
      refuse_it(fmt::format(
          "a layer has no input '{}'; legal: in, weight NAME, input pos, constant ones, "
          "previous k_cache, previous v_cache",
          text));
  }

  void require_weight(const ValueDecl& input) const {
    if (has(input.role)) return;
    if (has_weight(config_, input.role.name, NumberFormat::int8))
      refuse("layer_c1", input.line,
             fmt::format("{}: '{}' is a weight of weights=int8 alone; the case says weights={}",
                         input.name, input.role.name, shardproof::to_string(numerics_.weights)));
    const std::vector<std::string> legal = weights();
    const std::string near = nearest(input.role.name, legal);
    refuse("layer_c1", input.line,
           fmt::format("{}: the model {} has no weight '{}'{}; it has {}", input.name,
                       print_model(config_), input.role.name,
                       near.empty() ? "" : ", did you mean " + near + "?", fmt::join(legal, " ")));
  }

  const Program& program_;
  const ModelConfig& config_;
  const Numerics& numerics_;
};

}  // namespace

Program load_layer(const std::string& path) {
  Program program = parse_program(
      kLayerProgram,
      read_text(path, {"program_f1", "program_f3", std::size_t{1} << 20, "layer program", kDoc}),
      path);
  if (program.inputs.empty() && program.ops.empty() && program.outputs.empty())
    throw Error("program_f2", fmt::format("{} holds no statement; shardproof explain ws2d:batch "
                                          "--text prints a program to begin with{}",
                                          path, kDoc));
  return program;
}

void require_layer(const Program& program, const ModelConfig& config, const Numerics& numerics) {
  const Layer layer(program, config, numerics);
  layer.require_inputs();
  layer.require_outputs();
  layer.require_dims();
  layer.require_caches();
  layer.require_storage();
  layer.require_scales();
  layer.require_roles();
}

}  // namespace shardproof
