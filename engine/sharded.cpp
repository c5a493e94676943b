#include "engine/sharded.h"

#include "engine/box.h"
#include "engine/numeric/rounding_test.h"

namespace shardproof {
namespace {

Shape block_offset(const Layout& layout, const Shape& local, const Torus& torus, int chip) {
  Shape offset(local.size());
  for (std::size_t d = 0; d < local.size(); ++d)
    offset[d] = torus.block(chip, layout.dims()[d].axes) * local[d];
  return offset;
}

template <class T>
Sharded shard_array(const Array<T>& tensor, const Layout& layout, const Torus& torus) {
  const Shape local = local_shape(layout, tensor.shape, torus);
  const Shape zero(local.size(), 0);
  ChipArrays<T> chips(static_cast<std::size_t>(torus.chips()));
  for (int c = 0; c < torus.chips(); ++c) {
    auto& buffer = chips[static_cast<std::size_t>(c)];
    buffer.resize(static_cast<std::size_t>(element_count(local)));
    for_each_run(local, tensor.shape, block_offset(layout, local, torus, c), local, zero,
                 [&](std::int64_t from, std::int64_t to, std::int64_t n) {
                   std::copy_n(tensor.data.begin() + from, n, buffer.begin() + to);
                 });
  }
  return {torus, layout, tensor.shape, std::move(chips)};
}

template <class T>
Array<T> assemble_array(const Sharded& value, const ChipArrays<T>& chips) {
  Array<T> tensor(value.shape);
  const Shape local = value.local();
  const Shape zero(local.size(), 0);
  for (int c = value.torus.chips() - 1; c >= 0; --c)
    for_each_run(local, local, zero, value.shape, block_offset(value.layout, local, value.torus, c),
                 [&](std::int64_t from, std::int64_t to, std::int64_t n) {
                   std::copy_n(chips[static_cast<std::size_t>(c)].begin() + from, n,
                               tensor.data.begin() + to);
                 });
  return tensor;
}

}  // namespace

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
  ExactSum exact_sum;
  Buffer<Origin> terms_of;
  for (const Element& e : elements) append_origins(e, terms_of);
  for (const Origin& origin : terms_of) source->add_terms(origin.chip, origin.index, exact_sum);
  return exact_sum.rounded();
}

Sharded shard(const Tensor& tensor, const Layout& layout, const Torus& torus) {
  return shard_array(tensor, layout, torus);
}

Sharded shard(const IntTensor& tensor, const Layout& layout, const Torus& torus) {
  return shard_array(tensor, layout, torus);
}

Tensor assemble(const Sharded& value) { return assemble_array(value, value.f32()); }

IntTensor assemble_int(const Sharded& value) { return assemble_array(value, value.i32()); }

}  // namespace shardproof
