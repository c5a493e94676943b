#pragma once

#include "engine/program/program.h"
#include "engine/strategies/strategy.h"
#include "weights/numerics.h"

namespace shardproof {

/// The programs of one phase (prefill or decode) under one strategy. They hold for any shapes; the
/// torus enters only by which axes divide the K/V heads.
struct PhasePrograms {
  Program embed;    ///< ids -> x
  Program layer;    ///< x, kc, vc -> out, kc, vc; built once, run per layer
  Program head;     ///< x -> logits of each row's last position
  Program sample;   ///< logits -> token, greedy
  Layout residual;  ///< of x between layers: `BLE_xzy`, `B_zyxLE`
  Layout cache;     ///< of kc and vc: `BMK_zyxQ`, `BMKQ`, `B_zyxMKQ`
};

/// Builds the programs; `kv` is kv_axes(). Weights rest as `E_xF_zy`, `F_zyE_x`, `E_xH_zyQ`,
/// `H_zyQE_x`, `V_zyE_x` for ws2d and wg-xyz, and as `EF_zyx`, `F_zyxE`, ... for ws1d.
PhasePrograms build_programs(const Strategy& strategy, const Axes& kv, const ModelConfig& config,
                             ActType act);

/// The layer alone. A parallel block: prologue (gather, norm), attention, FFN, one reduction (paper
/// §3.2-3.4); a serial one: gather, norm, attention, reduction, and the same again for the FFN.
Program build_layer(const Strategy& strategy, const Axes& kv, const ModelConfig& config,
                    ActType act);
Program build_embed(const Strategy& strategy, ActType act);
Program build_head(const Strategy& strategy, const ModelConfig& config, ActType act);
Program build_sample();

/// Moves a layer's K and V caches from one phase's layout to the next's; no ops if they agree.
Program build_hand_over(const Layout& from, const Layout& to);

Layout residual_layout(const Strategy& strategy);
Layout cache_layout(const Strategy& strategy, const Axes& kv);

}  // namespace shardproof
