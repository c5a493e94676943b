#include "weights/model/passes.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace shardproof {

std::int64_t PassPlan::batch() const {
  std::int64_t count = 0;
  for (const PassRows& group : rows) count += group.rows;
  return count;
}

bool PassPlan::full() const {
  return std::all_of(rows.begin(), rows.end(),
                     [&](const PassRows& group) { return group.tokens == L; });
}

Passes::Passes(std::vector<PassPlan> list) : list_(std::move(list)) {}

Passes::Passes(std::int64_t batch, std::int64_t prompt, std::int64_t chunk, std::int64_t gen,
               const SharedPrefix& prefix)
    : rows_{{batch, prompt}},
      prompt_(prompt),
      chunk_(chunk == 0 ? prompt : std::min(chunk, prompt)),
      steps_(gen - 1),
      prefix_(prefix) {
  for (const auto& [name, value, least] :
       {std::tuple{"batch", batch, 1}, {"prompt", prompt, 1}, {"chunk", chunk, 0}, {"gen", gen, 1}})
    if (value < least)
      throw Error("passes_c1", fmt::format("{}={} must be at least {}", name, value, least));
  require_prefix(prefix, batch, prompt);
  count_chunks(prompt);
}

Passes::Passes(const std::vector<std::int64_t>& lengths, std::int64_t prompt, std::int64_t chunk,
               std::int64_t gen, const SharedPrefix& prefix)
    : Passes(std::ssize(lengths), prompt, chunk, gen) {
  prefix_ = prefix;
  rows_.clear();
  for (const std::int64_t length : lengths) {
    if (length < 1 || length > prompt)
      throw Error("passes_c1",
                  fmt::format("length={} must be from 1 to prompt={}", length, prompt));
    if (rows_.empty() || rows_.back().length != length) rows_.push_back({0, length});
    ++rows_.back().rows;
  }
  const auto [shortest, longest] = std::minmax_element(lengths.begin(), lengths.end());
  require_prefix(prefix, batch(), *shortest);
  count_chunks(*longest);
}

void Passes::count_chunks(std::int64_t longest) {
  const auto chunks_of = [&](std::int64_t tokens) { return (tokens + chunk_ - 1) / chunk_; };
  prefix_chunks_ = chunks_of(prefix_.length);
  chunks_ = chunks_of(longest - prefix_.length);
  prompt_ = std::min(prompt_, prefix_.length + chunks_ * chunk_);
}

PassPlan Passes::at(std::int64_t i) const {
  if (!list_.empty()) return list_.at(static_cast<std::size_t>(i));
  PassPlan pass;
  if (i < prefix_chunks_) {
    pass.name = prefix_pass(i);
    if (i > 0) pass.previous = prefix_pass(i - 1);
    pass.phase = Phase::prefix;
    pass.cached = i * chunk_;
    pass.L = std::min(chunk_, prefix_.length - pass.cached);
    pass.sample = false;
    pass.rows = {{prefix_.rows, pass.cached, pass.L, true}};
    return pass;
  }
  i -= prefix_chunks_;
  const auto name = [&](std::int64_t n) {
    return n < chunks_ ? prefill_pass(n) : decode_pass(n - chunks_ + 1);
  };
  const std::int64_t own = prompt_ - prefix_.length;  // positions of the prefill
  pass.name = name(i);
  if (i > 0) pass.previous = name(i - 1);
  pass.phase = i < chunks_ ? Phase::prefill : Phase::decode;
  pass.prefix = prefix_;
  pass.cached = i < chunks_ ? i * chunk_ : own + i - chunks_;
  pass.L = i < chunks_ ? std::min(chunk_, own - pass.cached) : 1;
  pass.sample = i >= chunks_;
  for (const auto& [rows, length] : rows_) {
    PassRows group{rows, length + i - chunks_, 1, true};  // a decode step
    if (i < chunks_) {
      group.start = std::min(prefix_.length + pass.cached, length);
      group.tokens = std::min(length - group.start, pass.L);
      group.last = group.end() == length;
      pass.sample = pass.sample || (group.last && group.tokens > 0);
    }
    pass.rows.push_back(group);
  }
  if (!pass.sample)
    for (PassRows& group : pass.rows) group.last = true;
  return pass;
}

std::int64_t Passes::batch() const {
  if (!list_.empty()) return list_.back().batch();
  std::int64_t count = 0;
  for (const Rows& group : rows_) count += group.rows;
  return count;
}

SharedPrefix Passes::prefix() const { return list_.empty() ? prefix_ : list_.back().prefix; }

std::int64_t Passes::prompt() const {
  std::int64_t end = prompt_;
  for (const PassPlan& pass : list_)
    for (const PassRows& group : pass.rows)
      if (pass.phase == Phase::prefill) end = std::max(end, group.start + group.tokens);
  return end;
}

std::int64_t Passes::gen() const {
  if (list_.empty()) return size() > 0 ? steps_ + 1 : 0;
  std::vector<std::int64_t> sampled(static_cast<std::size_t>(batch()));
  for (const PassPlan& pass : list_) {
    auto row = sampled.begin();
    for (const PassRows& group : pass.rows)
      for (std::int64_t n = 0; n < group.rows; ++n, ++row) *row += pass.samples(group) ? 1 : 0;
  }
  return sampled.empty() ? 0 : *std::max_element(sampled.begin(), sampled.end());
}

bool Passes::full() const {
  if (list_.empty())
    return std::all_of(rows_.begin(), rows_.end(),
                       [&](const Rows& group) { return group.length == prompt_; });
  return std::all_of(list_.begin(), list_.end(), [](const PassPlan& pass) { return pass.full(); });
}

bool Passes::decodes() const {
  return steps_ > 0 || std::any_of(list_.begin(), list_.end(), [](const PassPlan& pass) {
           return pass.phase == Phase::decode;
         });
}

std::int64_t Passes::cached() const {
  return list_.empty() ? prompt_ - prefix_.length + steps_ : list_.back().cached + list_.back().L;
}

std::int64_t Passes::cached_by_prefill() const {
  std::int64_t slots = prompt_ - prefix_.length;
  for (const PassPlan& pass : list_)
    if (pass.phase == Phase::prefill) slots = pass.cached + pass.L;
  return slots;
}

bool Passes::operator==(const Passes& other) const {
  if (list_.empty() && other.list_.empty())
    return rows_ == other.rows_ && prompt_ == other.prompt_ && chunk_ == other.chunk_ &&
           steps_ == other.steps_ && prefix_ == other.prefix_;
  if (size() != other.size()) return false;
  for (std::int64_t i = 0; i < size(); ++i)
    if (!(at(i) == other.at(i))) return false;
  return true;
}

std::vector<Passes::Group> Passes::groups() const {
  std::vector<Group> groups;
  if (list_.empty()) {
    const auto whole = [&](std::int64_t tokens) { return chunk_ > 0 ? tokens / chunk_ : 0; };
    const std::int64_t prefixes = prefix_chunks_;
    const std::int64_t prefill = prefixes + whole(prompt_ - prefix_.length);
    std::int64_t from = 0;
    for (const std::int64_t to :
         {whole(prefix_.length), prefixes, prefill, prefixes + chunks_, size()}) {
      if (from < to) groups.push_back({from, to - 1});
      from = std::max(from, to);
    }
    return groups;
  }
  for (std::int64_t i = 0; i < size(); ++i) {
    const PassPlan pass = at(i);
    const PassPlan before = at(std::max<std::int64_t>(i - 1, 0));
    if (i > 0 && pass.phase == before.phase && pass.L == before.L)
      groups.back().last = i;
    else
      groups.push_back({i, i});
  }
  return groups;
}

std::string prefix_pass(std::int64_t chunk) { return fmt::format("prefix.c{}", chunk); }
std::string prefill_pass(std::int64_t chunk) { return fmt::format("prefill.c{}", chunk); }
std::string decode_pass(std::int64_t step) { return fmt::format("decode.{}", step); }

}  // namespace shardproof
