#include "golden/trace/write/detail/file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <stdexcept>
#include <utility>

#include "golden/compare/assembled.h"
#include "golden/compare/case_padding.h"
#include "golden/judge/expected.h"
#include "golden/trace/write/detail/arithmetic.h"
#include "golden/trace/write/detail/copies.h"
#include "golden/trace/write/field_words.h"
#include "weights/base/detail/words.h"
#include "weights/base/error.h"
#include "weights/base/memory.h"
#include "weights/model/registry.h"
#include "weights/text/text_model.h"

namespace shardproof {
namespace {

constexpr std::string_view kMap =
    "A layout is dim letters, each with a subscript: torus axes, major to minor. Over the axes of "
    "its subscript a dim is cut into equal contiguous blocks: of F_zyx on XxYxZ chips, chip "
    "(x,y,z) "
    "holds block (z*Y+y)*X+x of X*Y*Z. Chips along an axis that a layout does not name hold "
    "replicas; along the axes of partialsum they hold summands. A value that stands whole is held "
    "so by the chips, bit for bit.";

/// Returns the dtype attribute. f32 arrays count as bf16 if st() has rounded them, as a stored
/// checkpoint in any layout.
std::string dtype_of(const ValueDecl& declared, const Sharded& value, const Numerics& numerics,
                     const ModelConfig& config) {
  if (value.holds_partial()) return "f64 partial";
  if (value.stores_int32()) return "int32";
  if (declared.layout.is_partial()) return "f32 partial";
  const bool kept = declared.role.kind == Role::Kind::checkpoint ||
                    declared.role.kind == Role::Kind::previous ||
                    declared.role.kind == Role::Kind::prefix;
  return kept && wire_type(declared, numerics, config) == NumberFormat::bf16 ? "bf16" : "f32";
}

/// Writes the user's layer programs, if the run has any.
void put_programs(const Hdf5Writer::Object& root, const Case& c) {
  const Program* prefill = c.prefill.program();
  const Program* decode = c.decode.program();
  if (prefill == decode) {
    if (prefill != nullptr) root.put_text("program", print_program(*prefill));
    return;
  }
  if (prefill != nullptr) root.put_text("prefill_program", print_program(*prefill));
  if (decode != nullptr) root.put_text("decode_program", print_program(*decode));
}

bool is_own_table(const Strategy& strategy) {
  return strategy.program() == nullptr && !strategy.ships();
}

/// Writes the user's tables of layouts, if the case names any.
void put_tables(const Hdf5Writer::Object& root, const Case& c) {
  std::string text;
  for (const Strategy* strategy : {&c.prefill, &c.decode})
    if (is_own_table(*strategy) && (strategy == &c.prefill || !(c.decode == c.prefill)))
      text += print_layouts(strategy->table());
  if (!text.empty()) root.put_text("layouts", text);
}

/// Returns the case without its user's own tables: the right values do not depend on them.
std::string case_of_all(const Case& c) {
  const std::string printed = print_case(c);
  std::string text;
  for (const std::string_view word : split(printed, " ")) {
    if (word.starts_with("prefill=") && is_own_table(c.prefill)) continue;
    if (word.starts_with("decode=") && is_own_table(c.decode)) continue;
    text += fmt::format("{}{}", text.empty() ? "" : " ", word);
  }
  return text;
}

}  // namespace

TraceFile::TraceFile(const RunPlan& plan, std::filesystem::path target, bool weights_given)
    : numerics_(plan.source_case.numerics),
      config_(plan.source_case.model),
      padding_(dim_padding(plan.source_case)),
      file_(std::move(target), "trace_c1") {
  const Case& c = plan.source_case;
  for (std::int64_t i = 0; i < plan.passes.size(); ++i)
    if (const PassPlan pass = plan.passes.at(i); pass.phase == Phase::prefix)
      of_prefixes_.insert(pass.name);
    else
      break;
  const Hdf5Writer::Object root = file_.root();
  root.put_text("format", "shardproof trace");
  root.put("version", kTraceFormat);
  root.put_text("case", case_of_all(c));
  root.put_text("arithmetic", claimed_arithmetic(numerics_));
  if (numerics_.regime == Regime::f32 && numerics_.acc == NumberFormat::bf16)
    root.put_text("sums", "bf16");
  if (const int wire = wire_roundings(plan); wire > 0) root.put("wire", wire);
  root.put_text("weights", weights_given ? "file" : "seed");
  if (!plan.row_ids.empty()) root.put_text("rows", fmt::format("{}", fmt::join(plan.row_ids, ",")));
  root.put_text("model", print_model(c.model));
  if (const TextModel* const model = text_model(c.model))
    root.put_text("text_of_model", print_model_text(model->text()));
  root.put_text("torus", c.torus.to_string());
  root.put_text("regime", to_string(numerics_.regime));
  root.put_text("act", to_string(numerics_.act));
  if (c.prefill.program() == nullptr) root.put_text("prefill", c.prefill.to_string());
  if (c.decode.program() == nullptr) root.put_text("decode", c.decode.to_string());
  root.put_text("map", kMap);
  put_programs(root, c);
  put_tables(root, c);
  const Hdf5Writer::Object chips = file_.group(root, "chips");
  for (int chip = 0; chip < c.torus.chips(); ++chip) {
    const std::array<int, 3> at = judged_coordinates(c.torus, chip);
    chips_.push_back(file_.group(chips, fmt::format("{}_{}_{}", at[0], at[1], at[2])));
    for (std::size_t axis = 0; axis < 3; ++axis)
      chips_.back().put(std::array{"x", "y", "z"}[axis], at[axis]);
  }
}

void TraceFile::add(const Scope& scope, const Program& program, const Op* op,
                    const ValueDecl& declared, const Sharded& value) {
  if (op == nullptr) {
    input(scope, program, declared, value);
    return;
  }
  const Role& role = declared.role;
  const std::string id = scope.step(program, declared.name);
  std::string like;
  if (op_row(op->kind).only_moves) {
    like = program.declared(op->args[0]).role.kind == Role::Kind::weight
               ? weight_id(scope.layer, program.declared(op->args[0]).role.name, scope.rows)
               : scope.step(program, op->args[0]);
    if (const auto at = same_as_.find(like); at != same_as_.end()) like = at->second;
  }
  put({id, declared.layout, role.to_string(), op->to_string(),
       dtype_of(declared, value, numerics_, config_), value, like});
  steps_.insert_or_assign(id, Step{scope, declared, op->to_string(), value.shape(), order_ - 1});
  const ValueRow* const row = value_row(role, scope.rows);
  if (role.kind == Role::Kind::checkpoint && row != nullptr && row->cache) {
    const std::string stored = same_as_.contains(id) ? same_as_[id] : id;
    caches_[checkpoint_id("", scope.layer, role.name, scope.rows)] = stored;
    if (of_prefixes_.contains(scope.pass))
      prefixes_[checkpoint_id("", scope.layer, role.name, scope.rows)] = stored;
  }
}

/// Writes the inputs of a program that no program computes: weights once per layout, ids, and the
/// caches of the preceding pass and of the prefixes.
void TraceFile::input(const Scope& scope, const Program& program, const ValueDecl& declared,
                      const Sharded& value) {
  const Role& role = declared.role;
  const std::string step = scope.step(program, declared.name);
  const std::string dtype = dtype_of(declared, value, numerics_, config_);
  if (role.kind == Role::Kind::weight) {
    const std::string id = weight_id(scope.layer, role.name, scope.rows);
    const std::string resident =
        fmt::format("{} : {} on {}", id, value.layout().to_string(), value.torus().to_string());
    if (!resident_.insert(resident).second) return;
    if (resident_.insert(id).second)
      put({id, value.layout(), "", "input", dtype, value, ""});
    else  // another layout: of another phase, or the embedding table as the head has it
      put({step, value.layout(), role.to_string(), "input", dtype, value, id});
  } else if (role.kind == Role::Kind::input && role.name == "ids") {
    put({scope.pass + ".ids", value.layout(), "", "input", dtype, value, ""});
  } else if ((role.kind == Role::Kind::previous && element_count(value.shape()) > 0) ||
             role.kind == Role::Kind::prefix) {
    const auto& caches = role.kind == Role::Kind::prefix ? prefixes_ : caches_;
    const auto made = caches.find(checkpoint_id("", scope.layer, role.name, scope.rows));
    put({step, value.layout(), role.to_string(), "input", dtype, value,
         made == caches.end() ? "" : made->second});
  }
}

void TraceFile::expect(const std::string& id, const OracleMemo::Known& known) {
  const auto at = steps_.find(id);
  if (at == steps_.end()) return;
  const Step& step = at->second;
  Expected expected;
  try {
    expected = expected_value(known.answer, known.stored, step.scope, step.declared.role,
                              step.shape, padding_);
  } catch (const std::out_of_range&) {
    return;
  } catch (const Error&) {  // not a value of the model
    return;
  }
  const Hdf5Writer::Object group = file_.group(file_.root(), "expected");
  Hdf5Writer::Object object = [&] {
    if (expected.integer) {
      std::vector<std::int32_t> numbers;
      for (const std::uint32_t bits : expected.bits.copy())
        numbers.push_back(static_cast<std::int32_t>(bits));
      return file_.dataset(group, id, expected.shape, numbers);
    }
    std::vector<float> numbers;
    for (const std::uint32_t bits : expected.bits.copy())
      numbers.push_back(std::bit_cast<float>(bits));
    return file_.dataset(group, id, expected.shape, numbers);
  }();
  object.put_text("layout", step.declared.layout.with_partial(Axes()).to_string());
  object.put_text("dtype", expected.integer ? "int32" : "f32");
  object.put_text("meaning", step.declared.role.to_string());
  object.put_text("op", step.op);
  object.put("shape", step.shape);
  object.put("order", step.order);
}

void TraceFile::write(std::string_view ended) {
  file_.root().put_text("ended", ended);
  chips_.clear();
  file_.write();
}

void TraceFile::put(const Entry& entry) {
  const Sharded& value = entry.value;
  if (const auto* f32 = std::get_if<ChipArrays<float>>(&value.data()))
    put_chips(entry, *f32);
  else if (const auto* i32 = std::get_if<ChipArrays<std::int32_t>>(&value.data()))
    put_chips(entry, *i32);
  else if (value.holds_field())
    put_field(entry);
  else
    put_partial(entry);
  ++order_;
}

template <class T>
Hdf5Writer::Object TraceFile::create(const Hdf5Writer::Object& parent, const Entry& entry,
                                     const Shape& shape, const T& data) const {
  Hdf5Writer::Object object = file_.dataset(parent, entry.id, shape, data);
  object.put_text("layout", entry.layout.to_string());
  object.put_text("dtype", entry.dtype);
  if (!entry.meaning.empty()) object.put_text("meaning", entry.meaning);
  object.put_text("op", entry.op);
  std::string padded;
  for (const char letter : entry.layout.letters())
    if (padding_.pads(letter)) padded += letter;
  if (!padded.empty()) object.put_text("padded", padded);
  object.put("shape", entry.value.shape());
  object.put("order", order_);
  return object;
}

template <class T>
void TraceFile::put_chips(const Entry& entry, const ChipArrays<T>& chips) {
  if (put_whole(entry, chips)) return;
  put_shards(entry, chips);
}

/// Writes one whole array, or a reference to an equal one already written. Returns false if the
/// chips do not hold exactly its blocks: differing replicas of a wrong program, or partial sums.
template <class T>
bool TraceFile::put_whole(const Entry& entry, const ChipArrays<T>& chips) {
  const Sharded& value = entry.value;
  const Layout& layout = entry.layout;
  if (layout.is_partial() || !fits(layout, value.shape(), value.torus(), chips)) return false;
  auto& whole = std::get<std::vector<T>>(wholes_);
  whole = assembled<T>(
      layout, value.shape(), value.torus(),
      [&](int chip) -> const Buffer<T>& { return chips[static_cast<std::size_t>(chip)]; },
      std::move(whole));
  if (!are_blocks_of(whole, layout, value.shape(), value.torus(), chips)) return false;
  const Hdf5Writer::Object root = file_.root();
  if (!entry.like.empty() && file_.holds(entry.like, value.shape(), whole)) {
    create(root, entry, {0}, std::vector<T>()).put_text("same_as", entry.like);
    same_as_[entry.id] = entry.like;
    return true;
  }
  create(root, entry, value.shape(), whole);
  return true;
}

/// Writes the shards of every chip, or only the lowest-numbered chip's if replicas agree; flat if
/// their sizes do not match the layout.
template <class T>
std::vector<std::pair<int, Hdf5Writer::Object>> TraceFile::put_shards(const Entry& entry,
                                                                      const ChipArrays<T>& chips) {
  const Sharded& value = entry.value;
  const Torus& torus = value.torus();
  const bool fitting = fits(entry.layout, value.shape(), torus, chips);
  const bool once = fitting && copies_agree(entry.layout, torus, chips);
  std::vector<std::pair<int, Hdf5Writer::Object>> put;
  for (int chip = 0; chip < torus.chips(); ++chip) {
    if (once && first_copy(entry.layout, torus, chip) != chip) continue;
    const auto at = static_cast<std::size_t>(chip);
    const Shape shape =
        fitting ? judged_block(entry.layout, value.shape(), torus) : Shape{std::ssize(chips[at])};
    put.emplace_back(chip, create(chips_[at], entry, shape, chips[at]));
    if (once) put.back().second.put_text("replicas", "identical");
  }
  return put;
}

/// Writes partial sums of the exact regime; as f32 if all are f32 numbers, as rows of a table.
void TraceFile::put_partial(const Entry& entry) {
  const Partial& partial = entry.value.partial();
  ChipArrays<float> narrow;
  bool are_f32 = true;
  for (const Buffer<double>& values : partial.values) {
    Buffer<float> as_f32;
    for (const double v : values) {
      as_f32.push_back(static_cast<float>(v));
      are_f32 = are_f32 && std::bit_cast<std::uint64_t>(static_cast<double>(as_f32.back())) ==
                               std::bit_cast<std::uint64_t>(v);
      if (!are_f32) break;
    }
    if (!are_f32) break;
    narrow.push_back(std::move(as_f32));
  }
  Entry as_stored = entry;
  if (are_f32) as_stored.dtype = "f32 partial";
  for (const auto& [chip, shard] :
       are_f32 ? put_shards(as_stored, narrow) : put_shards(entry, partial.values)) {
    const Buffer<float>& bounds = partial.bounds[static_cast<std::size_t>(chip)];
    shard.put("bound", bounds.empty()
                           ? 0.0
                           : static_cast<double>(*std::max_element(bounds.begin(), bounds.end())));
  }
}

/// Writes numbers of the field regime, an array of which has their words as its last dim: whole if
/// each chip holds its block of the value, otherwise by chip.
void TraceFile::put_field(const Entry& entry) {
  const Sharded& value = entry.value;
  const ChipArrays<FieldElement>& chips = value.field().values;
  const FieldSetting& setting = value.field().field->setting();
  if (order_of_field_ < 0) {
    file_.root().put_text("field", field_text(setting));
    order_of_field_ = order_;
  }
  Entry of = entry;
  of.dtype = entry.layout.is_partial() ? "field partial" : "field";
  const auto put = [&](const Hdf5Writer::Object& parent, Shape shape, const auto& numbers) {
    shape.push_back(words_of(setting));
    create(parent, of, shape, to_words(numbers, setting));
  };
  if (!entry.layout.is_partial() && fits(entry.layout, value.shape(), value.torus(), chips)) {
    const auto whole = assembled<FieldElement>(
        entry.layout, value.shape(), value.torus(), [&](int chip) -> const auto& {
          return chips[static_cast<std::size_t>(chip)];
        });
    if (are_blocks_of(whole, entry.layout, value.shape(), value.torus(), chips)) {
      put(file_.root(), value.shape(), whole);
      return;
    }
  }
  for (int chip = 0; chip < value.torus().chips(); ++chip)
    put(chips_[static_cast<std::size_t>(chip)],
        fits(entry.layout, value.shape(), value.torus(), chips)
            ? judged_block(entry.layout, value.shape(), value.torus())
            : Shape{std::ssize(chips[static_cast<std::size_t>(chip)])},
        chips[static_cast<std::size_t>(chip)]);
}

}  // namespace shardproof
