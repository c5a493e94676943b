#include "engine/shards/field.h"

#include <Random123/philox.h>
#include <fmt/format.h>

#include <stdexcept>

namespace shardproof {
namespace {

__extension__ using Wide = unsigned __int128;

/// v mod 2^bits − 1, for any v: 2^bits counts as 1.
std::uint64_t reduced(Wide v, int bits, std::uint64_t p) {
  while (v > p) v = (v & p) + (v >> bits);
  return v == p ? 0 : static_cast<std::uint64_t>(v);
}

std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

}  // namespace

std::string to_string(const FieldElement& element) {
  return fmt::format("0x{:016x}:0x{:016x}:0x{:016x}", element.lane[0], element.lane[1],
                     element.lane[2]);
}

FieldFunction::FieldFunction(std::string_view name) : hash_(fnv1a(name)) {}

Field::Field(const FieldSetting& setting)
    : setting_(setting), p_((std::uint64_t{1} << (setting.bits & 63)) - 1) {
  bool known = false;
  for (const int bits : {3, 5, 7, 13, 17, 19, 31, 61}) known = known || bits == setting.bits;
  if (!known || setting.lanes < 1 || setting.lanes > 3)
    throw Error("field_setting",
                fmt::format("bits={} lanes={}; legal: bits 3, 5, 7, 13, 17, 19, 31, 61 and lanes 1 "
                            "to 3",
                            setting.bits, setting.lanes));
}

FieldElement Field::integer(std::int64_t i) const {
  const auto p = static_cast<std::int64_t>(p_);
  const auto residue = static_cast<std::uint64_t>((i % p + p) % p);
  FieldElement v{};
  for (std::size_t n = 0; n < static_cast<std::size_t>(setting_.lanes); ++n) v.lane[n] = residue;
  return v;
}

FieldElement Field::add(const FieldElement& a, const FieldElement& b) const {
  if (!is_number(a) || !is_number(b)) return unwritten();
  FieldElement v{};
  for (std::size_t n = 0; n < 3; ++n) {
    const std::uint64_t sum = a.lane[n] + b.lane[n];
    v.lane[n] = sum >= p_ ? sum - p_ : sum;
  }
  return v;
}

FieldElement Field::subtract(const FieldElement& a, const FieldElement& b) const {
  if (!is_number(a) || !is_number(b)) return unwritten();
  FieldElement v{};
  for (std::size_t n = 0; n < 3; ++n)
    v.lane[n] = a.lane[n] >= b.lane[n] ? a.lane[n] - b.lane[n] : a.lane[n] + p_ - b.lane[n];
  return v;
}

FieldElement Field::multiply(const FieldElement& a, const FieldElement& b) const {
  if (!is_number(a) || !is_number(b)) return unwritten();
  FieldElement v{};
  for (std::size_t n = 0; n < 3; ++n)
    v.lane[n] = reduced(Wide{a.lane[n]} * b.lane[n], setting_.bits, p_);
  return v;
}

FieldElement Field::power(const FieldElement& v, std::int64_t exponent) const {
  FieldElement result = integer(1);
  FieldElement square = v;
  for (; exponent > 0; exponent /= 2, square = multiply(square, square))
    if (exponent % 2 != 0) result = multiply(result, square);
  return result;
}

FieldElement Field::inverse(const FieldElement& v) const {
  if (!is_number(v)) return unwritten();
  for (std::size_t n = 0; n < static_cast<std::size_t>(setting_.lanes); ++n)
    if (v.lane[n] == 0)
      throw Error("field_zero", fmt::format("{} has no inverse: lane {} is 0", to_string(v), n));
  return power(v, static_cast<std::int64_t>(p_) - 2);  // Fermat
}

FieldElement Field::dot(const FieldElement* a, std::int64_t stride_a, const FieldElement* b,
                        std::int64_t stride_b, std::int64_t n) const {
  // A product is below 2^122: a sum of 32, and what was folded before, is below 2^128.
  constexpr std::int64_t kAtOnce = 32;
  std::array<Wide, 3> sums{};
  std::uint64_t all = 0;  // bit 63 is set in unwritten elements and in no number
  for (std::int64_t begin = 0; begin < n; begin += kAtOnce) {
    const std::int64_t end = begin + kAtOnce < n ? begin + kAtOnce : n;
    for (std::int64_t i = begin; i < end; ++i) {
      const FieldElement& x = a[i * stride_a];
      const FieldElement& y = b[i * stride_b];
      all |= x.lane[0] | y.lane[0];
      for (std::size_t lane = 0; lane < 3; ++lane) sums[lane] += Wide{x.lane[lane]} * y.lane[lane];
    }
    for (Wide& sum : sums) sum = (sum & p_) + (sum >> setting_.bits);
  }
  if (all >> 63 != 0) return unwritten();
  FieldElement v{};
  for (std::size_t lane = 0; lane < 3; ++lane)
    v.lane[lane] = reduced(sums[lane], setting_.bits, p_);
  return v;
}

const FieldFunction& Field::function(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  if (const auto at = functions_.find(name); at != functions_.end()) return *at->second;
  return *functions_.emplace(name, std::make_unique<FieldFunction>(name)).first->second;
}

FieldElement Field::apply(const FieldFunction& f, const FieldElement& v) const {
  if (!is_number(v)) return unwritten();
  f.applied_.fetch_add(1, std::memory_order_relaxed);
  return random({v.lane[0], v.lane[1], v.lane[2], 0}, f);
}

FieldElement Field::apply_from_zero(const FieldFunction& f, const FieldElement& v) const {
  return v == FieldElement{} ? v : apply(f, v);
}

FieldElement Field::input(const FieldFunction& stream, std::uint64_t i) const {
  return random({i, 0, 0, 0}, stream);
}

FieldElement Field::random(std::array<std::uint64_t, 4> counter, const FieldFunction& f) const {
  const r123::Philox4x64::key_type key{{setting_.seed, f.hash_}};
  for (std::uint64_t r = static_cast<std::uint64_t>(setting_.draw) << 32;; ++r) {
    const r123::Philox4x64::ctr_type words =
        r123::Philox4x64{}({{counter[0], counter[1], counter[2], r}}, key);
    FieldElement v{};
    bool legal = true;
    for (std::size_t n = 0; n < static_cast<std::size_t>(setting_.lanes); ++n) {
      v.lane[n] = words[n] >> (64 - setting_.bits);
      legal = legal && v.lane[n] != p_;
    }
    if (legal) return v;
  }
}

void Field::met(const FieldDegree& degree) const {
  const std::lock_guard lock(mutex_);
  counts_.degrees.insert(degree);
}

void Field::inverted(int layer, std::int64_t times) const {
  const std::lock_guard lock(mutex_);
  counts_.inverted[layer] += times;
}

int Field::divided(std::string_view division, const FieldDegree& divisor,
                   std::int64_t times) const {
  constexpr int kBeyondLayers = 1 << 20;
  const std::lock_guard lock(mutex_);
  const int next = kBeyondLayers + static_cast<int>(divisions_.size());
  const int number = divisions_.emplace(division, next).first->second;
  for (const auto* of : {&divisor.e, &divisor.more})
    if (!of->empty() && of->rbegin()->first >= number)
      throw std::logic_error("a divisor depends on its own division, or on a later one");
  counts_.divided[{number, divisor}] += times;
  return number;
}

FieldCounts Field::counts() const {
  const std::lock_guard lock(mutex_);
  FieldCounts counts = counts_;
  for (const auto& [name, f] : functions_)
    if (const std::int64_t times = f->applied_; times > 0) counts.applied[name] = times;
  return counts;
}

}  // namespace shardproof
