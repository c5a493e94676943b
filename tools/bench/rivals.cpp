#include "tools/bench/rivals.h"

#include "engine/numeric/contract.h"
#include "engine/numeric/detail/kernels.h"
#include "tools/bench/eigen_pair.h"

namespace shardproof::bench {

Rivals::Rivals(std::int64_t tokens)
    : ffn_(tokens),
      h_(static_cast<std::size_t>(tokens * Ffn::F)),
      y_(static_cast<std::size_t>(tokens * Ffn::E)),
      hd_(h_.size()),
      yd_(y_.size()),
      xd_(ffn_.x().data.begin(), ffn_.x().data.end()),
      w1d_(ffn_.w1().data.begin(), ffn_.w1().data.end()),
      w2d_(ffn_.w2().data.begin(), ffn_.w2().data.end()) {}

void Rivals::eigen_f32(bool doubled) {
  eigen_in_use().f32(ffn_.tokens(), Ffn::E, Ffn::F, ffn_.x().data.data(), ffn_.w1().data.data(),
                     ffn_.w2().data.data(), h_.data(), y_.data(), doubled);
}

void Rivals::eigen_f64() {
  eigen_in_use().f64(ffn_.tokens(), Ffn::E, Ffn::F, xd_.data(), w1d_.data(), w2d_.data(),
                     hd_.data(), yd_.data(), true);
}

void Rivals::own_f32() {
  const std::int64_t T = ffn_.tokens();
  chain(T, Ffn::F, {{ffn_.x().data.data(), ffn_.w1().data.data(), Ffn::E}}, h_.data());
  for (float& value : h_) value += value;
  chain(T, Ffn::E, {{h_.data(), ffn_.w2().data.data(), Ffn::F}}, y_.data());
}

void Rivals::own_f64() {
  const std::int64_t T = ffn_.tokens();
  const auto kernel = kernels_in_use().f64;
  kernel(T, Ffn::F, Ffn::E, ffn_.x().data.data(), Ffn::E, ffn_.w1().data.data(), Ffn::F, hd_.data(),
         Ffn::F, true);
  for (std::size_t i = 0; i < hd_.size(); ++i) {
    const auto value = static_cast<float>(hd_[i]);
    h_[i] = value + value;
  }
  kernel(T, Ffn::E, Ffn::F, h_.data(), Ffn::F, ffn_.w2().data.data(), Ffn::E, yd_.data(), Ffn::E,
         true);
}

}  // namespace shardproof::bench
