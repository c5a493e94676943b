// Product kernels compared with the processor's peak multiply-add rate.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <random>

#include "engine/numeric/contract.h"
#include "engine/numeric/detail/kernels.h"
#include "tools/bench/contest.h"
#include "tools/bench/fma_loop.h"
#include "tools/bench/row.h"
#include "weights/base/isa.h"

namespace shardproof::bench {
namespace {

struct Size {
  std::int64_t M, K, N;
};

/// The product a[M,K]·b[K,N], in either kernel.
struct Product {
  explicit Product(Size s)
      : size(s),
        a(static_cast<std::size_t>(s.M * s.K)),
        b(static_cast<std::size_t>(s.K * s.N)),
        f32(static_cast<std::size_t>(s.M * s.N)),
        f64(f32.size()) {
    std::mt19937_64 random(1);
    std::normal_distribution<float> draw(0.0F, 1.0F);
    for (auto* factor : {&a, &b})
      for (float& value : *factor) value = draw(random);
  }
  void in_f32() { chain(size.M, size.N, {{a.data(), b.data(), size.K}}, f32.data()); }
  void in_f64() {
    kernels_in_use().f64(size.M, size.N, size.K, a.data(), size.K, b.data(), size.N, f64.data(),
                         size.N, true);
  }
  long multiply_adds() const { return size.M * size.K * size.N; }

  Size size;
  std::vector<float> a, b, f32;
  std::vector<double> f64;
};

std::vector<FmaLoop> loops() {
  std::vector<FmaLoop> all{kFmaLoopBaseline};
#ifdef SHARDPROOF_EIGEN_AVX512
  if (has_isa(Isa::avx512)) all.push_back(kFmaLoopAvx512);
#endif
  return all;
}

/// Runs the product in turn with the same number of multiply-adds of each loop. The fastest loop is
/// the peak, because a processor may run narrower vectors faster.
Sample against_peak(Product& product, bool f64) {
  std::vector<std::function<void()>> sides{[&] { f64 ? product.in_f64() : product.in_f32(); }};
  const long count = product.multiply_adds();
  for (const FmaLoop& loop : loops())
    sides.emplace_back([=] {
      volatile double kept = f64 ? loop.f64(count) : static_cast<double>(loop.f32(count));
      static_cast<void>(kept);
    });
  const std::vector<Cost> costs = contest(sides, Whose::thread);
  const Cost peak = *std::min_element(costs.begin() + 1, costs.end(),
                                      [](Cost x, Cost y) { return x.processor < y.processor; });
  return {costs[0], peak, peak / costs[0]};
}

}  // namespace

std::vector<Row> kernel_rows() {
  std::vector<Row> rows;
  for (const bool f64 : {false, true})
    for (const Size size : {Size{64, 512, 512}, Size{64, 512, 2048}, Size{256, 2048, 512}}) {
      const char* name = f64 ? "f64" : "f32";
      const std::string what = fmt::format("{}x{}x{}", size.M, size.K, size.N);
      rows.push_back(
          {.id = fmt::format("kernel/{}/{}", name, what),
           .group = fmt::format("{} kernel, share of the measured peak, one thread", name),
           .what = what,
           .target = Target{0.85, true},
           .unit = Unit::share,
           .start = [=]() -> std::function<Sample()> {
             const auto product = std::make_shared<Product>(size);
             return [=] { return against_peak(*product, f64); };
           }});
    }
  return rows;
}

}  // namespace shardproof::bench
