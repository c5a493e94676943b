#include "engine/shards/sharded.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <map>
#include <string_view>

#include "engine/layout/detail/box.h"
#include "engine/numeric/detail/compensated_sum.h"
#include "engine/numeric/detail/rounding_test.h"
#include "weights/base/error.h"

namespace shardproof {
namespace {

Shape block_offset(const Layout& layout, const Shape& local, const Torus& torus, int chip) {
  Shape offset(local.size());
  for (std::size_t d = 0; d < local.size(); ++d)
    offset[d] = torus.block(chip, layout.dims()[d].axes) * local[d];
  return offset;
}

template <class T>
ChipArrays<T> blocks(const Array<T>& tensor, const Layout& layout, const Torus& torus,
                     Replicas replicas) {
  const Shape local = local_shape(layout, tensor.shape, torus);
  const Shape zero(local.size(), 0);
  ChipArrays<T> chips(static_cast<std::size_t>(torus.chips()));
  std::map<Shape, std::size_t> first;  // first chip that was given the block at this offset
  for (int c = 0; c < torus.chips(); ++c) {
    const auto chip = static_cast<std::size_t>(c);
    const Shape offset = block_offset(layout, local, torus, c);
    if (replicas == Replicas::shared) {
      const auto [at, is_first] = first.emplace(offset, chip);
      if (!is_first) {
        chips.share(chip, at->second);
        continue;
      }
    }
    auto& buffer = chips[chip];
    buffer.resize(static_cast<std::size_t>(element_count(local)));
    for_each_run(local, tensor.shape, offset, local, zero,
                 [&](std::int64_t from, std::int64_t to, std::int64_t n) {
                   std::copy_n(tensor.data.begin() + from, n, buffer.begin() + to);
                 });
  }
  return chips;
}

template <class T>
Array<T> assemble_array(const Sharded& value, const ChipArrays<T>& chips) {
  Array<T> tensor(value.shape());
  const Shape& local = value.local();
  const Shape zero(local.size(), 0);
  for (int c = value.torus().chips() - 1; c >= 0; --c)
    for_each_run(local, local, zero, value.shape(),
                 block_offset(value.layout(), local, value.torus(), c),
                 [&](std::int64_t from, std::int64_t to, std::int64_t n) {
                   std::copy_n(chips[static_cast<std::size_t>(c)].begin() + from, n,
                               tensor.data.begin() + to);
                 });
  return tensor;
}

[[noreturn]] void unfit(const Layout& layout, const Shape& shape, std::string_view why) {
  throw Error("sharded_c1",
              fmt::format("{} [{}]: {}", layout.to_string(), fmt::join(shape, ","), why));
}

Shape local_or_unfit(const Layout& layout, const Shape& shape, const Torus& torus) {
  if (layout.rank() != shape.size())
    unfit(layout, shape, fmt::format("{} dims, {} extents", layout.rank(), shape.size()));
  try {
    return local_shape(layout, shape, torus);
  } catch (const Error& error) {
    unfit(layout, shape, error.message());
  }
}

/// Requires one buffer per chip, each of `count` numbers, or empty if `or_none`.
template <class T>
void require_buffers(const Layout& layout, const Shape& shape, const Torus& torus,
                     std::string_view what, const ChipArrays<T>& chips, std::size_t count,
                     bool or_none = false) {
  if (chips.size() != static_cast<std::size_t>(torus.chips()))
    unfit(layout, shape,
          fmt::format("{} for {} chips on torus {}", what, chips.size(), torus.to_string()));
  for (std::size_t chip = 0; chip < chips.size(); ++chip)
    if (chips[chip].size() != count && !(or_none && chips[chip].empty()))
      unfit(layout, shape,
            fmt::format("{} {} on chip {}, {} in a shard", chips[chip].size(), what,
                        torus.name(static_cast<int>(chip)), count));
}

}  // namespace

Sharded::Sharded(const Torus& torus, Layout layout, Shape shape, Data data)
    : torus_(torus),
      layout_(std::move(layout)),
      shape_(std::move(shape)),
      local_(local_or_unfit(layout_, shape_, torus_)),
      data_(std::move(data)) {
  const auto count = static_cast<std::size_t>(element_count(local_));
  if (const auto* of_partial = std::get_if<Partial>(&data_)) {
    if (!layout_.is_partial()) unfit(layout_, shape_, "partial sums under a complete layout");
    if (of_partial->terms < 1) unfit(layout_, shape_, "partial sums of no terms");
    require_buffers(layout_, shape_, torus_, "partial values", of_partial->values, count,
                    of_partial->lazy != nullptr);
    require_buffers(layout_, shape_, torus_, "bounds", of_partial->bounds, count, true);
    require_buffers(layout_, shape_, torus_, "origins", of_partial->origins,
                    count * static_cast<std::size_t>(of_partial->terms), true);
  } else if (const auto* integers = std::get_if<ChipArrays<std::int32_t>>(&data_)) {
    if (layout_.is_partial()) unfit(layout_, shape_, "integers under a partial layout");
    require_buffers(layout_, shape_, torus_, "integers", *integers, count);
  } else if (const auto* numbers = std::get_if<FieldShards>(&data_)) {
    require_buffers(layout_, shape_, torus_, "field elements", numbers->values, count);
  } else {
    require_buffers(layout_, shape_, torus_, "values", f32(), count);
  }
}

bool Sharded::is_integral() const {
  if (!holds_field()) return stores_int32();
  return field().sort == FieldSort::index || field().sort == FieldSort::token;
}

Sharded Sharded::relabelled(Layout layout, Shape shape) const {
  return {torus_, std::move(layout), std::move(shape), data_};
}

std::span<float> Sharded::f32_of(int chip) {
  return std::get<ChipArrays<float>>(data_)[static_cast<std::size_t>(chip)];
}

std::span<std::int32_t> Sharded::i32_of(int chip) {
  return std::get<ChipArrays<std::int32_t>>(data_)[static_cast<std::size_t>(chip)];
}

std::span<double> Sharded::partial_values_of(int chip) {
  return std::get<Partial>(data_).values[static_cast<std::size_t>(chip)];
}

std::span<float> Sharded::partial_bounds_of(int chip) {
  return std::get<Partial>(data_).bounds[static_cast<std::size_t>(chip)];
}

std::span<FieldElement> Sharded::field_of(int chip) {
  return std::get<FieldShards>(data_).values[static_cast<std::size_t>(chip)];
}

void Sharded::poison() {
  const auto overwrite = [](auto& chips) {
    using Own = typename std::decay_t<decltype(chips)>::value_type;
    std::map<std::size_t, std::shared_ptr<Own>> by_size;
    for (std::size_t chip = 0; chip < chips.size(); ++chip) {
      const std::size_t size = std::as_const(chips)[chip].size();
      if (size == 0) continue;
      std::shared_ptr<Own>& poisoned = by_size[size];
      if (!poisoned) {
        poisoned = std::make_shared<Own>(size);
        std::memset(static_cast<void*>(poisoned->data()), 0xFF,
                    size * sizeof(typename Own::value_type));
      }
      chips.put(chip, poisoned);
    }
  };
  if (auto* of_partial = std::get_if<Partial>(&data_)) {
    overwrite(of_partial->values);
    overwrite(of_partial->bounds);
  } else if (auto* numbers = std::get_if<FieldShards>(&data_)) {
    overwrite(numbers->values);
  } else if (auto* integers = std::get_if<ChipArrays<std::int32_t>>(&data_)) {
    overwrite(*integers);
  } else {
    overwrite(std::get<ChipArrays<float>>(data_));
  }
}

void Sharded::set_field_degree(FieldDegree degree) {
  std::get<FieldShards>(data_).degree = std::move(degree);
}

void Partial::append_origins(const Element& element, Buffer<Origin>& out) const {
  const auto& of_chip = origins[static_cast<std::size_t>(element.chip)];
  if (of_chip.empty()) {
    out.push_back({element.chip, static_cast<std::uint32_t>(element.index)});
    return;
  }
  const auto first = of_chip.begin() + element.index * terms;
  out.insert(out.end(), first, first + terms);
}

float Partial::rounded_sum(const std::vector<Element>& elements) const {
  BoundedSum sum;
  for (const Element& e : elements)
    sum.add(values[static_cast<std::size_t>(e.chip)][static_cast<std::size_t>(e.index)],
            bound(e.chip, e.index));
  if (const auto decided = decide(sum.value(), sum.bound())) return *decided;
  return sum_of_origins(elements);
}

float Partial::sum_of_origins(const std::vector<Element>& elements) const {
  Buffer<Origin> terms_of;
  for (const Element& e : elements) append_origins(e, terms_of);
  return settled([&](auto& sum) {
    for (const Origin& origin : terms_of) source->add_terms(origin.chip, origin.index, sum);
  });
}

Sharded shard(const Tensor& tensor, const Layout& layout, const Torus& torus, Replicas replicas) {
  return {torus, layout, tensor.shape, blocks(tensor, layout, torus, replicas)};
}

Sharded shard(const IntTensor& tensor, const Layout& layout, const Torus& torus,
              Replicas replicas) {
  return {torus, layout, tensor.shape, blocks(tensor, layout, torus, replicas)};
}

Sharded shard(const Array<FieldElement>& tensor, const Layout& layout, const Torus& torus,
              std::shared_ptr<const Field> field, Replicas replicas) {
  return {torus, layout, tensor.shape,
          FieldShards{
              blocks(tensor, layout, torus, replicas), std::move(field), FieldSort::number, {}}};
}

Tensor assemble(const Sharded& value) { return assemble_array(value, value.f32()); }

IntTensor assemble_int(const Sharded& value) { return assemble_array(value, value.i32()); }

}  // namespace shardproof
