#include "golden/diagnosis/detail/question.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <tuple>

#include "golden/bounds/number/fit.h"
#include "golden/compare/block_map.h"
#include "golden/compare/row_padding.h"
#include "golden/diagnosis/detail/chips.h"
#include "weights/base/detail/index.h"
#include "weights/model/registry.h"

namespace shardproof::diagnosis {
namespace {

/// Every list of distinct axes that have more than one chip, short lists first.
std::vector<Axes> lists_of(const Torus& torus) {
  std::vector<Axes> lists{Axes()};
  for (std::size_t i = 0; i < lists.size(); ++i)
    for (const Axis a : {Axis::x, Axis::y, Axis::z})
      if (torus.size(a) > 1 && !lists[i].has(a)) lists.push_back(Axes(lists[i]).with(a));
  lists.erase(lists.begin());
  return lists;
}

bool is_weight(const bounds::Derivation& replay, const std::string& id) {
  return replay.weights().contains(id);
}

bounds::IntervalTensor right_of(bounds::Derivation& replay, const std::string& id, bool raw) {
  if (const auto weight = replay.weights().find(id)) return bounds::IntervalTensor(*weight);
  if (!raw) return replay.expected(id);
  std::optional<bounds::IntervalTensor> sum = replay.expected_raw(id);
  if (!sum)
    throw Error("diagnosis_c1", fmt::format("{} is not a contraction that is replayed", id));
  return std::move(*sum);
}

}  // namespace

Question::Question(bounds::Derivation& replay, const Wrong& wrong)
    : replay_(&replay),
      of_weight_(is_weight(replay, wrong.id)),
      step_(of_weight_ ? std::make_shared<const Step>(replay)
                       : std::make_shared<const Step>(replay, wrong.id, wrong.raw)),
      id_(wrong.id),
      place_(of_weight_ ? bounds::Derivation::Place{"", 0, wrong.id} : replay.place_of(wrong.id)),
      torus_(wrong.torus),
      layout_(wrong.layout.with_partial(Axes())),
      summed_(wrong.layout.partial()),
      raw_(wrong.raw),
      operands_(step_->graph().of_keys() && !of_weight_ ? replay.operands(wrong.id)
                                                        : step_->operands()),
      layouts_(wrong.layouts),
      masked_any_(wrong.masked_any && !of_weight_),
      likely_(wrong.unlikely),
      sound_(wrong.sound),
      padding_(wrong.padding),
      values_(std::make_shared<std::map<std::string, bounds::IntervalTensor>>()),
      expected_(
          std::make_shared<const bounds::IntervalTensor>(right_of(replay, wrong.id, wrong.raw))),
      format_(of_weight_  ? NumberFormat::f32
              : wrong.raw ? replay.declared(place_).unstored()
                          : replay.format_at(place_)),
      shards_(wrong.shards),
      lists_(lists_of(wrong.torus)) {
  if (likely_)
    expected_ = std::make_shared<const bounds::IntervalTensor>(expected_->with_likely_radius());
  if (!padding_.empty() && std::ssize(padding_) != element_count(shape()))
    throw Error("diagnosis_c1", fmt::format("{} has {} elements, not {}", id_,
                                            element_count(shape()), padding_.size()));
  if (masked_any_ && !raw_) {
    const std::vector<bool> more = unspoken(place_, shape());
    padding_.resize(at(element_count(shape())), false);
    for (std::size_t i = 0; i < more.size(); ++i) padding_[i] = padding_[i] || more[i];
  }
  if (!judged_divides(layout_, shape(), torus_))
    throw Error("diagnosis_c1", fmt::format("{} cannot have the layout {} on {}", id_,
                                            wrong.layout.to_string(), torus_.to_string()));
  const bool cut = !wrong.layout.used().empty();
  if (chips() != torus_.chips() && (chips() != 1 || cut))
    throw Error("diagnosis_c1",
                fmt::format("{} has {} shards on {}", id_, chips(), torus_.to_string()));
  const auto size = at(element_count(judged_block(layout_, shape(), torus_)));
  for (const std::vector<double>& shard : shards_)
    if (shard.size() != size)
      throw Error("diagnosis_c1", fmt::format("{} has a shard of {} elements, {} has {}", id_,
                                              shard.size(), wrong.layout.to_string(), size));
  if (!summed_.empty()) {
    // Each partial sum was rounded on its own; their sum here is in f64.
    const std::vector<std::vector<double>> partial_sums = std::move(shards_);
    shards_.assign(partial_sums.size(), std::vector<double>(size, 0.0));
    slack_ = shards_;
    for (int chip = 0; chip < torus_.chips(); ++chip)
      for (const int other : judged_group(wrong.layout, torus_, chip))
        for (std::size_t i = 0; i < size; ++i) {
          const double v = partial_sums[at(other)][i];
          shards_[at(chip)][i] += v;
          slack_[at(chip)][i] +=
              (bounds::unit_of(format_) + 0x1p-50) * std::abs(v) + bounds::least_of(format_);
        }
    format_ = NumberFormat::f64;
  }
  place_shards();
}

Question::Question(const Question& whole, const Layout& cut) : Question(whole) {
  layout_ = cut;
  const std::vector<double> all = whole.shards_[0];
  local_ = judged_block(layout_, shape(), torus_);
  shards_.assign(at(torus_.chips()), std::vector<double>(elements()));
  for (int chip = 0; chip < torus_.chips(); ++chip)
    judged_elements(layout_, shape(), torus_, chip, [&](std::int64_t local, std::int64_t global) {
      shards_[at(chip)][at(local)] = all[at(global)];
      return false;
    });
  place_shards();
}

void Question::place_shards() {
  local_ = chips() == 1 && torus_.chips() > 1 ? shape() : judged_block(layout_, shape(), torus_);
  globals_.assign(at(chips()), {});
  for (int chip = 0; chip < chips(); ++chip)
    judged_elements(layout_, shape(), torus_, chip, [&](std::int64_t, std::int64_t global) {
      globals_[at(chip)].push_back(at(global));
      return false;
    });
  double squares = 0.0, reach = 0.0, numbers = 0.0;
  for (std::size_t i = 0; i < expected_->size(); ++i) {
    if (!padding_.empty() && padding_[i]) continue;
    ++numbers;
    squares += expected_->center[i] * expected_->center[i];
    reach = std::max(reach, expected_->radius[i]);
    if (!std::isfinite(expected_->radius[i])) reach = bounds::kInfinity;
  }
  scale_ = std::sqrt(squares / std::max(numbers, 1.0));
  squares = numbers = 0.0;
  for (int chip = 0; chip < chips(); ++chip)
    for (const std::size_t i : judged(chip)) {
      squares += shard(chip)[i] * shard(chip)[i];
      ++numbers;
    }
  given_ = std::isfinite(squares) ? std::sqrt(squares / std::max(numbers, 1.0)) : 0.0;
  narrow_ = reach == 0 || bounds::narrow(reach, scale_);
  right_.assign(at(chips()), true);
  for (int chip = 0; chip < chips(); ++chip)
    for (std::size_t i = 0; i < elements() && right_[at(chip)]; ++i)
      right_[at(chip)] = right(chip, i);
  sets_.clear();
  for (const Axes& list : lists_)
    if (list == list.sorted()) sets_.push_back(list);
}

std::vector<bool> Question::unspoken(const bounds::Derivation::Place& of,
                                     const Shape& shape) const {
  const PassPlan& pass = replay_->pass(of.pass);
  const ValueRow& row = *value_row(of.name, config().rows.get());
  std::vector<bool> none = padding_in_trace(row.dims, shape, false, pass, !row.cache);
  if (!masked_any_) return none;
  if (!step_->graph().of_keys()) {
    const std::vector<bool> absent =
        replay_->absent(checkpoint_id(of.pass, of.layer, of.name, config().rows.get()));
    none.resize(absent.size(), false);
    for (std::size_t i = 0; i < absent.size(); ++i) none[i] = none[i] || absent[i];
    return none;
  }
  if (of.name != "score" && of.name != "exp") return none;
  none.resize(at(element_count(shape)), false);
  const std::size_t L = at(shape[1]), H = at(shape[2]), M = at(shape[3]);
  for (std::size_t n = 0; n < none.size() / std::max<std::size_t>(M, 1); ++n)
    for (std::size_t m = replay_->visible(pass, n / H / L, n / H % L); m < M; ++m)
      none[n * M + m] = true;
  return none;
}

const bounds::IntervalTensor& Question::value(const std::string& id) const {
  if (const auto known = values_->find(id); known != values_->end()) return known->second;
  const bounds::IntervalTensor& plain = replay_->value(id);
  const std::vector<bool> none = unspoken(replay_->place_of(id), plain.shape);
  if (none.empty()) return plain;
  bounds::IntervalTensor opened = plain;
  for (std::size_t i = 0; i < none.size(); ++i)
    if (none[i]) opened.set(i, bounds::FunctionValue{0.0, bounds::kInfinity, 0.0});
  return values_->emplace(id, std::move(opened)).first->second;
}

bool Question::source(const std::string& id) const {
  if (!replay_->dumped(id) || id == id_ || (sound_ && !sound_(id))) return false;
  const TextModel& model = step_->graph().model();
  const auto place_in_run = [&](const bounds::Derivation::Place& p) {
    std::int64_t pass = 0;
    while (replay_->passes()[at(pass)].name != p.pass) ++pass;
    // The terms of a parallel block's sum are no lines of keys' graph.
    const std::int64_t line =
        std::max(model.line_of(p.name, p.layer), model.line_of("act", p.layer));
    const bool named = model.line_of(p.name, p.layer) >= 0;
    const ValueRow* const row = value_row(p.name, &model);
    const bool head = row != nullptr && !row->per_layer && p.name != "embed";
    return std::make_tuple(pass, head ? config().layers : p.layer,
                           named ? model.line_of(p.name, p.layer) : line);
  };
  return place_in_run(replay_->place_of(id)) < place_in_run(place_);
}

Wrong Question::other(const std::string& id, const Layout& layout,
                      std::vector<std::vector<double>> shards) const {
  return {.id = id,
          .torus = torus_,
          .layout = layout,
          .shards = std::move(shards),
          .layouts = layouts_,
          .masked_any = masked_any_,
          .sound = sound_,
          .unlikely = likely_};
}

const Step& Question::step_of(const std::string& id) const {
  const auto known = steps_->find(id);
  if (known != steps_->end()) return known->second;
  return steps_->emplace(id, Step(*replay_, id, false)).first->second;
}

std::string Question::id_of(std::string_view name) const {
  return checkpoint_id(place_.pass, place_.layer, name, config().rows.get());
}

std::optional<Axes> Question::declared_axes(const std::string& operand, char letter) const {
  return declared_axes_of(id_of(operand), letter);
}

std::optional<Axes> Question::declared_axes_of(const std::string& id, char letter) const {
  const auto found = layouts_.find(id);
  if (found == layouts_.end() || found->second.letters().find(letter) == std::string::npos)
    return std::nullopt;
  return significant(found->second.axes(letter), torus_);
}

bool Question::right() const {
  return std::all_of(right_.begin(), right_.end(), [](bool r) { return r; });
}

Index Question::index(std::size_t local) const {
  Index index{};
  auto rest = static_cast<std::int64_t>(local);
  for (std::size_t d = rank(); d-- > 0; rest /= local_[d]) index[d] = rest % local_[d];
  return index;
}

std::size_t Question::flat(const Index& index, const Index& begin) const {
  std::int64_t flat = 0;
  for (std::size_t d = 0; d < rank(); ++d) flat = flat * shape()[d] + begin[d] + index[d];
  return at(flat);
}

Index Question::offset(const Layout& layout, int chip) const {
  Index offset{};
  const Shape begin = judged_offset(layout, shape(), torus_, chip);
  std::copy(begin.begin(), begin.end(), offset.begin());
  return offset;
}

std::vector<std::size_t> Question::judged(int chip) const {
  std::vector<std::size_t> locals;
  for (std::size_t i = 0; i < elements(); ++i)
    if (!padded(chip, i)) locals.push_back(i);
  return locals;
}

bool Question::fits(int chip, std::size_t local, const bounds::FunctionValue& number,
                    std::optional<NumberFormat> format) const {
  if (padded(chip, local)) return true;
  const double radius = number.radius + (slack_.empty() ? 0.0 : slack_[at(chip)][local]);
  // The sum of partial sums has no storage format of its own.
  const NumberFormat f = slack_.empty() ? format.value_or(format_) : format_;
  return bounds::holds(bounds::values(bounds::around(number.center, radius), f), f,
                       shards_[at(chip)][local]);
}

Prediction Question::logical(bounds::IntervalTensor tensor) const {
  return [this, t = std::make_shared<const bounds::IntervalTensor>(std::move(tensor))](
             int chip, std::size_t local) -> bounds::FunctionValue {
    const std::size_t g = global(chip, local);
    return {t->center[g], likely_ ? t->likely[g] : t->radius[g], 0.0};
  };
}

Prediction Question::logical(std::function<bounds::FunctionValue(std::size_t)> element) const {
  return [this, e = std::move(element)](int chip, std::size_t local) {
    return e(global(chip, local));
  };
}

bounds::IntervalTensor Question::under(const Change& change) const {
  return step_->under(
      change, [this](const std::string& id) -> const bounds::IntervalTensor& { return value(id); });
}

std::shared_ptr<const Tensor> Question::weight(std::string_view id) const {
  return replay_->weights().find(id);
}

std::string Question::weight_id(std::string_view file) const {
  for (const WeightRow& row : step_->graph().model().weights())
    if (row.file == file)
      return row.per_layer ? fmt::format("layer{}.{}", place_.layer, file) : std::string(file);
  return fmt::format("layer{}.{}", place_.layer, file);
}

std::size_t inner_of(const Shape& shape, std::size_t dim) {
  return at(element_count({shape.begin() + static_cast<std::ptrdiff_t>(dim) + 1, shape.end()}));
}

std::size_t index_in(std::string_view letters, const Shape& shape, std::size_t element, char dim) {
  const std::size_t d = letters.find(dim);
  return element / inner_of(shape, d) % at(shape[d]);
}

std::string words_of(const Axes& axes) {
  std::string words;
  int left = axes.size();
  for (const Axis a : axes) {
    words += to_char(a);
    if (--left > 0) words += left == 1 ? " and " : ", ";
  }
  return words;
}

bounds::FunctionValue times(const bounds::FunctionValue& a, double factor) {
  return {a.center * factor, a.radius * std::abs(factor) + 0x1p-52 * std::abs(a.center * factor),
          0.0};
}

bounds::FunctionValue plus(const bounds::FunctionValue& a, const bounds::FunctionValue& b,
                           const bounds::DeclaredArithmetic& by) {
  const double unit = bounds::unit_of(by.sums) + by.operations.unit + 0x1p-52;
  return {a.center + b.center,
          a.radius + b.radius + unit * (std::abs(a.center) + std::abs(b.center)), 0.0};
}

}  // namespace shardproof::diagnosis
