#pragma once

#include "engine/layouts/partition.h"
#include "engine/layouts/writer.h"
#include "weights/model/sampling.h"

namespace shardproof {

/// The programs of one phase: over prefixes, prefill or decode.
struct PhasePrograms {
  Program embed;    ///< ids -> x
  Program layer;    ///< x, kc, vc -> out, kc, vc; built once, run per layer
  Program head;     ///< x -> logits of each row's last position
  Program sample;   ///< logits -> token, as sampling_program() says
  Layout residual;  ///< of x between layers: `BLE_xzy`, `B_zyxLE`
  Layout cache;     ///< of kc and vc: `BMK_zyxQ`, `BMKQ`, `B_zyxMKQ`
  Torus torus;      ///< that they were made for
  /// Of pk and pv, where rows go on from prefixes: `NTKQ`, `N_zyxTKQ`; else without dims.
  Layout prefix_cache = {};
};

/// Embedding, head and sampling around a layer, by the layout of its residual stream. Both ends use
/// the one table `V_zyE_x`: the embedding ends with the path from `BLE_x partialsum-yz` to the
/// stream, the head begins with that from its last positions (L gathered first, where it is
/// sharded) to `BE_x`.
PhasePrograms programs_around(PartitionedLayer made, const ModelConfig& config,
                              const Extents& extents, const Torus& torus, ActType act,
                              const Sampling& sampling = {});

/// The same around a layer that a user wrote. Where `out` or a cache leaves it in another layout
/// than it comes in, the steps back to that layout are appended.
PhasePrograms programs_around(Program layer, const ModelConfig& config, const Extents& extents,
                              const Torus& torus, ActType act, const Sampling& sampling = {});

/// From logits to tokens: the largest; or e of each logit, a search for each threshold that is
/// asked for, and a draw.
Program sampling_program(const Sampling& sampling);

/// Moves a layer's K and V caches from one phase's layout to the next's; no ops if they agree.
Program hand_over(const Layout& from, const Layout& to, const Extents& extents, const Torus& torus);

/// The layout of a phase's caches as that of prefixes, which no data moves for: B is N, M is T.
Layout as_prefixes(const Layout& cache);
/// The same of the caches of prefixes: from where the passes over them leave them, as as_prefixes
/// says, to where the prefill reads them; and on to where decode steps do.
Program prefix_hand_over(const Layout& from, const Layout& to, const Extents& extents,
                         const Torus& torus);
Program prefix_to_decode(const Layout& from, const Layout& to, const Extents& extents,
                         const Torus& torus);

}  // namespace shardproof
