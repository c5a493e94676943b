#include "engine/shards/reach.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weights/base/detail/word_table.h"

namespace shardproof {
namespace {

constexpr std::pair<std::string_view, Reach::Replicas> kReplicas[] = {
    {"agree", Reach::Replicas::agree},
    {"differ", Reach::Replicas::differ},
    {"none", Reach::Replicas::none}};

/// "9,216".
std::string grouped(std::int64_t number) {
  std::string text = fmt::format("{}", number);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

}  // namespace

std::string_view to_string(Reach::Replicas replicas) { return word_in(kReplicas, replicas); }

std::string Reach::extent() const {
  return fmt::format(
      "on {} of {} chip{}, {} of {} element{}, {}", chips, of_chips, of_chips == 1 ? "" : "s",
      grouped(elements), grouped(of_elements), of_elements == 1 ? "" : "s",
      replicas == Replicas::none ? "no replicas" : fmt::format("replicas {}", to_string(replicas)));
}

std::string Reach::worst() const {
  return fmt::format("chip {} at [{}]: expected {}, got {}", worst_chip,
                     fmt::join(worst_index, ","), worst_expected, worst_actual);
}

}  // namespace shardproof
