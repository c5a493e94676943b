#include "oracle/model/detail/floats.h"

#include <fmt/format.h>

#include <cmath>

#include "oracle/request/model_values.h"
#include "weights/base/error.h"

namespace shardproof::oracle {

auto Floats::activation(const Degree&) const -> float (*)(float) {
  switch (config_.ffn) {
    case Ffn::swiglu:
      return constants_.base2 ? swish2 : swish;
    case Ffn::geglu:
    case Ffn::gelu:
      break;
    case Ffn::gelu_erf:
      return gelu_erf;
  }
  return gelu;
}

void Floats::admit(const std::string& id, const Value<Floats>& value) const {
  const Tensor& t = value.tensor;
  // v·0 is zero for finite v, otherwise NaN: a check without a branch for each element.
  bool finite = true;
  for (const float v : t.data) finite &= v * 0.0F == 0.0F;
  if (finite) return;
  for (std::size_t at = 0; at < t.data.size(); ++at)
    if (!std::isfinite(t.data[at]))
      throw Error("oracle_finite",
                  fmt::format("{}{} is {}", id, index_text(t.shape, at), t.data[at]));
}

}  // namespace shardproof::oracle
