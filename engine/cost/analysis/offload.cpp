#include "engine/cost/analysis/offload.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/cost/analysis/intensity.h"
#include "engine/cost/chip/quantity.h"
#include "engine/cost/graph/graph_work.h"

namespace shardproof::cost {
namespace {

std::string bytes_text(double bytes) { return rounded_quantity(bytes, Measure::bytes); }

/// Returns how many items of `bytes` bytes fit in `room` and leave some of the chip's memory free.
double fitting(double bytes, double room, const Chip& chip) {
  const double n = std::floor(room / bytes);
  return n * bytes < chip.hbm ? n : n - 1.0;
}

/// Suggests a legal context or batch, given the weights that the host's memory holds.
std::string legal_caches(const OffloadSetting& s, const OffloadCost& cost, const Chip& chip) {
  const auto batch = static_cast<double>(s.batch), context = static_cast<double>(s.context);
  const auto tokens = static_cast<double>(s.tokens);
  const double position = cost.cache_bytes / (batch * context);
  const double room = chip.hbm - std::max(0.0, cost.weight_bytes - chip.host);
  const double longest = fitting(batch * position, room, chip);
  if (longest >= tokens) return fmt::format("nearest legal: a context of {}", longest);
  const double most = fitting(context * position, room, chip);
  if (most >= 1.0) return fmt::format("no context fits; nearest legal: a batch of {}", most);
  const double of_new = fitting(tokens * position, room, chip);
  if (of_new >= 1.0)
    return fmt::format(
        "no context fits, and no batch; nearest legal: a batch of {} with a context "
        "of {}",
        of_new, tokens);
  return "no context and no batch fits; it takes a smaller model, or a larger chip or host";
}

}  // namespace

double OffloadCost::seconds() const { return std::max(host_seconds, seconds_without()); }
double OffloadCost::seconds_without() const { return std::max(memory_seconds, compute_seconds); }

OffloadCost offload_cost(const OffloadSetting& s, const Chip& chip) {
  const GraphWork work =
      graph_work(s.model, s.weights, s.act, pass_of(IntensityPass{s.batch, s.tokens, s.context}));
  OffloadCost cost;
  cost.weight_bytes = work.weight_bytes;
  cost.cache_bytes = work.cache_bytes;
  cost.memory_seconds = work.memory_seconds(chip.hbm_bandwidth);
  cost.compute_seconds = work.seconds(&GraphWork::Part::needed_flops, chip.peak(s.act));
  if (cost.cache_bytes >= chip.hbm)
    throw Error("offload_c1",
                fmt::format("the caches of {} x {} positions take {}, and {} has {}; {}", s.batch,
                            s.context, bytes_text(cost.cache_bytes), chip.name,
                            bytes_text(chip.hbm), legal_caches(s, cost, chip)));
  cost.resident_bytes = std::min(cost.weight_bytes, chip.hbm - cost.cache_bytes);
  cost.host_bytes = cost.weight_bytes - cost.resident_bytes;
  if (cost.host_bytes > chip.host)
    throw Error(
        "offload_c2",
        fmt::format("{} of the weights' {} do not fit beside the caches on {}, and its "
                    "host has {} for them; nearest legal: a host of {}, or a smaller model",
                    bytes_text(cost.host_bytes), bytes_text(cost.weight_bytes), chip.name,
                    bytes_text(chip.host), print_quantity(cost.host_bytes, Measure::bytes)));
  const double unread = cost.weight_bytes - work.total(&GraphWork::Part::weight_reads);
  cost.streamed_bytes = std::max(0.0, cost.host_bytes - unread);
  if (cost.streamed_bytes > 0.0) cost.host_seconds = cost.streamed_bytes / chip.host_bandwidth;
  return cost;
}

}  // namespace shardproof::cost
