#include "golden/compare/readers.h"

namespace shardproof {

void SummedShards::Reader::sum(std::int64_t from) {
  from_ = from;
  to_ = std::min(from + BlockSums::kMost, block_);
  sums_.clear(to_ - from_);
  for (const Element& element : elements_) {
    const auto chip = static_cast<std::size_t>(element.chip);
    const Buffer<float>& bounds = partial_.bounds[chip];
    sums_.add(partial_.values[chip].data() + from, bounds.empty() ? nullptr : bounds.data() + from);
  }
  sums_.finish();
}

namespace {

std::uint32_t word_at(const std::byte* words, std::int64_t i) {
  std::uint32_t word;
  std::memcpy(&word, words + static_cast<std::size_t>(i) * sizeof word, sizeof word);
  return word;
}

}  // namespace

std::int64_t SummedShards::Reader::wrong(std::int64_t local, const std::byte* want,
                                         std::int64_t n) {
  for (std::int64_t done = 0; done < n;) {
    const std::int64_t next = local + done;
    if (next < from_ || next >= to_) sum(next);
    const std::int64_t end = std::min(n, to_ - local);
    const std::byte* const words = want + static_cast<std::size_t>(done) * sizeof(Word);
    if (sums_.are(words, next - from_, end - done)) {
      const std::int64_t right = look_apart(next, words, end - done);
      if (right < end - done) return done + right;
    } else {
      for (std::int64_t i = done; i < end; ++i)
        if (at(local + i, word_at(want, i)) != word_at(want, i)) return i;
    }
    done = end;
  }
  return n;
}

std::int64_t SummedShards::Reader::look_apart(std::int64_t local, const std::byte* want,
                                              std::int64_t n) {
  for (std::int64_t i = (local + every_ - 1) / every_ * every_ - local; i < n; i += every_)
    if (at(local + i, word_at(want, i)) != word_at(want, i)) return i;
  return n;
}

std::uint32_t SummedShards::Reader::at(std::int64_t local, Word want) {
  for (Element& element : elements_) element.index = local;
  const auto rounded = std::bit_cast<Word>(partial_.rounded_sum(elements_));
  if (rounded != want || local % every_ != 0) return rounded;
  return std::bit_cast<Word>(partial_.sum_of_origins(elements_));
}

FieldElement SummedNumbers::Reader::at(std::int64_t local, const Word&) const {
  const std::uint64_t p = of_.shards.field->p();
  FieldElement sum{};
  for (const int chip : group_) {
    const FieldElement& v = of_.of(chip)[static_cast<std::size_t>(local)];
    for (std::size_t lane = 0; lane < sum.lane.size(); ++lane) {
      if (v.lane[lane] >= p) return v;
      sum.lane[lane] = (sum.lane[lane] + v.lane[lane]) % p;
    }
  }
  return sum;
}

std::int64_t SummedNumbers::Reader::wrong(std::int64_t local, const std::byte* want,
                                          std::int64_t n) const {
  for (std::int64_t i = 0; i < n; ++i) {
    Word must_be;
    std::memcpy(&must_be, want + static_cast<std::size_t>(i) * sizeof must_be, sizeof must_be);
    if (at(local + i, must_be) != must_be) return i;
  }
  return n;
}

}  // namespace shardproof
