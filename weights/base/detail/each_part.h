#pragma once

#include <algorithm>
#include <cstddef>
#include <thread>
#include <vector>

namespace shardproof {

/// Calls body(first, last) for parts of [0, count) that are together all of it, each on a thread of
/// its own, if there is work for several of at least `least`; otherwise once. The body throws
/// nothing.
template <class Body>
void each_part(std::size_t count, std::size_t least, const Body& body) {
  const std::size_t parts =
      std::min<std::size_t>(std::max(1U, std::thread::hardware_concurrency()), count / least);
  std::vector<std::jthread> threads;
  for (std::size_t part = 1; part < parts; ++part)
    threads.emplace_back([&body, count, part, parts] {
      body(count / parts * part, part + 1 == parts ? count : count / parts * (part + 1));
    });
  body(std::size_t{0}, parts > 1 ? count / parts : count);
}

}  // namespace shardproof
