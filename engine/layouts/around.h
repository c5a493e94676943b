#pragma once

#include "engine/layouts/writer.h"

namespace shardproof {

/// The programs of one phase, prefill or decode.
struct PhasePrograms {
  Program embed;    ///< ids -> x
  Program layer;    ///< x, kc, vc -> out, kc, vc; built once, run per layer
  Program head;     ///< x -> logits of each row's last position
  Program sample;   ///< logits -> token, greedy
  Layout residual;  ///< of x between layers: `BLE_xzy`, `B_zyxLE`
  Layout cache;     ///< of kc and vc: `BMK_zyxQ`, `BMKQ`, `B_zyxMKQ`
  Torus torus;      ///< that they were made for
};

/// Embedding, head and sampling around a layer, by the layout of its residual stream. Both ends use
/// the one table `V_zyE_x`: the embedding ends with the path from `BLE_x partialsum-yz` to the
/// stream, the head begins with that from its last positions (L gathered first, where it is
/// sharded) to `BE_x`.
PhasePrograms programs_around(Program layer, const Layout& residual, const Layout& cache,
                              const ModelConfig& config, const Extents& extents, const Torus& torus,
                              ActType act);

/// The same around a layer that a user wrote. Where `out` or a cache leaves it in another layout
/// than it comes in, the steps back to that layout are appended.
PhasePrograms programs_around(Program layer, const ModelConfig& config, const Extents& extents,
                              const Torus& torus, ActType act);

/// Moves a layer's K and V caches from one phase's layout to the next's; no ops if they agree.
Program hand_over(const Layout& from, const Layout& to, const Extents& extents, const Torus& torus);

}  // namespace shardproof
