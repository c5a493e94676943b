#include "golden/trace/value/coarse.h"

#include "golden/bounds/number/carried.h"

namespace shardproof::candidate {

Coarse coarse_of(dump::Encoding encoding) {
  using dump::Encoding;
  switch (encoding) {
    case Encoding::f32:
      return {bounds::unit_of(bounds::Format::f32), bounds::least_of(bounds::Format::f32)};
    case Encoding::bf16:
      return {bounds::unit_of(bounds::Format::bf16), bounds::least_of(bounds::Format::bf16)};
    case Encoding::f16:
      return {0x1p-11, 0x1p-25};
    default:
      return {};  // f64 and integers are exact
  }
}

}  // namespace shardproof::candidate
