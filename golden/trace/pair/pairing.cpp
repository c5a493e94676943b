#include "golden/trace/pair/pairing.h"

#include <algorithm>
#include <map>
#include <set>

#include "weights/base/detail/index.h"
#include "weights/base/detail/stable_sort.h"

namespace shardproof::dump {
namespace {

std::int64_t order_in(const JudgedTrace& of, std::size_t row) {
  return order_of(of.values[row].subject, of.claim.source_case.model,
                  of.claim.source_case.passes());
}

}  // namespace

std::vector<Partners> partners_by_id(const JudgedTrace& a, const JudgedTrace& b) {
  std::map<std::string, std::vector<std::size_t>> in_b;  // by title
  for (std::size_t j = 0; j < b.values.size(); ++j) in_b[b.verdict.rows[j].title].push_back(j);
  std::map<std::string, std::size_t> first_of_a;
  std::vector<Partners> all;
  std::set<std::size_t> used;
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    const std::string& title = a.verdict.rows[i].title;
    first_of_a.emplace(title, i);
    Partners pair{i, std::nullopt, false, {}, order_in(a, i)};
    if (const auto found = in_b.find(title); found != in_b.end()) {
      const std::vector<std::size_t>& rows = found->second;
      // Blocks of the vocabulary are counted by the layout: they are other values.
      const JudgedValue& first = b.values[rows.front()];
      if (first.subject.of_blocks() && first.subject.shape != a.values[i].subject.shape) {
        all.push_back(pair);
        continue;
      }
      const auto same = std::find_if(rows.begin(), rows.end(), [&](std::size_t j) {
        return b.values[j].name == a.values[i].name;
      });
      pair.b = same == rows.end() ? rows.front() : *same;
      used.insert(*pair.b);
    }
    all.push_back(pair);
  }
  for (std::size_t j = 0; j < b.values.size(); ++j) {
    if (used.contains(j)) continue;
    auto found = first_of_a.find(b.verdict.rows[j].title);
    if (found != first_of_a.end() && b.values[j].subject.of_blocks() &&
        a.values[found->second].subject.shape != b.values[j].subject.shape)
      found = first_of_a.end();
    all.push_back({found == first_of_a.end() ? std::nullopt : std::optional(found->second),
                   j,
                   false,
                   {},
                   order_in(b, j)});
  }
  stable_sort(all, [](const Partners& x, const Partners& y) { return x.order < y.order; });
  return all;
}

std::vector<Partners> partners_by_places(const JudgedTrace& a, const JudgedTrace& b,
                                         const Matcher& matcher) {
  std::vector<Partners> all;
  std::vector<std::set<std::int64_t>> met(b.values.size());
  const auto add = [](std::optional<std::size_t>& first, std::vector<std::size_t>& more,
                      std::size_t row) {
    if (!first)
      first = row;
    else if (*first != row && std::find(more.begin(), more.end(), row) == more.end())
      more.push_back(row);
  };
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    Partners pair{i, std::nullopt, false, {}, order_in(a, i)};
    matcher.each(false, i, [&](std::int64_t, const Matcher::Partner& partner) {
      add(pair.b, pair.more, partner.array);
      met[partner.array].insert(partner.element);
    });
    all.push_back(pair);
  }
  for (std::size_t j = 0; j < b.values.size(); ++j) {
    Partners pair{std::nullopt, j, true, {}, order_in(b, j)};
    bool left = met[j].empty();
    matcher.each(true, j, [&](std::int64_t element, const Matcher::Partner& partner) {
      if (met[j].contains(element)) return;
      left = true;
      add(pair.a, pair.more, partner.array);
    });
    if (left) all.push_back(pair);
    met[j].clear();
  }
  return all;
}

std::vector<MatchedArray> matched_arrays(const JudgedTrace& of) {
  std::vector<MatchedArray> all;
  for (const JudgedValue& value : of.values) {
    Subject s = value.subject;
    s.last = false;
    all.push_back({s.pass, without_pass(s.title(), s.pass), s.dims, s.shape,
                   without_pass(value.name, s.pass)});
  }
  return all;
}

}  // namespace shardproof::dump
