#pragma once

namespace shardproof::bench {

/// 10^9 floating-point operations a second, an fma being two.
struct Peak {
  double f32, f64;
};

/// The most that one core reaches on the instruction set in use (isa_in_use()), as measured now by
/// chains of fma that touch no memory: the best of many short rounds by processor time. Of the
/// scalar set it is what the compiler makes of std::fma on single numbers.
Peak measured_peak();

}  // namespace shardproof::bench
