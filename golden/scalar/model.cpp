#include "golden/scalar/model.h"

#include <fmt/format.h>

#include <iterator>
#include <set>

#include "golden/compare/case_padding.h"
#include "weights/base/error.h"
#include "weights/model/passes.h"

namespace shardproof {

using scalar::Value;

namespace {

using Shared = ScalarModel::Shared;

Shared of_ints(const Shape& shape, std::vector<std::int32_t> ints) {
  return std::make_shared<const Value>(Value{{}, shape, {}, std::move(ints)});
}

/// Returns the value in another layout.
Shared in_layout(const Layout& layout, Value value) {
  value.layout = layout;
  return std::make_shared<const Value>(std::move(value));
}
Shared in_layout(const Layout& layout, const Shared& value) {
  return value->layout == layout ? value : in_layout(layout, *value);
}

/// Returns true if the value is a sum S of a W matrix (docs/spec.md section 1.2), to which acc
/// applies. The lookup of embed adds nothing up, the table of logits is not a W matrix, and
/// statistics and attention have no weights.
bool multiplies_weights(const Role& role, const ModelRows* rows) {
  if (rows != nullptr) {
    const ValueRow* const row = value_row(role.name, rows);
    return row != nullptr && row->acc;
  }
  static const std::set<std::string> all{"q",  "k",         "v",        "gate",
                                         "up", "block_out", "attn_out", "ffn_out"};
  return all.contains(role.name);
}

/// Returns true if a value's partial sums travel in the type of wire: those, and the lookup.
bool travels_rounded(const Role& role, const ModelRows* rows) {
  if (rows == nullptr) return role.name == "embed" || multiplies_weights(role, rows);
  const ValueRow* const row = value_row(role.name, rows);
  return row != nullptr && row->wire_rounds;
}

/// Returns the index of each row's token in the pass: the number of tokens from earlier passes.
Draws draws_of(const RunPlan& plan, const PassPlan& pass) {
  const bool base2 = plan.source_case.model.softmax == Softmax::base2;
  Draws draws{
      plan.source_case.sampling, plan.source_case.seed, {}, base2 ? 0.6931471805599453 : 1.0};
  if (draws.sampling.sample == Sample::greedy) return draws;
  for (std::size_t b = 0; b < static_cast<std::size_t>(pass.batch()); ++b)
    draws.rows.push_back({plan.row_id(b), 0});
  for (std::int64_t i = 0; plan.passes.at(i).name != pass.name; ++i) {
    const PassPlan before = plan.passes.at(i);
    if (!before.sample) continue;  // prefix passes have fewer rows
    auto row = draws.rows.begin();
    for (const PassRows& group : before.rows)
      for (std::int64_t n = 0; n < group.rows; ++n, ++row)
        row->token += before.samples(group) ? 1 : 0;
  }
  return draws;
}

}  // namespace

scalar::Setting setting_of(const RunPlan& plan, const PassPlan& pass, const Op& op) {
  const Numerics& numerics = plan.source_case.numerics;
  const Role& role = op.results.at(0).role;
  const ModelRows* const rows = plan.source_case.model.rows.get();
  return {.config = plan.source_case.model,
          .torus = plan.programs(pass.phase).torus,
          .schedule = numerics.schedule,
          .rows = pass.rows,
          .act_bf16 = numerics.act == NumberFormat::bf16,
          .prefix = pass.prefix.length,
          .acc_bf16 = numerics.acc == NumberFormat::bf16 && multiplies_weights(role, rows),
          .wire_bf16 = numerics.wire == NumberFormat::bf16 && travels_rounded(role, rows),
          .placed_V = dim_padding(plan.source_case).placed('V', plan.source_case.model.V),
          .draws = role.kind == Role::Kind::stat ? draws_of(plan, pass) : Draws()};
}

ScalarModel::ScalarModel(const RunPlan& plan, const Weights& weights, const IntTensor& prompt)
    : plan_(plan), padding_(dim_padding(plan.source_case)), weights_(weights), prompt_(prompt) {
  tokens_.resize(static_cast<std::size_t>(prompt.shape[0]));
  empty_caches(plan.passes.prefix().given() ? plan.passes.prefix().rows : prompt.shape[0]);
  prefixes_.resize(caches_.size());
}

void ScalarModel::empty_caches(std::int64_t rows) {
  const ModelConfig& c = plan_.source_case.model;
  caches_.clear();
  for (std::int64_t l = 0; l < c.layers; ++l) {
    Known& empty = caches_.emplace_back();
    for (const auto& [name, layout] : plan_.prefill.caches(l)) {
      const Shape shape =
          c.rows != nullptr
              ? padding_.placed(layout.letters(), shape_of(layout.letters(), c, {.B = rows}))
              : Shape{rows, 0, padding_.placed('K', c.K), c.Q};
      empty[name] = std::make_shared<const Value>(Value{{}, shape, {{}}, {}});
    }
  }
}

std::string ScalarModel::key(const Program& program, int layer, const std::string& value) {
  return program.of_layer() ? fmt::format("{}{}.{}", program.name, layer, value)
                            : fmt::format("{}.{}", program.name, value);
}

Shared ScalarModel::weight(int layer, const ValueDecl& declared) {
  const std::string& name = declared.role.name;
  const ModelRows* const rows = plan_.source_case.model.rows.get();
  const bool constant = declared.role.kind == Role::Kind::constant;
  Shared& known = stored_[fmt::format("{} {}", constant ? name : weight_id(layer, name, rows),
                                      declared.layout.to_string())];
  if (known != nullptr) return known;
  if (constant) {
    Tensor ones = constant_tensor(plan_.source_case.model);
    return known = in_layout(declared.layout, Value{{}, ones.shape, {std::move(ones.data)}, {}});
  }
  const std::shared_ptr<const Tensor> weight = weights_.at(weight_id(layer, name, rows));
  const Tensor& w = *weight;
  if (padding_.none()) return known = in_layout(declared.layout, Value{{}, w.shape, {w.data}, {}});
  const WeightRow& row = *weight_row(name, rows);
  const Shape shape = padding_.placed(row.dims, w.shape);
  const float rest = row.kind == WeightKind::scale ? 1.0F : 0.0F;
  return known = in_layout(declared.layout,
                           Value{{}, shape, {with_padding(w.data, w.shape, shape, rest)}, {}});
}

ScalarModel::Known ScalarModel::run(const Program& program, int layer, const Known& given) {
  Known values;  // by name
  const auto made = [&](const ValueDecl& declared, Shared value, bool input) {
    values_[key(program, layer, declared.name)] = {value, declared.role,
                                                   program.of_layer() ? layer : -1, input};
    values[declared.name] = std::move(value);
  };
  for (const ValueDecl& input : program.inputs) {
    const Role& m = input.role;
    const bool of_model = m.kind == Role::Kind::weight || m.kind == Role::Kind::constant;
    made(input, of_model ? weight(layer, input) : in_layout(input.layout, given.at(m.to_string())),
         true);
  }
  for (const Op& op : program.ops) {
    std::vector<const Value*> args;
    for (const std::string& name : op.args) args.push_back(values.at(name).get());
    scalar::Setting setting = setting_of(plan_, pass_, op);
    setting.threads = threads_;
    std::vector<Value> results = scalar::apply(op, args, setting);
    for (std::size_t r = 0; r < results.size(); ++r) {
      const ValueDecl& declared = op.results.at(r);
      made(declared, in_layout(declared.layout, std::move(results[r])), false);
    }
  }
  Known outputs;
  for (const std::string& name : program.outputs)
    outputs[program.declared(name).role.to_string()] = values.at(name);
  return outputs;
}

void ScalarModel::run_pass(const Shared& ids) {
  const PhasePrograms& programs = plan_.programs(pass_.phase);
  std::vector<std::int32_t> all_positions;
  for (const PassRows& group : pass_.rows)
    for (std::int64_t n = 0; n < group.rows * pass_.L; ++n)
      all_positions.push_back(static_cast<std::int32_t>(group.start + n % pass_.L));
  const Shared positions = of_ints(ids->shape, std::move(all_positions));
  Known of_pass{{"input ids", ids}, {"input pos", positions}};
  if (plan_.source_case.model.rows != nullptr) {
    const std::int64_t M = pass_.prefix.length + pass_.cached + pass_.L;
    std::vector<std::int32_t> slots;
    for (std::int64_t m = 0; m < M; ++m) slots.push_back(static_cast<std::int32_t>(m));
    of_pass["input slot"] = of_ints({M}, std::move(slots));
  }
  of_pass.merge(run(programs.embed, 0, of_pass));
  Shared x = of_pass.at("embed");
  const auto layers = static_cast<int>(plan_.source_case.model.layers);
  for (int l = 0; l < layers; ++l) {
    Known& caches = caches_[static_cast<std::size_t>(l)];
    Known given = prefixes_[static_cast<std::size_t>(l)];
    given.insert(of_pass.begin(), of_pass.end());
    given["in"] = x;
    for (const auto& [name, cache] : caches) given["previous " + name] = cache;
    Known out = run(programs.layer_program(l), l, given);
    x = out.at("out");
    for (auto& [name, cache] : caches) cache = out.at(name);
  }
  of_pass["out"] = x;
  const Known logits = run(programs.head, layers - 1, of_pass);
  sampled_.clear();
  if (!pass_.sample) return;
  sampled_ = run(programs.sample, layers - 1, logits).at("token")->ints;
  std::size_t b = 0;
  for (const PassRows& group : pass_.rows)
    for (std::int64_t n = 0; n < group.rows; ++n, ++b)
      if (pass_.samples(group)) tokens_[b].push_back(sampled_[b]);
}

bool ScalarModel::next_pass() {
  values_.clear();
  if (next_ == plan_.passes.size()) return false;
  pass_ = plan_.passes.at(next_++);
  const std::int64_t width = prompt_.shape[1];
  std::vector<std::int32_t> ids;
  if (pass_.phase == Phase::decode) {
    for (const std::vector<std::int32_t>& of_row : tokens_) ids.push_back(of_row.back());
  } else {
    const bool of_prefixes = pass_.phase == Phase::prefix;
    for (const PassRows& group : pass_.rows)
      for (std::int64_t n = 0; n < group.rows; ++n) {
        std::int64_t row = std::ssize(ids) / pass_.L;
        if (of_prefixes) row = plan_.passes.prefix().first_row(row, prompt_.shape[0]);
        for (std::int64_t i = 0; i < pass_.L; ++i)
          ids.push_back(i < group.tokens
                            ? prompt_.data[static_cast<std::size_t>(row * width + group.start + i)]
                            : 0);
      }
  }
  run_pass(of_ints({pass_.batch(), pass_.L}, std::move(ids)));
  if (next_ < plan_.passes.size()) hand_over(plan_.passes.at(next_).phase);
  return true;
}

void ScalarModel::hand_over(Phase next) {
  const auto through = [&](auto&& program_of, std::vector<Known>& caches, bool crossed = false) {
    for (std::size_t l = 0; l < caches.size(); ++l) {
      const Program& program = program_of(static_cast<std::int64_t>(l));
      // Values that crossed to another torus are shown there even if no op follows.
      if (!program.ops.empty() || crossed) caches[l] = run(program, static_cast<int>(l), caches[l]);
    }
  };
  const auto of_prefixes = [&](std::int64_t l) -> const Program& {
    return plan_.prefix_to_decode_program(l);
  };
  if (pass_.phase == Phase::prefix && next != Phase::prefix) {
    for (std::size_t l = 0; l < caches_.size(); ++l)
      for (const auto& [name, cache] : caches_[l]) prefixes_[l]["prefix " + name] = cache;
    through([&](std::int64_t l) -> const Program& { return plan_.prefix_hand_over_program(l); },
            prefixes_);
    empty_caches(prompt_.shape[0]);
  }
  if (pass_.phase == Phase::prefill && next == Phase::decode) {
    through([&](std::int64_t l) -> const Program& { return plan_.hand_over_program(l); }, caches_,
            plan_.crosses);
    if (plan_.passes.prefix().given()) through(of_prefixes, prefixes_, plan_.crosses);
  }
}

}  // namespace shardproof
