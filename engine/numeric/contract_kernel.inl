// The product kernel, one template over an arithmetic (the accumulator's type and its vectors),
// compiled once per instruction set. The files that include it include nothing of the standard
// library, so that none of its inline functions is emitted with instructions the machine lacks;
// everything here has internal linkage.
//
// An arithmetic T has
//   Acc                      float or double, one accumulator
//   Vec, Mask, kLanes        kLanes accumulators, and which lanes of a tail exist
//   kRows                    rows of the tallest tile
//   kPackM, kPackN           products with fewer rows or columns use b as it lies
//   wide(rows)               vectors in a tile of `rows` rows, so that the registers suffice
//   zero(), splat(x), fma(a, b, c), mask(lanes)
//   load(p), load(p, mask)   from float or Acc, widened to Acc; absent lanes are 0 and not touched
//   store(p, v), store(p, v, mask)
// Absent lanes compute fma(a, 0, 0): exact, so they never raise the inexact flag.
namespace {

#if defined(__clang__)
#define SHARDPROOF_UNROLL _Pragma("clang loop unroll(full)")
#else
#define SHARDPROOF_UNROLL _Pragma("GCC unroll 16")
#endif

constexpr unsigned long extent(long n) { return static_cast<unsigned long>(n); }

constexpr long kLine = 16;  // floats in a cache line

/// Rows that the caches are asked for while a tile computes, row k at step k: a row of `lines`
/// lines, of which a tile asks for one.
struct Ahead {
  const float* at;
  long ld, lines;
};

// Where a tile has the rows of b from, one after the other: `load` is vector v of the row at hand,
// `from` the same rows further right.

/// The matrix as it lies, widened.
template <class T>
struct Lying {
  const float* at;
  long ld;
  typename T::Vec load(int v) const { return T::load(at + v * T::kLanes); }
  typename T::Vec load(int v, typename T::Mask mask) const {
    return T::load(at + v * T::kLanes, mask);
  }
  Lying from(long by) const { return {at + by, ld}; }
  void next() { at += ld; }
};

/// A panel: columns for the tallest tile, copied together, whole vectors with absent lanes 0.
template <class T>
struct Panel {
  static constexpr long kWidth = T::wide(T::kRows) * T::kLanes;
  const typename T::Acc* at;
  typename T::Vec load(int v) const { return T::load(at + v * T::kLanes); }
  typename T::Vec load(int v, typename T::Mask) const { return load(v); }
  Panel from(long by) const { return {at + by}; }
  void next() { at += kWidth; }
};

/// The matrix as it lies, copied to a panel by the way.
template <class T>
struct Packing {
  Lying<T> b;
  typename T::Acc* panel;
  typename T::Vec load(int v) const { return kept(v, b.load(v)); }
  typename T::Vec load(int v, typename T::Mask mask) const { return kept(v, b.load(v, mask)); }
  typename T::Vec kept(int v, typename T::Vec row) const {
    T::store(panel + v * T::kLanes, row);
    return row;
  }
  Packing from(long by) const { return {b.from(by), panel + by}; }
  void next() {
    b.next();
    panel += Panel<T>::kWidth;
  }
};

/// C[R, V vectors] of one tile: the accumulators stay in registers over all k. With a tail the last
/// vector has only the lanes of `mask`.
template <class T, int R, int V, bool kTail, class B>
inline void tile(long K, const typename T::Acc* a, long lda, B b, typename T::Acc* c, long ldc,
                 typename T::Mask mask, bool fresh, Ahead ahead) {
  typename T::Vec acc[extent(R)][extent(V)];
  SHARDPROOF_UNROLL
  for (int r = 0; r < R; ++r) {
    SHARDPROOF_UNROLL
    for (int v = 0; v < V; ++v) {
      const typename T::Acc* const at = c + r * ldc + v * T::kLanes;
      acc[r][v] = fresh ? T::zero() : kTail && v == V - 1 ? T::load(at, mask) : T::load(at);
    }
  }
  // Three rows of a from one pointer, and the compiler not told where it came from: offsets of its
  // own for every row would not fit in registers, and be read from memory at each k.
  constexpr int kBases = (R + 2) / 3;
  const typename T::Acc* base[extent(kBases)];
  SHARDPROOF_UNROLL
  for (int i = 0; i < kBases; ++i) {
    base[i] = a + 3 * i * lda;
    asm("" : "+r"(base[i]));
  }
  for (long k = 0; k < K; ++k) {
    typename T::Vec row[extent(V)];
    SHARDPROOF_UNROLL
    for (int v = 0; v < V; ++v) row[v] = kTail && v == V - 1 ? b.load(v, mask) : b.load(v);
    b.next();
    SHARDPROOF_UNROLL
    for (int r = 0; r < R; ++r) {
      const typename T::Vec x = T::splat(base[r / 3][r % 3 * lda]);
      SHARDPROOF_UNROLL
      for (int v = 0; v < V; ++v) acc[r][v] = T::fma(x, row[v], acc[r][v]);
    }
    SHARDPROOF_UNROLL
    for (int i = 0; i < kBases; ++i) ++base[i];
    __builtin_prefetch(ahead.at + k * ahead.ld, 0, 2);
  }
  SHARDPROOF_UNROLL
  for (int r = 0; r < R; ++r) {
    SHARDPROOF_UNROLL
    for (int v = 0; v < V; ++v) {
      typename T::Acc* const at = c + r * ldc + v * T::kLanes;
      if (kTail && v == V - 1)
        T::store(at, acc[r][v], mask);
      else
        T::store(at, acc[r][v]);
    }
  }
}

/// A strip of N columns narrower than V vectors, R rows high.
template <class T, int R, int V, class B>
void tail(long N, long K, const typename T::Acc* a, long lda, B b, typename T::Acc* c, long ldc,
          bool fresh, Ahead ahead) {
  if constexpr (V > 1) {
    if (N <= (V - 1) * T::kLanes) return tail<T, R, V - 1>(N, K, a, lda, b, c, ldc, fresh, ahead);
  }
  tile<T, R, V, true>(K, a, lda, b, c, ldc, T::mask(N - (V - 1) * T::kLanes), fresh, ahead);
}

/// N columns in tiles of R rows.
template <class T, int R, class B>
void strip(long N, long K, const typename T::Acc* a, long lda, B b, typename T::Acc* c, long ldc,
           bool fresh, Ahead ahead) {
  constexpr int V = T::wide(R);
  constexpr long kWidth = V * T::kLanes;
  long j = 0;
  for (; j + kWidth <= N; j += kWidth)
    tile<T, R, V, false>(K, a, lda, b.from(j), c + j, ldc, typename T::Mask{}, fresh, ahead);
  if (j < N) tail<T, R, V>(N - j, K, a, lda, b.from(j), c + j, ldc, fresh, ahead);
}

/// R rows, R from 1 to kRows: the number becomes a constant.
template <class T, int R, class B>
void rows(long R_, long N, long K, const typename T::Acc* a, long lda, B b, typename T::Acc* c,
          long ldc, bool fresh, Ahead ahead) {
  if constexpr (R > 1) {
    if (R_ < R) return rows<T, R - 1>(R_, N, K, a, lda, b, c, ldc, fresh, ahead);
  }
  strip<T, R>(N, K, a, lda, b, c, ldc, fresh, ahead);
}

/// Rows from `i` on, in `left` blocks as equal as can be, of kRows at most, that take turns with
/// the lines ahead.
template <class T, class B>
void blocks(long i, long M, long left, long N, long K, const typename T::Acc* a, long lda, B b,
            typename T::Acc* c, long ldc, bool fresh, Ahead ahead) {
  for (; left > 0; --left) {
    const long height = (M - i + left - 1) / left;
    rows<T, T::kRows>(height, N, K, a + i * lda, lda, b, c + i * ldc, ldc, fresh,
                      {ahead.at + left % ahead.lines * kLine, ahead.ld, 1});
    i += height;
  }
}

constexpr long kBlockM = 96;           // rows of a that are at hand at a time, widened if need be
constexpr long kBlockK = 256;          // and their columns: chains are interrupted, never reordered
constexpr long kWideLd = kBlockK + 8;  // widened rows, not a power of two apart

/// Copies rows of N elements from one matrix to another that has room for whole vectors, widening.
template <class T>
void copy(long M, long N, const float* from, long ld, typename T::Acc* to, long ld_to) {
  const long whole = N / T::kLanes * T::kLanes;
  const typename T::Mask mask = T::mask(N - whole);
  for (long i = 0; i < M; ++i, from += ld, to += ld_to) {
    for (long j = 0; j < whole; j += T::kLanes) T::store(to + j, T::load(from + j));
    if (whole < N) T::store(to + whole, T::load(from + whole, mask));
  }
}

/// A block of a and b. Where several tiles use the same columns of b, the first of them copies them
/// to a panel while it computes: in b their rows lie apart, often by a power of two and so in few
/// sets of a cache, or would be widened again and again.
template <class T>
void block(long M, long N, long K, const typename T::Acc* a, long lda, const float* b, long ldb,
           typename T::Acc* c, long ldc, bool fresh) {
  constexpr long kPanel = Panel<T>::kWidth;
  const long high = (M + T::kRows - 1) / T::kRows;
  if (M < T::kPackM || ldb < T::kPackN)
    return blocks<T>(0, M, high, N, K, a, lda, Lying<T>{b, ldb}, c, ldc, fresh, Ahead{b, 0, 1});
  alignas(64) typename T::Acc panel[extent(kBlockK * kPanel)];
  const long first = (M + high - 1) / high;
  for (long j = 0; j < N; j += kPanel) {
    const long width = N - j < kPanel ? N - j : kPanel;
    rows<T, T::kRows>(first, width, K, a, lda, Packing<T>{{b + j, ldb}, panel}, c + j, ldc, fresh,
                      Ahead{b + j, 0, 1});
    // The next panel, if it is whole: else nothing new.
    const Ahead next = j + 2 * kPanel <= N
                           ? Ahead{b + j + kPanel, ldb, (kPanel + kLine - 1) / kLine}
                           : Ahead{b + j, 0, 1};
    blocks<T>(first, M, high - 1, width, K, a, lda, Panel<T>{panel}, c + j, ldc, fresh, next);
  }
}

/// A ProductKernel.
template <class T>
void product(long M, long N, long K, const float* a, long lda, const float* b, long ldb,
             typename T::Acc* c, long ldc, bool fresh) {
  constexpr bool kWidens = sizeof(typename T::Acc) != sizeof(float);
  if (K == 0 && fresh)
    for (long i = 0; i < M; ++i)
      for (long j = 0; j < N; ++j) c[i * ldc + j] = 0;
  for (long i = 0; i < M; i += kBlockM) {
    const long height = M - i < kBlockM ? M - i : kBlockM;
    for (long k = 0; k < K; k += kBlockK) {
      const long depth = K - k < kBlockK ? K - k : kBlockK;
      const float* const at = a + i * lda + k;
      if constexpr (kWidens) {
        typename T::Acc wide[extent(kBlockM * kWideLd)];
        copy<T>(height, depth, at, lda, wide, kWideLd);
        block<T>(height, N, depth, wide, kWideLd, b + k * ldb, ldb, c + i * ldc, ldc,
                 fresh && k == 0);
      } else {
        block<T>(height, N, depth, at, lda, b + k * ldb, ldb, c + i * ldc, ldc, fresh && k == 0);
      }
    }
  }
}

}  // namespace
