#include "engine/shards/reach.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace shardproof {
namespace {

/// "9,216".
std::string grouped(std::int64_t number) {
  std::string text = fmt::format("{}", number);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

}  // namespace

std::string_view to_string(Reach::Replicas replicas) {
  switch (replicas) {
    case Reach::Replicas::agree:
      return "agree";
    case Reach::Replicas::differ:
      return "differ";
    default:
      return "none";
  }
}

std::string Reach::extent() const {
  return fmt::format("on {} of {} chip{}, {} of {} element{}, {}", chips, of_chips,
                     of_chips == 1 ? "" : "s", grouped(elements), grouped(of_elements),
                     of_elements == 1 ? "" : "s",
                     replicas == Replicas::none    ? "no replicas"
                     : replicas == Replicas::agree ? "replicas agree"
                                                   : "replicas differ");
}

std::string Reach::worst() const {
  return fmt::format("chip {} at [{}]: expected {}, got {}", worst_chip,
                     fmt::join(worst_index, ","), worst_expected, worst_actual);
}

}  // namespace shardproof
