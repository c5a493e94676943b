#define Eigen EigenAvx512
#define SHARDPROOF_EIGEN_PAIR kEigenAvx512
#include "tools/bench/eigen_pair.inl"
