#pragma once

namespace shardproof {

/// The instruction set extension, e.g. "AVX2", that the libraries were compiled to use and that
/// this processor or operating system lacks; null if none is missing. If several are, it names the
/// most telling. It needs none of them itself, so it may be called before anything else, also from
/// a constructor function.
const char* missing_cpu_feature() noexcept;

}  // namespace shardproof
