#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "golden/trace/claim/given_values.h"
#include "golden/trace/value/detail/array_values.h"
#include "golden/trace/value/dumped_value.h"
#include "golden/trace/value/wire.h"
#include "weights/base/detail/stable_sort.h"

namespace shardproof::dump {
namespace {

/// Returns the names by the file's `order`; names without one follow, by passes, because an HDF5
/// file lists them alphabetically, the decode before the prefill.
std::vector<std::string> names_in_order(const dump::Dump& dump, const Passes& passes) {
  std::vector<std::pair<std::int64_t, std::string>> sorted;
  for (std::string& name : dump::in_order(dump)) {
    const bool has_place = dump::place_in_run(dump.values.find(name)->second).has_value();
    const std::int64_t rank =
        has_place ? std::numeric_limits<std::int64_t>::min() : pass_of(name, passes);
    sorted.emplace_back(rank, std::move(name));
  }
  stable_sort(sorted, [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> names;
  for (auto& [rank, name] : sorted) names.push_back(std::move(name));
  return names;
}

/// Adds another part of the same value.
void add_term(DumpedValue& sum, const DumpedValue& other) {
  if (sum.misfit) return;
  if (other.misfit || !(sum.layout == other.layout) || !(sum.places == other.places)) {
    sum = misfit(sum.name, sum.subject,
                 other.misfit ? fmt::format("its term {}: {}", other.name, other.why_not)
                              : fmt::format("{} and {}, its terms, are in different layouts",
                                            sum.name, other.name));
    return;
  }
  if (sum.sizes.empty()) {
    for (Numbers& shard : sum.shards) {
      std::vector<double>& sizes = sum.sizes.emplace_back(shard.own());
      for (double& v : sizes) v = std::abs(v);
    }
  }
  for (std::size_t chip = 0; chip < sum.shards.size(); ++chip)
    for (std::size_t i = 0; i < sum.shards[chip].size(); ++i) {
      sum.shards[chip].own()[i] += other.shards[chip][i];
      sum.sizes[chip][i] += std::abs(other.shards[chip][i]);
    }
  ++sum.terms;
  sum.name += "+" + other.name;
}

/// Checks that an array declared the same as another is the same value: nothing else judges it.
void require_same_value(const dump::Dump& dump, const std::string& name, const ArrayValues& array,
                        const RunOfTrace& run) {
  const std::string& same = *array.said("same_as");
  const auto refuse = [&](std::string_view why) {
    throw Error("dump_attribute",
                fmt::format("{}: same_as={:?}: {}", name, same.substr(0, 200), why));
  };
  const auto at = dump.values.find(same);
  if (at == dump.values.end() || dump::find(at->second.attributes, "same_as"))
    refuse("the trace has no array of that name");
  const auto title = [](const ArrayValues& of) {
    return of.subjects().empty() ? std::string() : of.subjects()[0].title();
  };
  const std::string mine = title(array), theirs = title(ArrayValues(same, at->second, run));
  if (!mine.empty() && mine != theirs)
    refuse(fmt::format("this is {}, that {}", mine,
                       theirs.empty() ? "no value of the model" : theirs));
}

/// Marks as operands given values, and caches of a pass of which the file has nothing else.
void say_operands(std::vector<DumpedValue>& dumped, const Passes& passes) {
  std::set<std::string> in_file;
  const auto handed_in = [&](const DumpedValue& h) {
    const std::int64_t pass = pass_of(h.name, passes);
    return pass >= 0 && passes.at(pass).name != h.subject.pass;
  };
  for (const DumpedValue& h : dumped)
    if (h.subject.meaning != Meaning::weight && !handed_in(h)) in_file.insert(h.subject.pass);
  for (DumpedValue& h : dumped) {
    if (!h.why_not.empty()) continue;
    if (h.given)
      h.why_not = "given";
    else if (h.subject.meaning == Meaning::checkpoint && handed_in(h) &&
             !in_file.contains(h.subject.pass))
      h.why_not = fmt::format("handed in: the trace has nothing else of {}", h.subject.pass);
  }
}

}  // namespace

Values read_values(const dump::Dump& dump, const Claim& claim, const Weights& weights) {
  const Passes passes = claim.source_case.passes();
  const RunOfTrace run{claim, weights, passes};
  Values values;
  GivenValues given(claim.operands);
  std::map<std::string, std::size_t> sums;
  for (const std::string& name : names_in_order(dump, passes)) {
    const dump::Value& value = dump.values.find(name)->second;
    const bool is_given = given(name, value.attributes);
    const ArrayValues array(name, value, run);
    const std::vector<Subject>& subjects = array.subjects();
    if (array.said("same_as")) {
      require_same_value(dump, name, array, run);
      ++values.copies;
      if (!subjects.empty() && array.said("layout"))
        values.laid.push_back({subjects[0], array.layouts(subjects)[0]});
      continue;
    }
    if (subjects.empty()) {
      values.unknown.push_back(
          {name, is_given ? "given, and no value of the model: say which it stands for by meaning"
                          : "no value of the model"});
      continue;
    }
    Values in_array = array.read();
    for (DumpedValue& dumped : in_array.dumped) dumped.given = is_given;
    std::move(in_array.laid.begin(), in_array.laid.end(), std::back_inserter(values.laid));
    if (array.said("summand_of")) {
      const auto [at, is_first] = sums.emplace(subjects[0].title(), values.dumped.size());
      if (!is_first) {
        add_term(values.dumped[at->second], in_array.dumped[0]);
        continue;
      }
    }
    std::move(in_array.dumped.begin(), in_array.dumped.end(), std::back_inserter(values.dumped));
  }
  given.require_all_met();
  const bool any_given = std::any_of(values.dumped.begin(), values.dumped.end(),
                                     [](const DumpedValue& dumped) { return dumped.given; });
  if (any_given && claim.exact)
    throw Error("compare_given",
                "what follows a given value has other bits than the model's; legal "
                "arithmetic: f32, f64, bf16, f16");
  say_operands(values.dumped, passes);
  leave_out_wire(values, claim);
  return values;
}

}  // namespace shardproof::dump
