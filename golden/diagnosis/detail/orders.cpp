#include "golden/diagnosis/detail/orders.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "golden/diagnosis/detail/chips.h"
#include "weights/base/detail/index.h"

namespace shardproof::diagnosis {

std::vector<Order> orders(int n) {
  std::vector<Order> all{
      {"reversed", [](int, int p, int m, int) { return m - 1 - p; }},
      {"with the ring's sign changed", [](int, int p, int m, int) { return (m - p) % m; }}};
  for (int k = 1; k < n; ++k)
    all.push_back({fmt::format("rotated by {}", k <= n / 2 ? k : k - n),
                   [](int, int p, int m, int by) { return (p + by) % m; }, k});
  return all;
}

bool is_permutation(const std::vector<int>& held) {
  return std::set<int>(held.begin(), held.end()).size() == held.size();
}

std::vector<Exchange> exchanges(const Question& q, const Axes& list, bool gathered,
                                bool order_alone) {
  const Torus& torus = q.torus();
  const int n = torus.size(list);
  std::vector<int> own(at(n));
  std::iota(own.begin(), own.end(), 0);
  std::vector<Exchange> all;
  const auto add = [&](std::string_view fault, std::string words, const Axes& axes, int parameters,
                       std::vector<int> held) {
    if (held != own)
      all.push_back(
          {fault, std::move(words), axes.sorted().to_string(), parameters, std::move(held)});
  };
  const auto each = [&](auto&& of) {
    std::vector<int> held;
    for (const int r : own) held.push_back(of(r));
    return held;
  };
  for (const Axes& other : q.lists()) {
    if (other.sorted() != list.sorted()) continue;
    Axes moved;
    for (int i = 0; i < list.size(); ++i)
      if (*(other.begin() + i) != *(list.begin() + i)) moved = moved.with(*(list.begin() + i));
    add("axes in another order",
        fmt::format("cut over {} in place of {}", other.to_string(), list.to_string()), moved,
        moved.size(),
        each([&](int r) { return torus.block(with_block(torus, 0, list, r), other); }));
  }
  if (order_alone) return all;
  for (const Order& order : orders(n))
    add("chunks in another order",
        fmt::format("the blocks over {} are {}", list.to_string(), order.words), list,
        list.size() * 100 + order.k, each([&](int r) { return order.index(0, r, n, order.k); }));
  for (const int from : own) {
    add("another chip's block",
        fmt::format("along {} all chips have block {}", words_of(list), from), list,
        list.size() * 1000 + from, each([&](int) { return from; }));
    for (const int r : own) {
      const int here = with_block(torus, 0, list, r), there = with_block(torus, 0, list, from);
      std::vector<int> held = own;
      held[at(r)] = from;
      add("another chip's block",
          fmt::format("over {} block {} is in the place of block {}", list.to_string(), from, r),
          gathered ? list : axes_between(torus, here, there, list),
          list.size() * 1000 + 100 + (from + n - r) % n, std::move(held));
    }
  }
  return all;
}

std::vector<std::size_t> reordered(std::size_t size, std::int64_t length,
                                   const std::vector<int>& held) {
  std::vector<std::size_t> from;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(size); ++i) {
    const std::int64_t block = i / length % std::ssize(held);
    from.push_back(at(i + (held[at(block)] - block) * length));
  }
  return from;
}

void each_exchange(const Question& q, char letter, std::int64_t extent,
                   const std::function<void(Candidate, const std::vector<int>&)>& with) {
  const Axes cut = significant(q.layout().axes(letter), q.torus());
  for (const Axes& list : q.lists())
    if (extent % q.torus().size(list) == 0)
      for (const Exchange& e :
           exchanges(q, list, cut.empty(), !cut.starts_with(list) && list != list.sorted()))
        with({.fault = e.fault, .detail = e.words, .parameters = 20 + e.parameters, .axes = e.axes},
             e.held);
}

std::vector<std::pair<std::string, std::vector<int>>> head_orders(int heads) {
  std::vector<std::pair<std::string, std::vector<int>>> all;
  const auto add = [&](std::string words, auto&& of) {
    std::vector<int> held;
    for (int h = 0; h < heads; ++h) held.push_back(of(h));
    all.emplace_back(std::move(words), std::move(held));
  };
  add("reversed", [heads](int h) { return heads - 1 - h; });
  for (int k = 1; k < heads; ++k)
    add(fmt::format("rotated by {}", k), [heads, k](int h) { return (h + k) % heads; });
  for (int g = 2; g < heads; ++g)
    if (heads % g == 0)
      add(fmt::format("numbered across {} groups", g),
          [heads, g](int h) { return h % g * (heads / g) + h / g; });
  return all;
}

}  // namespace shardproof::diagnosis
