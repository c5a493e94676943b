#include "golden/corpus/model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <stdexcept>

#include "engine/program/program.h"
#include "engine/run/plan.h"
#include "golden/corpus/document.h"
#include "golden/corpus/not_equal.h"
#include "golden/verify/verify.h"
#include "weights/model/registry.h"
#include "weights/text/text_model.h"

namespace shardproof::corpus {
namespace {

using dump::Attributes;

/// The layers that the case's strategies lower to, stored as programs: the golden stays valid even
/// if strategies are lowered differently one day. A golden of a text has none: it keeps the text.
struct Layers {
  Program prefill, decode;
};

Layers layers_of(const Case& named) {
  const RunPlan plan = make_plan(named);
  return {plan.prefill.layer, plan.decode.layer};
}

Case with_layers(Case c, const Layers& layers) {
  c.numerics.loop = Loop::none;  // the programs contain the loops
  c.prefill = Strategy(layers.prefill);
  if (c.gen > 1) c.decode = Strategy(layers.decode);
  return c;
}

/// Returns the first complete layout of each checkpoint and weight, by id without its pass.
std::map<std::string, Layout> layouts_of(const PhasePrograms& programs, const ModelConfig& model) {
  std::map<std::string, Layout> layouts;
  const ModelRows* const rows = model.rows.get();
  const auto see = [&](const ValueDecl& value, std::int64_t layer) {
    const Role& role = value.role;
    if (role.last || value.layout.is_partial()) return;
    if (role.kind == Role::Kind::checkpoint)
      layouts.emplace(checkpoint_id("", layer, role.name, rows), value.layout);
    else if (role.kind == Role::Kind::weight)
      layouts.emplace(weight_id(layer, role.name, rows), value.layout);
  };
  const auto see_all = [&](const Program& program, std::int64_t layer) {
    for (const ValueDecl& input : program.inputs)
      if (input.role.kind == Role::Kind::weight) see(input, layer);
    for (const Op& op : program.ops)
      for (const ValueDecl& result : op.results)
        if (result.role.kind != Role::Kind::weight) see(result, layer);
  };
  see_all(programs.embed, 0);
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    see_all(programs.layer_program(layer), layer);
  see_all(programs.head, 0);
  see_all(programs.sample, 0);
  return layouts;
}

Attributes at_layout(const std::map<std::string, Layout>& layouts, const std::string& id,
                     std::size_t rank) {
  const auto at = layouts.find(id);
  if (at == layouts.end() || at->second.rank() != rank) return {};
  return {{"layout", at->second.to_string()}};
}

void put_weights(dump::Dump& golden, const Weights& weights,
                 const std::map<std::string, Layout>& layouts) {
  for (const WeightSpec& spec : weight_specs(weights.config(), weights.stored_type())) {
    const std::shared_ptr<const Tensor> weight = weights.at(spec.name);
    const Tensor& tensor = *weight;
    Attributes attributes = at_layout(layouts, spec.name, tensor.shape.size());
    if (spec.int8 && weights.stored_type() == NumberFormat::int8) {
      const std::vector<std::int8_t> codes(tensor.data.begin(), tensor.data.end());
      put(golden, spec.name, tensor.shape, std::span<const std::int8_t>(codes),
          std::move(attributes));
    } else {
      put(golden, spec.name, tensor.shape, std::span<const float>(tensor.data),
          std::move(attributes));
    }
  }
}

/// Throws NotEqual unless a sharded run has every value equal.
void require_equal(const TypedPlan& typed, OracleMemo& memo, const Weights* given) {
  VerifyOptions options;
  options.weights = given;
  options.also_field = true;
  const Judgement judged = verify_plan(typed, memo, options);
  if (judged.verdict != Verdict::equal)
    throw NotEqual(
        fmt::format("the run is {}: {}", to_string(judged.verdict), judged.explanation()));
}

dump::Dump made(const Case& named, const Layers& layers, const Weights* given, By by) {
  OracleMemo memo;
  const TextModel* const text = text_model(named.model);
  const TypedPlan typed = make_typed_plan(text != nullptr ? named : with_layers(named, layers));
  require_memory(typed);  // a few bytes of a golden can ask for any model
  if (by == By::model_and_run) require_equal(typed, memo, given);
  const RunPlan& plan = typed.plan;
  const Case& c = plan.source_case;
  const auto known = memo.get(plan, given);
  const oracle::Answer& answer = known->answer;

  dump::Dump golden = empty_golden(Kind::model);
  golden.attributes["case"] = print_case(named);
  golden.attributes["weights"] = given == nullptr ? "seed" : "file";
  if (text != nullptr) {
    golden.attributes["text_of_model"] = print_model_text(text->text());
  } else {
    golden.attributes["prefill_layer"] = print_program(layers.prefill);
    if (plan.passes.decodes()) golden.attributes["decode_layer"] = print_program(layers.decode);
  }
  const auto prefill = layouts_of(plan.prefill, c.model);
  const auto decode = layouts_of(plan.decode, c.model);
  const auto prefix = c.prefix.given() ? layouts_of(plan.prefix, c.model) : prefill;
  put_weights(golden, known->stored, prefill);
  std::size_t checkpoints = 0;
  for (std::int64_t i = 0; i < plan.passes.size(); ++i) {
    const PassPlan pass = plan.passes.at(i);
    const auto& layouts = pass.phase == Phase::prefix    ? prefix
                          : pass.phase == Phase::prefill ? prefill
                                                         : decode;
    const IntTensor& ids = answer.inputs.at(pass.name + ".ids");
    put(golden, pass.name + ".ids", ids.shape, std::span<const std::int32_t>(ids.data),
        {{"layout", "BL"}});
    const auto put_checkpoint = [&](std::int64_t layer, const CheckpointSpec& spec) {
      const std::string id = checkpoint_id(pass.name, layer, spec.name, c.model.rows.get());
      const std::string key = checkpoint_id("", layer, spec.name, c.model.rows.get());
      // Some passes lack some values.
      if (const auto token = answer.tokens.find(id); token != answer.tokens.end()) {
        put(golden, id, token->second.shape, std::span<const std::int32_t>(token->second.data),
            at_layout(layouts, key, token->second.shape.size()));
        ++checkpoints;
      } else if (const auto at = answer.checkpoints.find(id); at != answer.checkpoints.end()) {
        put(golden, id, at->second.shape, std::span<const float>(at->second.data),
            at_layout(layouts, key, at->second.shape.size()));
        ++checkpoints;
      }
    };
    // In the order of the run: values before the layers, the layers, values after them.
    const std::vector<CheckpointSpec> specs = checkpoint_specs(c.model);
    const auto first = std::find_if(specs.begin(), specs.end(),
                                    [](const CheckpointSpec& spec) { return spec.per_layer; });
    for (auto spec = specs.begin(); spec != first; ++spec) put_checkpoint(-1, *spec);
    for (std::int64_t layer = 0; layer < c.model.layers; ++layer)
      for (auto spec = first; spec != specs.end(); ++spec)
        if (spec->per_layer) put_checkpoint(layer, *spec);
    for (auto spec = first; spec != specs.end(); ++spec)
      if (!spec->per_layer) put_checkpoint(-1, *spec);
  }
  if (checkpoints != answer.checkpoints.size() + answer.tokens.size())
    throw std::logic_error("a golden without all values of its case");
  return golden;
}

void require_exact(const Case& named) {
  require_one_torus(named, "a golden");
  if (named.numerics.regime != Regime::exact)
    throw Error("golden_case", fmt::format("regime={}; a golden is of regime=exact",
                                           to_string(named.numerics.regime)));
}

const std::string& attribute(const dump::Dump& golden, std::string_view name) {
  const auto at = golden.attributes.find(name);
  if (at == golden.attributes.end())
    throw Error("golden_case", fmt::format("the golden has no attribute {}", name));
  return at->second;
}

}  // namespace

dump::Dump model_golden(const Case& named, const Weights* given) {
  require_exact(named);
  if (text_model(named.model) != nullptr) {
    require_keys_of_text(named);
    return made(named, {}, given, By::model_and_run);
  }
  if (has_program(named))
    throw Error("golden_case", "a golden is of strategies that ship, not of a layer program");
  if (named.prefix.given())
    throw Error("golden_case",
                fmt::format("prefix={}; a golden keeps the programs of its layers, which have one "
                            "cache; legal: no prefix",
                            named.prefix.to_string()));
  return made(named, layers_of(named), given, By::model_and_run);
}

Case case_of(const dump::Dump& golden) {
  const auto text = golden.attributes.find("text_of_model");
  if (text == golden.attributes.end()) return parse_case(attribute(golden, "case"));
  const ModelText model = parse_model_text(text->second, "text_of_model");
  return parse_case(attribute(golden, "case"), {}, &model);
}

Weights golden_weights(const dump::Dump& golden) {
  const Case c = case_of(golden);
  const NumberFormat kept =
      c.numerics.weights == NumberFormat::int8 ? NumberFormat::int8 : NumberFormat::f32;
  std::map<std::string, Tensor> tensors;
  for (const WeightSpec& spec : weight_specs(c.model, kept)) {
    const auto at = golden.values.find(spec.name);
    if (at == golden.values.end() || at->second.in_shards())
      throw Error("golden_weights", fmt::format("the golden has no whole {}", spec.name));
    const dump::StoredArray& stored = at->second.whole;
    if (stored.shape != spec.shape)
      throw Error("golden_weights",
                  fmt::format("{} is [{}], the model's is [{}]", spec.name,
                              fmt::join(stored.shape, ","), fmt::join(spec.shape, ",")));
    Tensor& tensor = tensors[spec.name] = Tensor(spec.shape);
    for (std::size_t i = 0; i < tensor.data.size(); ++i)
      tensor.data[i] = static_cast<float>(stored.at(i));
  }
  Weights weights(c.model, std::move(tensors), kept);
  validate(weights);
  return weights;
}

dump::Dump expected_model(const dump::Dump& golden, By by) {
  const Case named = case_of(golden);
  require_exact(named);
  Layers layers;
  if (text_model(named.model) == nullptr) {
    layers.prefill =
        parse_program(kLayerProgram, attribute(golden, "prefill_layer"), "prefill_layer");
    if (named.gen > 1)
      layers.decode =
          parse_program(kLayerProgram, attribute(golden, "decode_layer"), "decode_layer");
  } else if (golden.attributes.count("text_of_model") == 0) {
    throw Error("golden_case", "the golden of a model's text has no attribute text_of_model");
  }
  if (attribute(golden, "weights") != "file") return made(named, layers, nullptr, by);
  const Weights own = golden_weights(golden);
  return made(named, layers, &own, by);
}

}  // namespace shardproof::corpus
