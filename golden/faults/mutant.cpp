#include "golden/faults/mutant.h"

#include <fmt/format.h>

#include <array>

#include "golden/faults/operator.h"

namespace shardproof::faults {

std::span<const FaultClass> all_classes() {
  static constexpr std::array<FaultClass, 15> kAll{
      {{"M1", "a collective is dropped, or done in part"},
       {"M2", "something is counted twice"},
       {"M3", "a collective over the wrong axis or group"},
       {"M4", "a wrong reduction"},
       {"M5", "a wrong dim, or chunks in a wrong order"},
       {"M6", "weights cut or laid out wrong"},
       {"M7", "a local number where a global one is meant"},
       {"M8", "an op moved before a pending reduction"},
       {"M9", "wrong positions, or a wrong mask"},
       {"M10", "a cache written or read wrong"},
       {"M11", "padding, or another chip's block, is read"},
       {"M12", "a wrong scale of quantised weights"},
       {"M13", "a stale buffer"},
       {"M14", "replicas that differ"},
       {"M15", "a wrong hand-over of caches"}}};
  return kAll;
}

std::string Site::to_string() const { return fmt::format("{}.{}.{}", phase, program, value); }

Site Site::parse(std::string_view text) {
  const auto first = text.find('.');
  const auto second = first == std::string_view::npos ? first : text.find('.', first + 1);
  if (second == std::string_view::npos || second + 1 == text.size())
    throw Error("faults_only",
                fmt::format("the site '{}' is not PHASE.PROGRAM.VALUE, as decode.layer.yr", text));
  return {std::string(text.substr(0, first)),
          std::string(text.substr(first + 1, second - first - 1)),
          std::string(text.substr(second + 1))};
}

std::string Mutant::to_string() const {
  return fmt::format("{} {} {}", how->name, site.to_string(), parameter);
}

}  // namespace shardproof::faults
