#include <fmt/format.h>

#include "engine/program/typing.h"
#include "weights/error.h"
#include "weights/registry.h"

namespace shardproof {
namespace {

/// The dim letters of what a value is said to be; empty if nothing is known of it.
std::string letters_of(const Meaning& meaning) {
  // Between them these two models have every weight and checkpoint there is.
  ModelConfig parallel;
  ModelConfig serial;
  serial.block = Block::serial;
  serial.norm = Norm::layernorm;
  serial.bias = Bias::all;
  serial.tied = false;
  std::string letters;
  switch (meaning.kind) {
    case Meaning::Kind::weight:
      for (const WeightSpec& spec : weight_specs(serial))
        if (spec.name.substr(spec.name.find('.') + 1) == meaning.name) letters = spec.dims;
      break;
    case Meaning::Kind::input:
      if (meaning.name == "pos" || meaning.name == "ids") letters = "BL";
      break;
    case Meaning::Kind::constant:
      if (meaning.name == "ones") letters = "E";
      break;
    case Meaning::Kind::stat:
      for (const StatSpec& spec : stat_specs())
        if (spec.name == meaning.name) letters = spec.dims;
      break;
    default:
      if (meaning.name == "in") letters = "BLE";
      for (const ModelConfig& config : {parallel, serial})
        for (const CheckpointSpec& spec : checkpoint_specs(config))
          if (spec.name == meaning.name) letters = spec.dims;
  }
  if (meaning.last)
    if (const auto at = letters.find('L'); at != std::string::npos) letters.erase(at, 1);
  return letters;
}

/// A split head dim stands for the whole one.
std::string unsplit(std::string letters) {
  if (const auto at = letters.find("SR"); at != std::string::npos) letters.replace(at, 2, "H");
  return letters;
}

void check_meaning(const Result& result) {
  const std::string want = letters_of(result.meaning);
  if (want.empty())
    throw Error("program_c5",
                fmt::format("{}: nothing is called '{}'", result.name, result.meaning.to_string()));
  if (unsplit(result.layout.letters()) != want)
    throw Error("program_c5",
                fmt::format("{} is {}, but {} has dims {}", result.name, result.layout.to_string(),
                            result.meaning.to_string(), want));
}

/// What infer throws, with the step's name before the message.
[[noreturn]] void rethrow_naming(const Error& error, const std::string& step) {
  const std::string message = std::string(error.what()).substr(error.label().size() + 2);
  throw Error(error.label(), step + ": " + message);
}

}  // namespace

std::map<std::string, Type> check(const Program& program,
                                  const std::map<std::string, Shape>& inputs, const Torus& torus) {
  std::map<std::string, Type> types;
  const auto define = [&](const Result& result, Type type) {
    check_meaning(result);
    if (!types.emplace(result.name, std::move(type)).second)
      throw Error("program_c2", fmt::format("{} is made twice", result.name));
  };
  for (const Result& input : program.inputs) {
    const auto shape = inputs.find(input.name);
    if (shape == inputs.end() || shape->second.size() != input.layout.rank())
      throw Error("program_c1", fmt::format("input {} : {} is not supplied", input.name,
                                            input.layout.to_string()));
    try {
      local_shape(input.layout, shape->second, torus);
    } catch (const Error& error) {
      rethrow_naming(error, input.name);
    }
    define(input, {input.layout, shape->second, input.meaning.kind == Meaning::Kind::input});
  }
  for (const Op& op : program.ops) {
    const std::string step = op.results.empty() ? op.to_string() : op.results[0].name;
    std::vector<Type> args;
    for (const std::string& name : op.args) {
      const auto at = types.find(name);
      if (at == types.end())
        throw Error("program_c1", fmt::format("{}: {} is used before it is made", step, name));
      args.push_back(at->second);
    }
    std::vector<Type> results;
    try {
      results = infer(op, args, torus);
      for (const Type& type : results) local_shape(type.layout, type.shape, torus);
    } catch (const Error& error) {
      rethrow_naming(error, step);
    }
    if (results.size() != op.results.size())
      throw Error("program_c4", fmt::format("{}: {} yields {} results, not {}", step,
                                            op.to_string(), results.size(), op.results.size()));
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (!(op.results[i].layout == results[i].layout))
        throw Error("program_c3", fmt::format("{}: declared {}, but {} yields {}",
                                              op.results[i].name, op.results[i].layout.to_string(),
                                              op.to_string(), results[i].layout.to_string()));
      define(op.results[i], std::move(results[i]));
    }
  }
  for (const std::string& name : program.outputs)
    if (!types.contains(name))
      throw Error("program_c1", fmt::format("output {} is never made", name));
  return types;
}

}  // namespace shardproof
