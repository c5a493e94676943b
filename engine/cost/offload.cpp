#include "engine/cost/offload.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/cost/intensity.h"
#include "engine/cost/parameters.h"
#include "engine/cost/quantity.h"

namespace shardproof::cost {
namespace {

std::string bytes_text(double bytes) { return rounded_quantity(bytes, Measure::bytes); }

}  // namespace

double OffloadCost::seconds() const { return std::max(host_seconds, seconds_without()); }
double OffloadCost::seconds_without() const { return std::max(memory_seconds, compute_seconds); }

OffloadCost offload_cost(const OffloadSetting& s, const Chip& chip) {
  const WeightType type = s.act == ActType::bf16 ? WeightType::bf16 : WeightType::f32;
  const double peak = chip.peak(type);
  OffloadCost cost;
  cost.weight_bytes =
      static_cast<double>(parameters_of(s.model).matrices()) * bytes_of_type(s.weights);
  double reads = 0.0;
  for (const Product& one : products_of(s.model, {s.batch, s.tokens, s.context})) {
    cost.compute_seconds += one.flops() / peak;
    if (one.factor == Factor::weight)
      reads += one.factor_elements() * bytes_of_type(s.weights);
    else
      cost.cache_bytes += one.factor_elements() * bytes_of_type(type);
  }
  if (cost.cache_bytes >= chip.hbm)
    throw Error(
        "offload_c1",
        fmt::format(
            "the caches of {} x {} positions take {}, and {} has {}; nearest "
            "legal: a context of {}",
            s.batch, s.context, bytes_text(cost.cache_bytes), chip.name, bytes_text(chip.hbm),
            std::max(std::floor(static_cast<double>(s.context) * chip.hbm / cost.cache_bytes) - 1.0,
                     0.0)));
  cost.resident_bytes = std::min(cost.weight_bytes, chip.hbm - cost.cache_bytes);
  cost.streamed_bytes = cost.weight_bytes - cost.resident_bytes;
  if (cost.streamed_bytes > chip.host)
    throw Error("offload_c2",
                fmt::format("{} of the weights' {} do not fit beside the caches on {}, and its "
                            "host has {} for them; nearest legal: a host of {}, or a smaller model",
                            bytes_text(cost.streamed_bytes), bytes_text(cost.weight_bytes),
                            chip.name, bytes_text(chip.host), bytes_text(cost.streamed_bytes)));
  if (cost.streamed_bytes > 0.0) cost.host_seconds = cost.streamed_bytes / chip.host_bandwidth;
  cost.memory_seconds = (reads + cost.cache_bytes) / chip.hbm_bandwidth;
  return cost;
}

}  // namespace shardproof::cost
