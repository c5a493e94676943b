// The product kernel, compiled once per instruction set; includes nothing that is not its own, so
// that no inline function of the standard library is emitted with instructions the machine lacks.
// C[M,N] += a[M,K]·b[K,N] with f64 accumulators. Products of f32 are exact in f64, so fusing the
// multiply with the add cannot change a bit: this file is compiled with -ffp-contract=fast.
// NOLINTBEGIN
namespace shardproof::SHARDPROOF_KERNEL {

typedef double VecD __attribute__((vector_size(8U * SHARDPROOF_LANES), aligned(8)));
typedef float VecF __attribute__((vector_size(4U * SHARDPROOF_LANES), aligned(4)));

template <unsigned R, unsigned V>
static inline void tile(const float* a, long K, const float* b, long ldb, double* c, long ldc) {
  VecD acc[R][V];
  for (unsigned r = 0; r < R; ++r)
    for (unsigned v = 0; v < V; ++v)
      acc[r][v] = *reinterpret_cast<const VecD*>(c + r * ldc + v * SHARDPROOF_LANES);
  for (long k = 0; k < K; ++k) {
    VecD bv[V];
    for (unsigned v = 0; v < V; ++v)
      bv[v] = __builtin_convertvector(
          *reinterpret_cast<const VecF*>(b + k * ldb + v * SHARDPROOF_LANES), VecD);
    for (unsigned r = 0; r < R; ++r) {
      const double ar = static_cast<double>(a[r * K + k]);
      for (unsigned v = 0; v < V; ++v) acc[r][v] += ar * bv[v];
    }
  }
  for (unsigned r = 0; r < R; ++r)
    for (unsigned v = 0; v < V; ++v)
      *reinterpret_cast<VecD*>(c + r * ldc + v * SHARDPROOF_LANES) = acc[r][v];
}

template <unsigned V>
static inline void rows(long M, const float* a, long K, const float* b, long ldb, double* c,
                        long ldc) {
  long i = 0;
  for (; i + 4 <= M; i += 4) tile<4, V>(a + i * K, K, b, ldb, c + i * ldc, ldc);
  for (; i < M; ++i) tile<1, V>(a + i * K, K, b, ldb, c + i * ldc, ldc);
}

void multiply_add(long M, long N, long K, const float* a, const float* b, double* c) {
  long j = 0;
  for (; j + 2 * SHARDPROOF_LANES <= N; j += 2 * SHARDPROOF_LANES) rows<2>(M, a, K, b + j, N, c + j, N);
  for (; j + SHARDPROOF_LANES <= N; j += SHARDPROOF_LANES) rows<1>(M, a, K, b + j, N, c + j, N);
  if (j == N) return;
  const long rest = N - j;
  for (long i = 0; i < M; ++i) {
    double acc[SHARDPROOF_LANES] = {};
    for (long n = 0; n < rest; ++n) acc[n] = c[i * N + j + n];
    for (long k = 0; k < K; ++k) {
      const double ar = static_cast<double>(a[i * K + k]);
      const float* row = b + k * N + j;
      for (long n = 0; n < rest; ++n) acc[n] += ar * static_cast<double>(row[n]);
    }
    for (long n = 0; n < rest; ++n) c[i * N + j + n] = acc[n];
  }
}

}  // namespace shardproof::SHARDPROOF_KERNEL
// NOLINTEND
