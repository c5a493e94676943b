#include "golden/trace/pair/differences.h"

#include <fmt/format.h>

#include <algorithm>

#include "golden/trace/value/same_bits.h"

namespace shardproof::dump {
namespace {

bool same_tensor(const Tensor& a, const Tensor& b) {
  return a.shape == b.shape &&
         std::equal(a.data.begin(), a.data.end(), b.data.begin(), same_bits<float>);
}

std::string of_both(std::string_view key, std::string_view a, std::string_view b) {
  return fmt::format("{} {} in A, {} in B", key, a, b);
}

void add_weights(const JudgedTrace& a, const JudgedTrace& b, std::vector<Difference>& all) {
  if (same_weights(*a.weights, *b.weights)) return;
  const NumberFormat in_a = a.claim.source_case.numerics.weights,
                     in_b = b.claim.source_case.numerics.weights;
  std::string text = in_a == in_b ? fmt::format("both {}", to_string(in_a))
                                  : of_both("stored as", to_string(in_a), to_string(in_b));
  std::size_t differ = 0;
  std::string first;
  const std::vector<std::string> names = a.weights->names();
  for (const std::string& name : names) {
    const auto other = b.weights->find(name);
    if (other != nullptr && same_tensor(*a.weights->at(name), *other)) continue;
    if (differ++ == 0) first = name;
  }
  if (differ > 0)
    text += fmt::format("; {} of {} tensors differ, the first {}", differ, names.size(), first);
  all.push_back({"weights", text});
}

std::string sums_of(const bounds::DeclaredArithmetic& by) {
  std::string text(to_string(by.sums));
  if (by.matrix_sums && *by.matrix_sums != by.sums)
    text += fmt::format(", {} of products", to_string(*by.matrix_sums));
  return text;
}

void add_numbers(const JudgedTrace& a, const JudgedTrace& b, std::vector<Difference>& all) {
  std::string text;
  const auto add = [&](std::string_view key, std::string_view in_a, std::string_view in_b) {
    if (in_a == in_b) return;
    text += (text.empty() ? "" : "; ") + of_both(key, in_a, in_b);
  };
  const bounds::DeclaredArithmetic &of_a = a.claim.declared, &of_b = b.claim.declared;
  add("values", to_string(of_a.values), to_string(of_b.values));
  const auto cache = [](const JudgedTrace& of) {
    const auto format = of.claim.source_case.model.cache;
    return format ? to_string(*format) : std::string_view("as values");
  };
  add("caches", cache(a), cache(b));
  add("sums", sums_of(of_a), sums_of(of_b));
  add("bits", a.claim.exact ? "exact" : "not claimed", b.claim.exact ? "exact" : "not claimed");
  if (!text.empty()) all.push_back({"numbers", text});
}

}  // namespace

bool same_weights(const Weights& a, const Weights& b) {
  if (&a == &b) return true;
  const std::vector<std::string> names = a.names();
  return a.stored_type() == b.stored_type() && names == b.names() &&
         std::all_of(names.begin(), names.end(), [&](const std::string& name) {
           return same_tensor(*a.at(name), *b.at(name));
         });
}

std::vector<Difference> differences_of(const JudgedTrace& a, const JudgedTrace& b, bool passes) {
  std::vector<Difference> all;
  add_weights(a, b, all);
  add_numbers(a, b, all);
  const Case &of_a = a.claim.source_case, &of_b = b.claim.source_case;
  if (!(of_a.sampling == of_b.sampling))
    all.push_back({"sampling", "tokens are chosen by other rules"});
  if (passes && !(of_a.passes() == of_b.passes()))
    all.push_back({"passes", "values have other rows and positions, by which --same matches them"});
  return all;
}

}  // namespace shardproof::dump
