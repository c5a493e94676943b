#include "golden/judge.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstring>

#include "weights/registry.h"

namespace shardproof {
namespace {

/// What a declared value must be: bits by global index, row-major. f32 values and int32 ids alike.
struct Expected {
  std::string id;
  Shape shape;
  std::vector<std::uint32_t> bits;
  bool integer = false;
};

template <class T>
Expected expect(std::string id, const Array<T>& tensor) {
  Expected e{std::move(id), tensor.shape, std::vector<std::uint32_t>(tensor.data.size()),
             std::is_same_v<T, std::int32_t>};
  std::memcpy(e.bits.data(), tensor.data.data(), 4 * tensor.data.size());
  return e;
}

/// Of a tensor [B, L, ...] the last position of every row: [B, ...].
Expected last_rows(Expected e) {
  const std::int64_t B = e.shape[0];
  const std::int64_t L = e.shape[1];
  const auto row = static_cast<std::ptrdiff_t>(static_cast<std::int64_t>(e.bits.size()) / (B * L));
  std::vector<std::uint32_t> kept;
  for (std::int64_t b = 0; b < B; ++b) {
    const auto begin = e.bits.begin() + ((b + 1) * L - 1) * row;
    kept.insert(kept.end(), begin, begin + row);
  }
  e.bits = std::move(kept);
  e.shape.erase(e.shape.begin() + 1);
  return e;
}

/// The best logit of each of C equal blocks of the vocabulary, the first of equals: value or index.
Expected candidates(const std::string& id, const Tensor& logits, std::int64_t C, bool index) {
  const std::int64_t B = logits.shape[0];
  const std::int64_t width = logits.shape[1] / C;
  Expected e{id, {B, C}, {}, index};
  for (std::int64_t i = 0; i < B * C; ++i) {
    const float* block = logits.data.data() + i * width;
    std::int64_t best = 0;
    for (std::int64_t v = 1; v < width; ++v)
      if (block[v] > block[best]) best = v;
    e.bits.push_back(index ? static_cast<std::uint32_t>(i % C * width + best)
                           : std::bit_cast<std::uint32_t>(block[best]));
  }
  return e;
}

std::string show(std::uint32_t bits, bool integer) {
  if (integer) return fmt::format("{}", static_cast<std::int32_t>(bits));
  return fmt::format("{:.9g} (0x{:08x})", std::bit_cast<float>(bits), bits);
}

std::string full_checkpoint(const Scope& scope, const std::string& pass, const std::string& name) {
  if (name == "in")
    return scope.layer == 0 ? checkpoint_id(pass, -1, "embed")
                            : checkpoint_id(pass, scope.layer - 1, "out");
  const bool global = name == "embed" || name == "final_norm" || name == "logits" ||
                      name == "token" || name == "final_ss";
  return checkpoint_id(pass, global ? -1 : scope.layer, name);
}

Expected expected_value(const oracle::Answer& answer, const Weights& weights, const Scope& scope,
                        const Meaning& meaning, const Sharded& value) {
  const std::string id = full_checkpoint(scope, scope.pass, meaning.name);
  switch (meaning.kind) {
    case Meaning::Kind::checkpoint:
      if (meaning.name == "token") return expect(id, answer.tokens.at(id));
      return expect(id, answer.checkpoints.at(id));
    case Meaning::Kind::raw:
      return expect("raw " + id, answer.raw_of(id));
    case Meaning::Kind::unstored:
      return expect("unstored " + id, answer.unstored_of(id));
    case Meaning::Kind::stat:
      if (meaning.name == "candidates" || meaning.name == "indices")
        return candidates("stat " + scope.pass + "." + meaning.name,
                          answer.checkpoints.at(checkpoint_id(scope.pass, -1, "logits")),
                          value.shape.back(), meaning.name == "indices");
      return expect("stat " + id, answer.stats.at(id));
    case Meaning::Kind::weight: {
      const std::string of_layer = fmt::format("layer{}.{}", scope.layer, meaning.name);
      const std::string& name = weights.all().contains(of_layer) ? of_layer : meaning.name;
      return expect("weight " + name, weights.at(name));
    }
    case Meaning::Kind::input: {
      const std::string name = scope.pass + "." + meaning.name;
      return expect("input " + name, answer.inputs.at(name));
    }
    case Meaning::Kind::previous: {
      if (scope.previous.empty()) return {"previous " + meaning.name, value.shape, {}, false};
      const std::string before = full_checkpoint(scope, scope.previous, meaning.name);
      return expect("previous " + before, answer.checkpoints.at(before));
    }
  }
  return {};
}

/// Compares one value; fills chip, index, expected and actual of the first difference.
class Comparison {
 public:
  Comparison(const Expected& expected, const Sharded& value) : expected_(expected), value_(value) {
    const Layout& layout = value.layout;
    local_.resize(layout.rank());
    for (std::size_t d = 0; d < layout.rank(); ++d) {
      std::int64_t blocks = 1;
      for (Axis a : layout.dims()[d].axes) blocks *= value.torus.size(a);
      local_[d] = value.shape[d] / blocks;
    }
  }

  std::int64_t elements() const { return elements_; }

  /// Calls bits_of(chip, local index) for the chips that stand for a value: all of them, or of a
  /// partial the first of each group that sums up to it.
  template <class BitsOf>
  std::optional<Difference> run(BitsOf&& bits_of) {
    for (int chip = 0; chip < value_.torus.chips(); ++chip) {
      if (!first_of_group(chip)) continue;
      const Shape offset = judged_offset(value_.layout, value_.shape, value_.torus, chip);
      Shape index(local_.size(), 0);
      const std::int64_t count = element_count(local_);
      for (std::int64_t i = 0; i < count; ++i) {
        std::int64_t global = 0;
        for (std::size_t d = 0; d < index.size(); ++d)
          global = global * value_.shape[d] + offset[d] + index[d];
        const std::uint32_t want = expected_.bits[static_cast<std::size_t>(global)];
        const std::uint32_t got = bits_of(chip, i);
        ++elements_;
        if (got != want) return difference(chip, offset, index, want, got);
        for (std::size_t d = index.size(); d-- > 0 && ++index[d] == local_[d];) index[d] = 0;
      }
    }
    return std::nullopt;
  }

 private:
  bool first_of_group(int chip) const {
    for (Axis a : value_.layout.partial())
      if (value_.torus.coordinate(chip, a) != 0) return false;
    return true;
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
  const Sharded& value_;
  Shape local_;
  std::int64_t elements_ = 0;
};

/// The chips whose partial shards sum up to what `chip` stands for.
std::vector<int> summed_group(const Torus& torus, const Axes& partial, int chip) {
  std::vector<int> group;
  for (int other = 0; other < torus.chips(); ++other) {
    bool same = true;
    for (Axis a : {Axis::x, Axis::y, Axis::z})
      same = same && (partial.has(a) || torus.coordinate(other, a) == torus.coordinate(chip, a));
    if (same) group.push_back(other);
  }
  return group;
}

std::optional<Difference> compare(const Expected& expected, const Sharded& value,
                                  std::int64_t& elements) {
  Comparison comparison(expected, value);
  std::optional<Difference> found;
  if (value.holds_partial()) {
    int chip_of_group = -1;
    std::vector<Element> sum;
    found = comparison.run([&](int chip, std::int64_t i) {
      if (chip != chip_of_group) {
        sum.clear();
        for (int member : summed_group(value.torus, value.layout.partial(), chip))
          sum.push_back({member, i});
        chip_of_group = chip;
      }
      for (Element& e : sum) e.index = i;
      return std::bit_cast<std::uint32_t>(value.partial().rounded_sum(sum));
    });
  } else if (expected.integer) {
    found = comparison.run([&](int chip, std::int64_t i) {
      return static_cast<std::uint32_t>(
          value.i32()[static_cast<std::size_t>(chip)][static_cast<std::size_t>(i)]);
    });
  } else {
    found = comparison.run([&](int chip, std::int64_t i) {
      return std::bit_cast<std::uint32_t>(
          value.f32()[static_cast<std::size_t>(chip)][static_cast<std::size_t>(i)]);
    });
  }
  elements += comparison.elements();
  return found;
}

/// S_zR_yx holds the same elements in the same order as H_zyx.
bool same_elements(const Shape& expected, const Shape& actual) {
  if (expected == actual) return true;
  return expected.size() + 1 == actual.size() && element_count(expected) == element_count(actual);
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
  return fmt::format("step {} = {}: {} on chip {} at [{}]: expected {}, got {}", step, op,
                     checkpoint, chip, fmt::join(index, ","), expected, actual);
}

std::string Judgement::explanation() const { return difference ? difference->to_string() : reason; }

Shape judged_offset(const Layout& layout, const Shape& shape, const Torus& torus, int chip) {
  const int Y = torus.size(Axis::y);
  const int Z = torus.size(Axis::z);
  const std::array<int, 3> where{chip / (Y * Z), chip / Z % Y, chip % Z};
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
  const Expected whole = expected_value(answer_, weights_, scope, declared.meaning, value);
  const Expected expected = declared.meaning.last ? last_rows(whole) : whole;
  Difference found;
  found.pass = scope.pass;
  found.checkpoint = expected.id;
  found.step = scope.step(program, declared.name);
  found.op = op != nullptr ? op->to_string() : "input";
  const auto stop = [&] {
    judgement_.verdict = Verdict::different;
    judgement_.difference = found;
    throw Stop{};
  };
  if (!same_elements(expected.shape, value.shape)) {
    found.expected = fmt::format("shape [{}]", fmt::join(expected.shape, ","));
    found.actual = fmt::format("shape [{}]", fmt::join(value.shape, ","));
    stop();
  }
  if (const auto first = compare(expected, value, judgement_.elements)) {
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
