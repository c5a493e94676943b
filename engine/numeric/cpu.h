#pragma once

namespace shardproof {

/// The instruction set extension, e.g. "AVX2", that the libraries were compiled to use and that
/// this processor or operating system does not have; a null pointer if all are there. Of several
/// it names the most telling. Itself it needs none of them, so it may be called before anything
/// else, also from a constructor function. Throws nothing.
const char* missing_cpu_feature() noexcept;

}  // namespace shardproof
