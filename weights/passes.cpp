#include "weights/passes.h"

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

Passes::Passes(std::vector<PassPlan> list) : list_(std::move(list)) {}

Passes::Passes(std::int64_t batch, std::int64_t prompt, std::int64_t chunk, std::int64_t gen)
    : batch_(batch), prompt_(prompt), chunk_(chunk == 0 ? prompt : std::min(chunk, prompt)) {
  for (const auto& [name, value, least] :
       {std::tuple{"batch", batch, 1}, {"prompt", prompt, 1}, {"chunk", chunk, 0}, {"gen", gen, 1}})
    if (value < least)
      throw Error("passes_c1", fmt::format("{}={} must be at least {}", name, value, least));
  chunks_ = (prompt_ + chunk_ - 1) / chunk_;
  steps_ = gen - 1;
}

PassPlan Passes::at(std::int64_t i) const {
  if (!list_.empty()) return list_.at(static_cast<std::size_t>(i));
  const auto name = [&](std::int64_t n) {
    return n < chunks_ ? prefill_pass(n) : decode_pass(n - chunks_ + 1);
  };
  PassPlan pass;
  pass.name = name(i);
  if (i > 0) pass.previous = name(i - 1);
  pass.phase = i < chunks_ ? Phase::prefill : Phase::decode;
  pass.cached = i < chunks_ ? i * chunk_ : prompt_ + i - chunks_;
  pass.L = i < chunks_ ? std::min(chunk_, prompt_ - pass.cached) : 1;
  pass.rows = {{batch_, pass.cached, pass.L}};
  pass.sample = i + 1 >= chunks_;
  return pass;
}

std::int64_t Passes::batch() const { return list_.empty() ? batch_ : list_[0].batch(); }

std::int64_t Passes::prompt() const {
  std::int64_t end = prompt_;
  for (const PassPlan& pass : list_)
    for (const PassRows& group : pass.rows)
      if (pass.phase == Phase::prefill) end = std::max(end, group.start + group.tokens);
  return end;
}

std::int64_t Passes::gen() const {
  if (list_.empty()) return size() > 0 ? steps_ + 1 : 0;
  return std::count_if(list_.begin(), list_.end(),
                       [](const PassPlan& pass) { return pass.sample; });
}

bool Passes::decodes() const {
  return steps_ > 0 || std::any_of(list_.begin(), list_.end(), [](const PassPlan& pass) {
           return pass.phase == Phase::decode;
         });
}

std::int64_t Passes::cached() const {
  return list_.empty() ? prompt_ + steps_ : list_.back().cached + list_.back().L;
}

std::int64_t Passes::cached_by_prefill() const {
  std::int64_t slots = prompt_;
  for (const PassPlan& pass : list_)
    if (pass.phase == Phase::prefill) slots = pass.cached + pass.L;
  return slots;
}

bool Passes::operator==(const Passes& other) const {
  if (list_.empty() && other.list_.empty())
    return batch_ == other.batch_ && prompt_ == other.prompt_ && chunk_ == other.chunk_ &&
           steps_ == other.steps_;
  if (size() != other.size()) return false;
  for (std::int64_t i = 0; i < size(); ++i)
    if (!(at(i) == other.at(i))) return false;
  return true;
}

std::vector<Passes::Group> Passes::groups() const {
  std::vector<Group> groups;
  if (list_.empty()) {
    const std::int64_t whole = chunk_ > 0 ? prompt_ / chunk_ : 0;
    for (const auto& [from, to] :
         {std::pair{std::int64_t{0}, whole}, {whole, chunks_}, {chunks_, size()}})
      if (from < to) groups.push_back({from, to - 1});
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

std::string prefill_pass(std::int64_t chunk) { return fmt::format("prefill.c{}", chunk); }
std::string decode_pass(std::int64_t step) { return fmt::format("decode.{}", step); }

}  // namespace shardproof
