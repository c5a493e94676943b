#include "oracle/request_check.h"

#include <fmt/format.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace shardproof::oracle {

namespace {

using std::size_t;

void check(const ModelConfig& config, const PassPlan& pass, const IntTensor& ids, IdsOf of) {
  const auto refuse = [&](const std::string& why) {
    throw Error("oracle_range", fmt::format("{}: {}", pass.name, why));
  };
  if (pass.batch() != ids.shape[0])
    refuse(fmt::format("{} rows, the prompt has {}", pass.batch(), ids.shape[0]));
  for (const PassRows& group : pass.rows) {
    const std::int64_t end = group.start + group.tokens;
    if (group.start < 0 || group.tokens < 1 || group.tokens > pass.L || group.start > pass.cached)
      refuse(fmt::format("{} tokens from position {} on in a pass of {} over {} cached",
                         group.tokens, group.start, pass.L, pass.cached));
    if ((pass.phase == Phase::prefill || of == IdsOf::all) && end > ids.shape[1])
      refuse(fmt::format("reads to position {}, the prompt has {}", end, ids.shape[1]));
    if (pass.phase == Phase::decode && pass.L != 1)
      refuse(fmt::format("a decode step has one token a row, not {}", pass.L));
    if (rotates(config) && group.start + pass.L > config.positions)
      refuse(fmt::format("needs {} positions, the RoPE table has {}", group.start + pass.L,
                         config.positions));
  }
}

}  // namespace

void check_request(const ModelConfig& config, const Passes& passes, const IntTensor& prompt,
                   IdsOf of) {
  if (prompt.shape.size() != 2 || prompt.shape[0] < 1 || prompt.shape[1] < 1 ||
      std::cmp_not_equal(prompt.data.size(), element_count(prompt.shape)))
    throw Error("oracle_range", fmt::format("the prompt must be [B, L] with B, L >= 1; it has {} "
                                            "dims and {} ids",
                                            prompt.shape.size(), prompt.data.size()));
  if (passes.size() < 1) throw Error("oracle_range", "there is no pass to run");
  const std::int64_t length = prompt.shape[1];
  for (size_t n = 0; n < prompt.data.size(); ++n)
    if (prompt.data[n] < 0 || prompt.data[n] >= config.V)
      throw Error("oracle_range",
                  fmt::format("prompt[{},{}] is {}, a token id must be in [0, {})",
                              static_cast<std::int64_t>(n) / length,
                              static_cast<std::int64_t>(n) % length, prompt.data[n], config.V));
  std::int64_t cached = 0;
  std::vector<std::int64_t> ends(static_cast<size_t>(prompt.shape[0]));  // of the rows' tokens
  bool sampled = false;
  std::set<std::string> names;
  std::string previous;
  Phase phase = Phase::prefill;
  for (std::int64_t i = 0; i < passes.size(); ++i) {
    const PassPlan pass = passes.at(i);
    check(config, pass, prompt, of);
    if (!names.insert(pass.name).second)  // ids begin with it
      throw Error("oracle_range", fmt::format("two passes are called {}", pass.name));
    if (pass.previous != previous)
      throw Error("oracle_range", fmt::format("{}: the pass before it is {:?}, not {:?}", pass.name,
                                              previous, pass.previous));
    if (phase == Phase::decode && pass.phase == Phase::prefill)  // caches are handed over once
      throw Error("oracle_range",
                  fmt::format("{}: a prefill pass after {}, a decode step", pass.name, previous));
    previous = pass.name;
    phase = pass.phase;
    if (pass.cached != cached)
      throw Error("oracle_range", fmt::format("{}: {} slots are cached before it, not {}",
                                              pass.name, cached, pass.cached));
    if (pass.phase == Phase::decode && !sampled)
      throw Error("oracle_range", fmt::format("{}: no pass before it sampled a token", pass.name));
    // Else its queries would see keys of padding, or slots that nothing wrote.
    size_t row = 0;
    for (const PassRows& group : pass.rows)
      for (std::int64_t n = 0; n < group.rows; ++n, ++row) {
        if (group.start > ends[row])
          throw Error("oracle_range",
                      fmt::format("{}: row {} goes on at position {}, its tokens end "
                                  "before {}",
                                  pass.name, row, group.start, ends[row]));
        ends[row] = group.start + group.tokens;
      }
    cached += pass.L;
    sampled = sampled || pass.sample;
  }
}

IntTensor ids_at(const PassPlan& pass, const IntTensor& ids) {
  IntTensor read({ids.shape[0], pass.L});
  std::int64_t b = 0;
  for (const PassRows& group : pass.rows)
    for (std::int64_t n = 0; n < group.rows; ++n, ++b)
      for (std::int64_t i = 0; i < group.tokens; ++i)
        read.data[static_cast<size_t>(b * pass.L + i)] =
            ids.data[static_cast<size_t>(b * ids.shape[1] + group.start + i)];
  return read;
}

}  // namespace shardproof::oracle
