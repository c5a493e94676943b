#include "golden/judge.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <stdexcept>
#include <vector>

#include "golden/expected.h"
#include "weights/error.h"

namespace shardproof {
namespace {

std::string show(std::uint32_t bits, bool integer) {
  if (integer) return fmt::format("{}", static_cast<std::int32_t>(bits));
  return fmt::format("{:.9g} (0x{:08x})", std::bit_cast<float>(bits), bits);
}

/// The coordinates of a chip, by the judge's own reading of its number: (x·Y + y)·Z + z.
std::array<int, 3> coordinates(const Torus& torus, int chip) {
  const int Y = torus.size(Axis::y);
  const int Z = torus.size(Axis::z);
  return {chip / (Y * Z), chip / Z % Y, chip % Z};
}

/// Compares one value, by the layout it is declared to have; fills chip, index, expected and actual
/// of the first difference.
class Comparison {
 public:
  Comparison(const Expected& expected, const Layout& declared, const Sharded& value)
      : expected_(expected), layout_(declared), value_(value) {
    for (std::size_t d = 0; d < layout_.rank(); ++d) {
      std::int64_t blocks = 1;
      for (Axis a : layout_.dims()[d].axes) blocks *= value.torus.size(a);
      local_.push_back(value.shape[d] / blocks);
    }
  }

  std::int64_t elements() const { return elements_; }

  std::optional<Difference> run() {
    if (value_.holds_partial()) return partial();
    return std::holds_alternative<ChipArrays<std::int32_t>>(value_.data) ? complete(value_.i32())
                                                                         : complete(value_.f32());
  }

 private:
  /// Calls differs(chip, local index, expected bits) for every element of `chip`; it returns what
  /// it found instead, or nothing. `size` is the number of elements that the chip holds.
  template <class Differs>
  std::optional<Difference> each(int chip, std::size_t size, Differs&& differs) {
    const std::int64_t count = element_count(local_);
    if (size != static_cast<std::size_t>(count)) {
      Difference found;
      found.chip = value_.torus.name(chip);
      found.expected = fmt::format("{} elements on the chip", count);
      found.actual = fmt::format("{}", size);
      return found;
    }
    const Shape offset = judged_offset(layout_, value_.shape, value_.torus, chip);
    Shape index(local_.size(), 0);
    for (std::int64_t i = 0; i < count; ++i) {
      std::int64_t global = 0;
      for (std::size_t d = 0; d < index.size(); ++d)
        global = global * value_.shape[d] + offset[d] + index[d];
      const std::uint32_t want = expected_.bits[static_cast<std::size_t>(global)];
      ++elements_;
      if (const std::optional<std::uint32_t> got = differs(i, want))
        return difference(chip, offset, index, want, *got);
      for (std::size_t d = index.size(); d-- > 0 && ++index[d] == local_[d];) index[d] = 0;
    }
    return std::nullopt;
  }

  template <class T>
  std::optional<Difference> complete(const ChipArrays<T>& chips) {
    for (int chip = 0; chip < value_.torus.chips(); ++chip) {
      const Buffer<T>& held = chips[static_cast<std::size_t>(chip)];
      const auto found = each(chip, held.size(), [&](std::int64_t i, std::uint32_t want) {
        const auto got = std::bit_cast<std::uint32_t>(held[static_cast<std::size_t>(i)]);
        return got == want ? std::nullopt : std::optional(got);
      });
      if (found) return found;
    }
    return std::nullopt;
  }

  /// A partial is its exact sum over the partial axes: of every element by value and bound, and of
  /// a few in each group by the origins too, which a later step may need.
  std::optional<Difference> partial() {
    const Partial& partial = value_.partial();
    for (int chip = 0; chip < value_.torus.chips(); ++chip) {
      std::vector<Element> sum;
      for (int member : group(chip)) sum.push_back({member, 0});
      if (sum.front().chip != chip) continue;  // counted with its group's first chip
      const std::size_t size = partial.values[static_cast<std::size_t>(chip)].size();
      const std::int64_t step = std::max<std::int64_t>(1, static_cast<std::int64_t>(size) / 4);
      const auto found = each(chip, size, [&](std::int64_t i, std::uint32_t want) {
        for (Element& e : sum) e.index = i;
        auto got = std::bit_cast<std::uint32_t>(partial.rounded_sum(sum));
        if (got == want && i % step == 0)
          got = std::bit_cast<std::uint32_t>(partial.sum_of_origins(sum));
        return got == want ? std::nullopt : std::optional(got);
      });
      if (found) return found;
    }
    return std::nullopt;
  }

  /// The chips whose partial shards sum up to what `chip` stands for, lowest number first.
  std::vector<int> group(int chip) const {
    const std::array<int, 3> mine = coordinates(value_.torus, chip);
    std::vector<int> members;
    for (int other = 0; other < value_.torus.chips(); ++other) {
      const std::array<int, 3> theirs = coordinates(value_.torus, other);
      bool same = true;
      for (Axis a : {Axis::x, Axis::y, Axis::z}) {
        const auto at = static_cast<std::size_t>(a);
        same = same && (layout_.partial().has(a) || theirs[at] == mine[at]);
      }
      if (same) members.push_back(other);
    }
    return members;
  }

  Difference difference(int chip, const Shape& offset, Shape index, std::uint32_t want,
                        std::uint32_t got) const {
    for (std::size_t d = 0; d < index.size(); ++d) index[d] += offset[d];
    Difference found;
    found.chip = value_.torus.name(chip);
    found.index = std::move(index);
    found.expected = show(want, expected_.integer);
    found.actual = show(got, expected_.integer);
    return found;
  }

  const Expected& expected_;
  const Layout& layout_;
  const Sharded& value_;
  Shape local_;
  std::int64_t elements_ = 0;
};

/// What the oracle says the value is. A program may ask for what this run does not have.
Expected known_value(const oracle::Answer& answer, const Weights& weights, const Scope& scope,
                     const Program& program, const Result& declared, const Shape& shape) {
  try {
    return expected_value(answer, weights, scope, declared.meaning, shape);
  } catch (const std::out_of_range&) {
  } catch (const Error& error) {
    if (error.label() != "oracle_id") throw;
  }
  throw Error("judge_c1", fmt::format("{}{}: the model has no '{}' (docs/program.md)",
                                      program.where(declared.line), declared.name,
                                      declared.meaning.to_string()));
}

/// The global shape that a declared layout can have: the checkpoint's, or that with H split in S,
/// R.
bool fits(const Shape& expected, const Layout& declared, const Shape& actual) {
  if (declared.rank() != actual.size()) return false;
  if (expected == actual) return true;
  const auto S = declared.find('S');
  const auto R = declared.find('R');
  if (!S || !R || *R != *S + 1) return false;
  Shape merged = actual;
  merged[*S] *= merged[*R];
  merged.erase(merged.begin() + static_cast<std::ptrdiff_t>(*R));
  return merged == expected;
}

}  // namespace

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::equal:
      return "equal";
    case Verdict::different:
      return "different";
    default:
      return "not judged";
  }
}

std::string Difference::to_string() const {
  return fmt::format("{}step {} = {}: {} on chip {} at [{}]: expected {}, got {}", where, step, op,
                     checkpoint, chip, fmt::join(index, ","), expected, actual);
}

std::string Judgement::explanation() const { return difference ? difference->to_string() : reason; }

Shape judged_offset(const Layout& layout, const Shape& shape, const Torus& torus, int chip) {
  const std::array<int, 3> where = coordinates(torus, chip);
  Shape offset;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    std::int64_t block = 0;
    std::int64_t blocks = 1;
    for (Axis a : layout.dims()[d].axes) {
      block = block * torus.size(a) + where[static_cast<std::size_t>(a)];
      blocks *= torus.size(a);
    }
    offset.push_back(block * (shape[d] / blocks));
  }
  return offset;
}

Judge::Judge(const oracle::Answer& answer, const Weights& weights)
    : answer_(answer), weights_(weights) {}

void Judge::observe(const Scope& scope, const Program& program, const Op* op,
                    const Result& declared, const Sharded& value) {
  const Expected expected = known_value(answer_, weights_, scope, program, declared, value.shape);
  Difference found;
  found.pass = scope.pass;
  found.checkpoint = expected.id;
  found.step = scope.step(program, declared.name);
  found.op = op != nullptr ? op->to_string() : "input";
  found.where = program.where(declared.line);
  const auto stop = [&] {
    judgement_.verdict = Verdict::different;
    judgement_.difference = found;
    throw Stop{};
  };
  if (!fits(expected.shape, declared.layout, value.shape)) {
    found.expected = fmt::format("shape [{}]", fmt::join(expected.shape, ","));
    found.actual = fmt::format("shape [{}]", fmt::join(value.shape, ","));
    stop();
  }
  const bool integer = std::holds_alternative<ChipArrays<std::int32_t>>(value.data);
  if (value.holds_partial() != declared.layout.is_partial() || integer != expected.integer) {
    found.expected = declared.layout.to_string();
    found.actual = value.holds_partial() ? "partial sums" : integer ? "int32" : "complete f32";
    stop();
  }
  Comparison comparison(expected, declared.layout, value);
  const auto first = comparison.run();
  judgement_.elements += comparison.elements();
  if (first) {
    found.chip = first->chip;
    found.index = first->index;
    found.expected = first->expected;
    found.actual = first->actual;
    stop();
  }
  if (element_count(value.shape) > 0) ++judgement_.tensors;
  // Of final_norm the last rows are all that any program needs.
  const Meaning& m = declared.meaning;
  if (m.kind == Meaning::Kind::checkpoint && !value.holds_partial() &&
      (!m.last || m.name == "final_norm"))
    met_.insert(expected.id);
}

void Judge::observe_generated(const IntTensor& generated) {
  const std::int64_t gen = generated.shape[1];
  std::int64_t step = 0;
  for (const std::string& pass : answer_.passes) {
    const auto at = answer_.tokens.find(pass + ".token");
    if (at == answer_.tokens.end()) continue;
    for (std::int64_t b = 0; step < gen && b < generated.shape[0]; ++b) {
      const std::int32_t want = at->second.data[static_cast<std::size_t>(b)];
      const std::int32_t got = generated.data[static_cast<std::size_t>(b * gen + step)];
      if (want == got) continue;
      judgement_.verdict = Verdict::different;
      judgement_.difference = Difference{pass,
                                         at->first,
                                         "generated",
                                         "output",
                                         "(all)",
                                         {b, step},
                                         fmt::format("{}", want),
                                         fmt::format("{}", got)};
      return;
    }
    ++step;
  }
  if (step != gen) judgement_.reason = fmt::format("{} tokens generated, {} wanted", gen, step);
}

Judgement Judge::finish() const {
  Judgement result = judgement_;
  if (result.difference) return result;
  const auto missing = [&](const auto& checkpoints) {
    for (const auto& [id, tensor] : checkpoints)
      if (!met_.contains(id) && result.reason.empty())
        result.reason = fmt::format("the run never showed {}", id);
  };
  missing(answer_.checkpoints);
  missing(answer_.tokens);
  if (result.tensors == 0) result.reason = "nothing was compared";
  result.verdict = result.reason.empty() ? Verdict::equal : Verdict::not_judged;
  return result;
}

}  // namespace shardproof
