#include "golden/scalar/text_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "golden/scalar/detail/letters.h"
#include "golden/scalar/order.h"
#include "golden/scalar/ring_place.h"
#include "oracle/graph/detail/exact.h"
#include "oracle/numeric/detail/functions.h"
#include "weights/base/detail/index.h"
#include "weights/base/error.h"

namespace shardproof::scalar {
namespace {

/// An expression of a map at one element.
class AtElement {
 public:
  AtElement(const Op& op, const std::vector<const Value*>& args, bool act_bf16)
      : op_(op), args_(args), exact_(act_bf16 ? NumberFormat::bf16 : NumberFormat::f32, sizes_) {
    for (const Value* const arg : args) letters_.push_back(arg->layout.letters());
  }

  double value(const Expression& e, const ByLetter& element) const {
    if (e.kind != Expression::Kind::call) return word(e.text, element);
    const double x = value(e.args[0], element);
    if (e.args.size() == 2) return oracle::graph::Exact::pair(e.op, x, value(e.args[1], element));
    if (e.parameters.size() == 2)
      return oracle::graph::Exact::ranged(e.op, x, word(e.parameters[0], element),
                                          word(e.parameters[1], element));
    return exact_.function(e.op, x);
  }

 private:
  double word(const std::string& text, const ByLetter& element) const {
    if (const auto literal = number_in(text)) return *literal;
    for (const NamedNumber& number : op_.constants)
      if (number.name == text) return number.value;
    const auto arg = std::find(op_.args.begin(), op_.args.end(), text) - op_.args.begin();
    const Value& operand = *args_.at(at(arg));
    const std::size_t place = element.in(letters_[at(arg)], operand.shape);
    return operand.integer() ? operand.ints[place] : wide(operand.whole()[place]);
  }

  const Op& op_;
  const std::vector<const Value*>& args_;
  std::vector<std::string> letters_;
  TextSizes sizes_;
  oracle::graph::Exact exact_;
};

float larger_of(float a, float b) {
  return static_cast<float>(oracle::graph::Exact::pair(ModelOp::larger, wide(a), wide(b)));
}

/// The largest of nothing.
constexpr float kNothing = -std::numeric_limits<float>::infinity();

/// A value with the declared letters of an op's result.
struct Made {
  std::string letters;
  Value value;

  explicit Made(const Op& op) : letters(op.results[0].layout.letters()) {
    value.parts.emplace_back();
  }
  void put(float v) { value.parts[0].push_back(v); }
};

/// The extents of these letters, each from the first operand that has it.
Shape extents(const std::string& letters, const std::vector<const Value*>& args) {
  Shape shape;
  for (const char letter : letters)
    for (const Value* const arg : args)
      if (const auto d = arg->layout.find(letter)) {
        shape.push_back(arg->shape[*d]);
        break;
      }
  return shape;
}

/// Whether an element exists: where no indicator of the op is 0.
bool exists(const Op& op, const std::vector<const Value*>& args, const ByLetter& element) {
  return std::all_of(args.begin() + static_cast<std::ptrdiff_t>(op.operands()), args.end(),
                     [&](const Value* w) { return w->whole()[element.in(*w)] != 0; });
}

/// The group of a row of the batch; null if no rows are given.
const PassRows* rows_with(std::int64_t b, const std::vector<PassRows>& rows) {
  for (const PassRows& group : rows) {
    if (b < group.rows) return &group;
    b -= group.rows;
  }
  return nullptr;
}

}  // namespace

Value mapped(const Op& op, const std::vector<const Value*>& args, const Setting& setting) {
  Made made(op);
  made.value.shape = extents(made.letters, args);
  const AtElement expression(op, args, setting.act_bf16);
  each_element(made.letters, made.value.shape, {}, [&](const ByLetter& element) {
    made.put(static_cast<float>(expression.value(*op.expression, element)));
  });
  return where_present(op, std::move(made.value), args);
}

Value where_present(const Op& op, Value value, const std::vector<const Value*>& args) {
  if (op.indicators == 0) return value;
  std::size_t i = 0;
  each_element(op.results[0].layout.letters(), value.shape, {}, [&](const ByLetter& element) {
    if (!exists(op, args, element))
      for (std::vector<float>& part : value.parts) part[i] = 0.0F;
    ++i;
  });
  return value;
}

namespace {

/// A reduction of some numbers, in their order.
float reduced(const Op& op, const std::vector<float>& all, bool act_bf16) {
  if (op.kind == OpKind::stored_sum) {
    float total = 0.0F;
    for (const float v : all) {
      total = total + v;
      if (act_bf16) total = oracle::bf16(total);
    }
    return total;
  }
  const bool most = op.kind == OpKind::max;
  if (all.empty() && most && op.results[0].layout.is_partial()) return kNothing;
  const std::string nothing = op.to_string() + " is of nothing that exists";
  if (all.empty() && most) throw Error("max_empty", nothing);
  if (all.empty()) throw Error("mean_empty", nothing);
  if (most) return std::accumulate(all.begin() + 1, all.end(), all[0], &larger_of);
  return static_cast<float>(wide(std::accumulate(all.begin(), all.end(), 0.0F)) /
                            static_cast<double>(all.size()));
}

}  // namespace

Value locally_reduced(const Op& op, const std::vector<const Value*>& args, const Setting& setting) {
  const Value& x = *args[0];
  Value made{{}, extents(op.results[0].layout.letters(), args), {}, {}};
  const Shape over = extents(op.parameter, args);
  for_each_place(op.results[0].layout.partial(), setting.torus, [&](const Place& place) {
    // The block of the letters that are reduced, on the chips of this place.
    Shape block = over, first;
    for (std::size_t d = 0; d < over.size(); ++d) {
      const Axes axes = x.layout.axes(op.parameter[d]);
      block[d] /= setting.torus.size(axes);
      first.push_back(block[d] * block_over(axes, setting.torus, place));
    }
    std::vector<float>& part = made.parts.emplace_back();
    each_element(op.results[0].layout.letters(), made.shape, {}, [&](const ByLetter& of_result) {
      std::vector<float> all;
      each_element(op.parameter, block, of_result, [&](ByLetter element) {
        for (std::size_t d = 0; d < first.size(); ++d) element[op.parameter[d]] += first[d];
        if (exists(op, args, element)) all.push_back(x.whole()[element.in(x)]);
      });
      part.push_back(reduced(op, all, setting.act_bf16));
    });
  });
  return made;
}

Value largest_part(const Op& op, const Value& t, const Setting& setting) {
  Value out{{}, t.shape, {}, {}};
  const Layout& to = op.results[0].layout;
  for_each_place(to.partial(), setting.torus, [&](const Place& place) {
    std::vector<float>& most = out.parts.emplace_back(at(element_count(t.shape)), kNothing);
    for (const std::vector<float>* part : members(op, t, setting.torus, place))
      for (std::size_t i = 0; i < most.size(); ++i) most[i] = larger_of(most[i], (*part)[i]);
    if (!to.is_partial() && std::count(most.begin(), most.end(), kNothing) > 0)
      throw Error("max_empty", op.to_string() + " is of nothing that exists");
  });
  return out;
}

Value top_marked(const Op& op, const std::vector<const Value*>& args) {
  const Value& x = *args[0];
  Made made(op);
  made.value.shape = x.shape;
  const std::string along(1, op.dim);
  const Shape extent = extents(along, args);
  each_element(made.letters, x.shape, {}, [&](const ByLetter& element) {
    if (!exists(op, args, element)) return made.put(0.0F);
    // Those before it: larger ones, and of equals the earlier.
    const float own = x.whole()[element.in(x)];
    std::int64_t before = 0;
    each_element(along, extent, element, [&](const ByLetter& other) {
      const float v = x.whole()[other.in(x)];
      if (exists(op, args, other) && (v > own || (v == own && other[op.dim] < element[op.dim])))
        ++before;
    });
    made.put(before < op.count ? 1.0F : 0.0F);
  });
  return std::move(made.value);
}

SumAsProduct::SumAsProduct(const Op& sum, const Value& x) {
  op.kind = OpKind::einsum;
  op.results = sum.results;
  op.args = {sum.args[0], "ones"};
  op.spec.terms = {{x.layout.letters(), sum.parameter, sum.results[0].layout.letters()}};
  std::vector<Layout::Dim> dims;
  for (const char letter : sum.parameter) dims.push_back({letter, x.layout.axes(letter)});
  ones.layout = Layout(std::move(dims), Axes());
  ones.shape = extents(sum.parameter, {&x});
  ones.parts.emplace_back(at(element_count(ones.shape)), 1.0F);
}

Value sum_over(const Op& op, const Value& x, const Setting& setting) {
  const SumAsProduct product(op, x);
  return contraction(product.op, {&x, &product.ones}, setting);
}

Value turned(const Op& op, const std::vector<const Value*>& args) {
  const Value& x = *args[0];
  Made made(op);
  made.value.shape = x.shape;
  const bool half = op.parameter == "half";
  each_element(made.letters, x.shape, {}, [&](ByLetter element) {
    const std::int64_t c = element[op.dim], pairs = op.count / 2;
    if (c >= op.count) return made.put(0.0F);
    const bool second = half ? c >= pairs : c % 2 == 1;
    element[op.dim] = c + (second ? -1 : 1) * (half ? pairs : 1);
    const float partner = x.whole()[element.in(x)];
    made.put(second ? partner : -partner);
  });
  return where_present(op, std::move(made.value), args);
}

Value gathered(const Op& op, const Value& index, const Value& table) {
  Made made(op);
  made.value.shape = extents(made.letters, {&index, &table});
  const char rows = table.layout.dims()[0].letter;
  each_element(made.letters, made.value.shape, {}, [&](ByLetter element) {
    const std::int64_t row = index.ints[element.in(index)];
    if (row < 0 || row >= table.shape[0])
      throw Error("gather_range", fmt::format("index {} is outside the table", row));
    element[rows] = row;
    made.put(table.whole()[element.in(table)] + 0.0F);
  });
  return std::move(made.value);
}

Value behind_prefix(const Op& op, const Value& prefixes, const Value& cache) {
  Made made(op);
  const std::int64_t T = prefixes.shape[*prefixes.layout.find('T')];
  const std::int64_t N = prefixes.shape[*prefixes.layout.find('N')];
  made.value.shape = cache.shape;
  made.value.shape[*cache.layout.find('M')] += T;
  const std::int64_t B = cache.shape[*cache.layout.find('B')];
  each_element(made.letters, made.value.shape, {}, [&](ByLetter element) {
    element['N'] = element['B'] * N / B;
    element['T'] = element['M'];
    const bool shared = element['M'] < T;
    element['M'] -= T;
    made.put(shared ? prefixes.whole()[element.in(prefixes)] : cache.whole()[element.in(cache)]);
  });
  return std::move(made.value);
}

Value appended(const Op& op, const std::vector<const Value*>& args, const Setting& setting) {
  const Value &cache = *args[0], &t = *args[1], &pos = *args[2];
  const std::string slots = cache.layout.letters();
  const std::size_t dim = *cache.layout.find('M');
  const std::int64_t grown = cache.shape[dim] + t.shape[*t.layout.find('L')];
  Made made(op);
  made.value.shape = cache.shape;
  made.value.shape[dim] = grown;
  std::vector<float>& to = made.value.parts[0];
  to.assign(at(element_count(made.value.shape)),
            op.zeros ? 0.0F : std::numeric_limits<float>::quiet_NaN());
  std::int64_t slot_size = 1;
  for (std::size_t d = dim + 1; d < cache.shape.size(); ++d) slot_size *= cache.shape[d];
  const std::int64_t before = cache.shape[dim] * slot_size, after = grown * slot_size;
  for (std::int64_t row = 0; row * before < std::ssize(cache.whole()); ++row)
    std::copy_n(cache.whole().begin() + row * before, before, to.begin() + row * after);
  // The last dims that token and slot have alike are copied together.
  const std::string letters = t.layout.letters();
  std::size_t alike = 0;
  std::int64_t together = 1;
  while (letters[letters.size() - 1 - alike] == slots[slots.size() - 1 - alike])
    together *= t.shape[t.shape.size() - 1 - alike++];
  const Shape outer(t.shape.begin(), t.shape.end() - static_cast<std::ptrdiff_t>(alike));
  each_element(letters.substr(0, letters.size() - alike), outer, {}, [&](ByLetter element) {
    const PassRows* const group = rows_with(element['B'], setting.rows);
    if (group != nullptr && element['L'] >= group->tokens) return;
    const std::int64_t slot = pos.ints[element.in("BL", pos.shape)] - setting.prefix;
    if (slot < 0 || slot >= grown)
      throw Error("append_range", fmt::format("slot {} is outside the cache", slot));
    element['M'] = slot;
    const float* const from = &t.whole()[element.in(letters, t.shape)];
    float* const held = &to[element.in(slots, made.value.shape)];
    for (std::int64_t i = 0; i < together; ++i)
      held[i] = setting.config.cache == NumberFormat::bf16 ? oracle::bf16(from[i]) : from[i];
  });
  return std::move(made.value);
}

}  // namespace shardproof::scalar
