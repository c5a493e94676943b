#include "golden/trace/file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "golden/compare/assembled.h"
#include "weights/error.h"
#include "weights/registry.h"

namespace shardproof {
namespace {

constexpr std::string_view kMap =
    "A layout is dim letters, each with a subscript: torus axes, major to minor. Over the axes of "
    "its subscript a dim is cut into equal contiguous blocks: of F_zyx on XxYxZ chips, chip "
    "(x,y,z) "
    "holds block (z*Y+y)*X+x of X*Y*Z. Chips along an axis that a layout does not name hold "
    "replicas; along the axes of partialsum they hold summands.";

/// Of f32 arrays: bf16 where st() has rounded them, as of a stored checkpoint in any layout.
std::string dtype_of(const ValueDecl& declared, const Numerics& numerics,
                     const ModelConfig& config) {
  if (declared.layout.is_partial()) return "f32 partial";
  const bool rounded = declared.role.kind == Role::Kind::checkpoint &&
                       wire_type(declared, numerics, config) == WireType::bf16;
  return rounded ? "bf16" : "f32";
}

bool is_token(const Role& role) {
  const ValueRow* const row = value_row(role);
  return role.kind == Role::Kind::checkpoint && row != nullptr && row->integer;
}

/// The user's layer programs, if the run has any.
void put_programs(const Hdf5Writer::Object& root, const Case& c) {
  const Program* prefill = c.prefill.program();
  const Program* decode = c.decode.program();
  if (prefill == decode) {
    if (prefill != nullptr) root.put("program", print_program(*prefill));
    return;
  }
  if (prefill != nullptr) root.put("prefill_program", print_program(*prefill));
  if (decode != nullptr) root.put("decode_program", print_program(*decode));
}

/// The user's tables of layouts, if the case names any.
void put_tables(const Hdf5Writer::Object& root, const Case& c) {
  std::string text;
  for (const Strategy* strategy : {&c.prefill, &c.decode})
    if (strategy->program() == nullptr && !strategy->ships() &&
        (strategy == &c.prefill || !(c.decode == c.prefill)))
      text += print_layouts(strategy->table());
  if (!text.empty()) root.put("layouts", text);
}

/// Whether each chip's shard is of the size that the declared layout says.
template <class T>
bool fits(const Layout& layout, const Sharded& value, const ChipArrays<T>& chips) {
  if (value.shape().empty() || !judged_divides(layout, value.shape(), value.torus())) return false;
  const std::int64_t size = element_count(judged_block(layout, value.shape(), value.torus()));
  return std::all_of(chips.begin(), chips.end(),
                     [&](const Buffer<T>& chip) { return std::ssize(chip) == size; });
}

/// The sum over the partial axes as f32, for the first chip of each group; none for the others.
std::vector<float> sum_of_group(const Partial& partial, const std::vector<int>& group, int chip) {
  if (group.front() != chip) return {};
  std::vector<Element> elements;
  for (int member : group) elements.push_back({member, 0});
  std::vector<float> sums(partial.values[static_cast<std::size_t>(chip)].size());
  for (std::size_t i = 0; i < sums.size(); ++i) {
    for (Element& e : elements) e.index = static_cast<std::int64_t>(i);
    sums[i] = partial.rounded_sum(elements);
  }
  return sums;
}

}  // namespace

TraceFile::TraceFile(const Case& c, const IntTensor& prompt, std::filesystem::path target,
                     bool weights_given)
    : numerics_(c.numerics), config_(c.model), file_(std::move(target), "trace_c1") {
  const Hdf5Writer::Object root = file_.root();
  root.put("format", "shardproof trace");
  root.put("version", kTraceFormat);
  root.put("case", print_case(c));
  root.put("model", print_model(c.model));
  root.put("torus", c.torus.to_string());
  root.put("regime", to_string(c.numerics.regime));
  root.put("act", to_string(c.numerics.act));
  root.put("weights", weights_given ? "file" : "seed");
  root.put("map", kMap);
  put_programs(root, c);
  put_tables(root, c);
  const Hdf5Writer::Object chips = file_.group(root, "chips");
  for (int chip = 0; chip < c.torus.chips(); ++chip) {
    const std::array<int, 3> at = judged_coordinates(c.torus, chip);
    chips_.push_back(file_.group(chips, fmt::format("{}_{}_{}", at[0], at[1], at[2])));
    for (std::size_t axis = 0; axis < 3; ++axis)
      chips_.back().put(std::array{"x", "y", "z"}[axis], at[axis]);
  }
  file_.dataset(root, "prompt", prompt.shape, prompt.data);
}

void TraceFile::add(const Scope& scope, const Program& program, const Op& op,
                    const ValueDecl& declared, const Sharded& value) {
  const Entry entry{scope.step(program, declared.name), declared, op.to_string(), value};
  if (const auto* f32 = std::get_if<ChipArrays<float>>(&value.data())) {
    put_complete(entry, *f32, dtype_of(declared, numerics_, config_));
  } else if (const auto* i32 = std::get_if<ChipArrays<std::int32_t>>(&value.data())) {
    const std::vector<std::int32_t> whole = put_complete(entry, *i32, "int32");
    if (is_token(declared.role)) keep_token(scope.pass, whole);
  } else {
    put_partial(entry);
  }
  ++order_;
}

void TraceFile::write(std::string_view ended) {
  file_.root().put("ended", ended);
  put_generated();
  chips_.clear();
  file_.write();
}

template <class T>
Hdf5Writer::Object TraceFile::put(const Hdf5Writer::Object& parent, const Entry& entry,
                                  const Shape& shape, const T& data, std::string_view dtype) const {
  Hdf5Writer::Object made = file_.dataset(parent, entry.id, shape, data);
  made.put("layout", entry.declared.layout.to_string());
  made.put("dtype", dtype);
  made.put("meaning", entry.declared.role.to_string());
  made.put("op", entry.op);
  made.put("shape", entry.value.shape());
  made.put("order", order_);
  return made;
}

/// The shards of every chip; flat, where they are not what the layout says.
template <class T>
std::vector<Hdf5Writer::Object> TraceFile::put_shards(const Entry& entry,
                                                      const ChipArrays<T>& chips,
                                                      std::string_view dtype) const {
  const Sharded& value = entry.value;
  const bool as_declared = fits(entry.declared.layout, value, chips);
  std::vector<Hdf5Writer::Object> made;
  for (std::size_t chip = 0; chip < chips.size(); ++chip)
    made.push_back(put(chips_[chip], entry,
                       as_declared
                           ? judged_block(entry.declared.layout, value.shape(), value.torus())
                           : Shape{std::ssize(chips[chip])},
                       chips[chip], dtype));
  return made;
}

/// A value whose shards are no sums; its logical tensor, empty if it has none.
template <class T>
std::vector<T> TraceFile::put_complete(const Entry& entry, const ChipArrays<T>& chips,
                                       std::string_view dtype) const {
  put_shards(entry, chips, dtype);
  const Sharded& value = entry.value;
  const Layout& layout = entry.declared.layout;
  // In the f32 regime the sum of partials depends on the schedule; the program has yet to sum
  // them.
  if (layout.is_partial() || !fits(layout, value, chips)) return {};
  const std::vector<T> whole = assembled<T>(
      layout, value.shape(), value.torus(),
      [&](int chip) -> const Buffer<T>& { return chips[static_cast<std::size_t>(chip)]; });
  put(file_.root(), entry, value.shape(), whole, dtype);
  return whole;
}

void TraceFile::put_partial(const Entry& entry) const {
  const Sharded& value = entry.value;
  const Partial& partial = value.partial();
  const Layout& layout = entry.declared.layout;
  const auto made = put_shards(entry, partial.values, "f64 partial");
  for (std::size_t chip = 0; chip < made.size(); ++chip) {
    const Buffer<float>& bounds = partial.bounds[chip];
    made[chip].put("bound", bounds.empty() ? 0.0
                                           : static_cast<double>(
                                                 *std::max_element(bounds.begin(), bounds.end())));
  }
  if (!layout.is_partial() || !fits(layout, value, partial.values)) return;
  const std::vector<float> whole =
      assembled<float>(layout, value.shape(), value.torus(), [&](int chip) {
        return sum_of_group(partial, judged_group(layout, value.torus(), chip), chip);
      });
  put(file_.root(), entry, value.shape(), whole, "f32");
}

void TraceFile::keep_token(const std::string& pass, const std::vector<std::int32_t>& ids) {
  if (tokens_.empty() || tokens_.back().first != pass) tokens_.emplace_back(pass, ids);
  tokens_.back().second = ids;
}

/// The tokens of the passes that had any, int32 [B, passes].
void TraceFile::put_generated() const {
  if (tokens_.empty()) return;
  const std::size_t rows = tokens_[0].second.size();
  std::vector<std::int32_t> table;
  for (std::size_t b = 0; b < rows; ++b)
    for (const auto& [pass, ids] : tokens_) table.push_back(b < ids.size() ? ids[b] : -1);
  const Shape shape{std::ssize(tokens_[0].second), std::ssize(tokens_)};
  file_.dataset(file_.root(), "generated", shape, table);
}

}  // namespace shardproof
