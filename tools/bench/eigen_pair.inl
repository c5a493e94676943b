// Compiled once per instruction set, with Eigen's namespace renamed for each: templates of the same
// name compiled for different processors must not be merged by the linker.
#include <Eigen/Core>

#include "tools/bench/eigen_pair.h"

namespace shardproof::bench {
namespace {

template <class T>
void pair(long tokens, long E, long F, const T* x, const T* w1, const T* w2, T* h, T* y,
          bool activation) {
  using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Eigen::Map<const Matrix> mx(x, tokens, E), m1(w1, E, F), m2(w2, F, E);
  Eigen::Map<Matrix> mh(h, tokens, F), my(y, tokens, E);
  mh.noalias() = mx * m1;
  if (activation) mh += mh;
  my.noalias() = mh * m2;
}

const char* isa() { return Eigen::SimdInstructionSetsInUse(); }

}  // namespace

extern const EigenPair SHARDPROOF_EIGEN_PAIR = {pair<float>, pair<double>, isa};

}  // namespace shardproof::bench
