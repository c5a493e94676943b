#include "oracle/request/detail/request_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "oracle/request/detail/row_alone.h"

namespace shardproof::oracle {

namespace {

using std::size_t;

/// Checks one pass by itself.
void check(const ModelConfig& config, const PassPlan& pass, const SharedPrefix& prefix,
           const IntTensor& ids, IdsOf of) {
  const auto refuse = [&](const std::string& why) {
    throw Error("oracle_range", fmt::format("{}: {}", pass.name, why));
  };
  const bool over_prefixes = pass.phase == Phase::prefix;
  if (over_prefixes && !prefix.given())
    refuse("it runs over prefixes, and no row goes on from one in the last pass");
  if (const SharedPrefix has = over_prefixes ? SharedPrefix{} : prefix; pass.prefix != has)
    refuse(fmt::format("its rows go on from prefixes {:?}, in this run from {:?}",
                       pass.prefix.to_string(), has.to_string()));
  if (over_prefixes && pass.batch() != prefix.rows)
    refuse(fmt::format("{} rows, there are {} prefixes", pass.batch(), prefix.rows));
  if (!over_prefixes && pass.batch() != ids.shape[0])
    refuse(fmt::format("{} rows, the prompt has {}", pass.batch(), ids.shape[0]));
  if (std::all_of(pass.rows.begin(), pass.rows.end(),
                  [](const PassRows& group) { return group.tokens == 0; }))
    refuse("it has no token of any row");
  const std::int64_t first = pass.prefix.length;  // the position of slot 0
  for (const PassRows& group : pass.rows) {
    const std::int64_t end = group.end();
    if (group.start < first || group.tokens < 0 || group.tokens > pass.L ||
        group.start > first + pass.cached)
      refuse(fmt::format("{} tokens from position {} on in a pass of {} over {} cached",
                         group.tokens, group.start, pass.L, first + pass.cached));
    if (end < first + 1) refuse("a row begins without a token");  // its queries would see no key
    if ((pass.phase != Phase::decode || of == IdsOf::all) && end > ids.shape[1])
      refuse(fmt::format("reads to position {}, the prompt has {}", end, ids.shape[1]));
    if (pass.phase == Phase::decode && pass.L != 1)
      refuse(fmt::format("a decode step has one token a row, not {}", pass.L));
    if (over_prefixes && (group.start != pass.cached || group.tokens != pass.L || pass.sample))
      refuse("prefixes are of one length, and none of their tokens is sampled");
    if (rotates(config) && group.start + pass.L > config.positions)
      refuse(fmt::format("needs {} positions, the RoPE table has {}", group.start + pass.L,
                         config.positions));
  }
}

/// Checks that ids [B, L] are in the vocabulary and equal where rows share a prefix.
void check_ids(const ModelConfig& config, const SharedPrefix& prefix, const IntTensor& ids) {
  if (ids.shape.size() != 2 || ids.shape[0] < 1 || ids.shape[1] < 1 ||
      std::cmp_not_equal(ids.data.size(), element_count(ids.shape)))
    throw Error("oracle_range", fmt::format("the prompt must be [B, L] with B, L >= 1; it has {} "
                                            "dims and {} ids",
                                            ids.shape.size(), ids.data.size()));
  const std::int64_t rows = ids.shape[0], length = ids.shape[1];
  for (size_t n = 0; n < ids.data.size(); ++n)
    if (ids.data[n] < 0 || ids.data[n] >= config.V)
      throw Error("oracle_range",
                  fmt::format("prompt[{},{}] is {}, a token id must be in [0, {})",
                              static_cast<std::int64_t>(n) / length,
                              static_cast<std::int64_t>(n) % length, ids.data[n], config.V));
  if (prefix == SharedPrefix{}) return;
  if (prefix.rows < 1 || prefix.rows > rows || prefix.length < 1 || prefix.length >= length)
    throw Error("oracle_range",
                fmt::format("{} prefixes of {} tokens: the prompt of {} rows has from 1 to {} of "
                            "from 1 to {}",
                            prefix.rows, prefix.length, rows, rows, length - 1));
  const std::vector<std::int64_t> first_of = first_rows(prefix, rows);
  for (std::int64_t b = 0; b < rows; ++b) {
    const std::int64_t first = *std::prev(std::upper_bound(first_of.begin(), first_of.end(), b));
    for (std::int64_t p = 0; p < prefix.length; ++p) {
      const auto id = [&](std::int64_t row) {
        return ids.data[static_cast<size_t>(row * length + p)];
      };
      if (id(b) != id(first))
        throw Error("oracle_range",
                    fmt::format("prompt[{},{}] is {}, and {} in row {}, which has the same prefix",
                                b, p, id(b), id(first), first));
    }
  }
}

}  // namespace

void check_request(const ModelConfig& config, const Passes& passes, const IntTensor& prompt,
                   IdsOf of) {
  if (passes.size() < 1) throw Error("oracle_range", "there is no pass to run");
  const SharedPrefix prefix = passes.prefix();
  check_ids(config, prefix, prompt);
  std::int64_t cached = 0;
  const auto rows = static_cast<size_t>(prompt.shape[0]);
  std::vector<std::int64_t> ends(rows);  // end of each row's tokens
  std::vector<bool> sampled(rows);       // whether the row was sampled
  std::set<std::string> names;
  std::string previous;
  Phase phase = Phase::prefix;
  for (std::int64_t i = 0; i < passes.size(); ++i) {
    const PassPlan pass = passes.at(i);
    check(config, pass, prefix, prompt, of);
    if (!names.insert(pass.name).second)  // the name prefixes the ids
      throw Error("oracle_range", fmt::format("two passes are called {}", pass.name));
    if (pass.phase < phase)  // caches pass to the next phase once
      throw Error("oracle_range",
                  fmt::format("{}: a {} after {}", pass.name,
                              pass.phase == Phase::prefix ? "pass over prefixes" : "prefill pass",
                              phase == Phase::decode ? previous + ", a decode step" : previous));
    if (phase == Phase::prefix && pass.phase != Phase::prefix) {  // the rows' own caches begin
      if (cached != prefix.length)
        throw Error("oracle_range",
                    fmt::format("{}: its rows go on from prefixes of {} tokens, the passes before "
                                "it have {}",
                                pass.name, prefix.length, cached));
      previous = "";
      cached = 0;
      ends.assign(rows, prefix.length);
    }
    if (pass.previous != previous)
      throw Error("oracle_range", fmt::format("{}: the pass before it is {:?}, not {:?}", pass.name,
                                              previous, pass.previous));
    previous = pass.name;
    phase = pass.phase;
    if (pass.cached != cached)
      throw Error("oracle_range", fmt::format("{}: {} slots are cached before it, not {}",
                                              pass.name, cached, pass.cached));
    // Otherwise its queries would see keys of padding, or unwritten slots.
    size_t row = 0;
    for (const PassRows& group : pass.rows)
      for (std::int64_t n = 0; n < group.rows; ++n, ++row) {
        if (group.start > ends[row])
          throw Error("oracle_range",
                      fmt::format("{}: row {} goes on at position {}, its tokens end "
                                  "before {}",
                                  pass.name, row, group.start, ends[row]));
        if (pass.phase == Phase::decode && group.tokens > 0 && !sampled[row])
          throw Error("oracle_range", fmt::format("{}: no pass before it sampled a token of row {}",
                                                  pass.name, row));
        ends[row] = group.end();
        if (pass.samples(group)) sampled[row] = true;
      }
    cached += pass.L;
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
