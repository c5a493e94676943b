// The kernel of sums of products with what bounds of them need: a template over the same
// arithmetics as contract_kernel.inl (its Acc is double), which also have
//   abs(v), least(a, b), most(a, b)   the second argument where one of both is NaN
namespace shardproof {
namespace {

/// Sums of R rows with V vectors of columns, over all terms, in registers.
template <class T, int R, int V, bool kRange, bool kRadii>
struct SumsTile {
  using Vec = typename T::Vec;
  static constexpr int kFrom = 2, kOfRadii = kRange ? 4 : 2;
  static constexpr int kQuantities = kOfRadii + (kRadii ? 2 : 0);
  Vec of[extent(R)][extent(kQuantities)][extent(V)];

  /// Returns where the state has this tile's quantity q: without a range two are left out.
  static constexpr int place(int q) { return q < kFrom || kRange ? q : q + 2; }

  void load(const double* state, long row) {
    SHARDPROOF_UNROLL
    for (int r = 0; r < R; ++r) {
      SHARDPROOF_UNROLL
      for (int q = 0; q < kQuantities; ++q) {
        SHARDPROOF_UNROLL
        for (int v = 0; v < V; ++v)
          of[r][q][v] = T::load(state + r * row + place(q) * kSumsColumns + v * T::kLanes);
      }
    }
  }
  void store(double* state, long row) const {
    SHARDPROOF_UNROLL
    for (int r = 0; r < R; ++r) {
      SHARDPROOF_UNROLL
      for (int q = 0; q < kQuantities; ++q) {
        SHARDPROOF_UNROLL
        for (int v = 0; v < V; ++v)
          T::store(state + r * row + place(q) * kSumsColumns + v * T::kLanes, of[r][q][v]);
      }
    }
  }
  void add(const SumsRows& a, long first, long k, const double* b) {
    Vec column[extent(V)], size[extent(V)];
    SHARDPROOF_UNROLL
    for (int v = 0; v < V; ++v) {
      column[v] = T::load(b + k * kSumsColumns + v * T::kLanes);
      size[v] = T::abs(column[v]);
    }
    SHARDPROOF_UNROLL
    for (int r = 0; r < R; ++r) {
      const double x = a.center[r][first + k];
      double reach = x < 0 ? -x : x;
      if constexpr (kRadii) reach += a.worst[r][first + k];
      const Vec center = T::splat(x), most = T::splat(reach);
      SHARDPROOF_UNROLL
      for (int v = 0; v < V; ++v) {
        of[r][0][v] = T::fma(center, column[v], of[r][0][v]);
        of[r][1][v] = T::fma(most, size[v], of[r][1][v]);
        if constexpr (kRange) {
          of[r][2][v] = T::least(of[r][0][v], of[r][2][v]);
          of[r][3][v] = T::most(of[r][0][v], of[r][3][v]);
        }
        if constexpr (kRadii) {
          of[r][kOfRadii][v] = T::fma(T::splat(a.worst[r][first + k]), size[v], of[r][kOfRadii][v]);
          of[r][kOfRadii + 1][v] =
              T::fma(T::splat(a.likely[r][first + k]), size[v], of[r][kOfRadii + 1][v]);
        }
      }
    }
  }
};

template <class T, int R, bool kRange, bool kRadii>
void sums_of_rows(long first, long terms, const SumsRows& a, const double* b, double* state) {
  constexpr int kVectors = kSumsColumns / T::kLanes;
  constexpr int V = kVectors < 2 ? kVectors : 2;
  for (int v = 0; v < kVectors; v += V) {
    SumsTile<T, R, V, kRange, kRadii> tile;
    tile.load(state + v * T::kLanes, kSumsState);
    for (long k = 0; k < terms; ++k) tile.add(a, first, k, b + v * T::kLanes);
    tile.store(state + v * T::kLanes, kSumsState);
  }
}

template <class T, int R, bool kRange, bool kRadii>
void sums_of_all(long rows, long first, long terms, const SumsRows& a, const double* b,
                 double* state) {
  long r = 0;
  const auto from = [&](long row) {
    return SumsRows{a.center + row, kRadii ? a.worst + row : nullptr,
                    kRadii ? a.likely + row : nullptr};
  };
  for (; r + R <= rows; r += R)
    sums_of_rows<T, R, kRange, kRadii>(first, terms, from(r), b, state + r * kSumsState);
  for (; r < rows; ++r)
    sums_of_rows<T, 1, kRange, kRadii>(first, terms, from(r), b, state + r * kSumsState);
}

/// Two vectors of columns and R rows have 2·R accumulators for each quantity.
template <class T>
void sums(long rows, long first, long terms, const SumsRows& a, const double* b, double* state,
          bool range) {
  constexpr int R = T::kSumsRows;
  constexpr int half = R > 1 ? R / 2 : 1;
  if (a.worst == nullptr && !range)
    return sums_of_all<T, R, false, false>(rows, first, terms, a, b, state);
  if (a.worst == nullptr) return sums_of_all<T, half, true, false>(rows, first, terms, a, b, state);
  if (!range) return sums_of_all<T, half, false, true>(rows, first, terms, a, b, state);
  return sums_of_all<T, half, true, true>(rows, first, terms, a, b, state);
}

}  // namespace
}  // namespace shardproof
