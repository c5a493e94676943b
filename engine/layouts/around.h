#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

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
  Layout residual;  ///< layout of x between layers: `BLE_xzy`, `B_zyxLE`
  Layout cache;     ///< layout of kc and vc, of a model of keys: `BMK_zyxQ`, `BMKQ`, `B_zyxMKQ`
  Torus torus;      ///< torus that the programs were built for
  /// Layout of pk and pv where rows continue prefixes: `NTKQ`, `N_zyxTKQ`; otherwise without dims.
  Layout prefix_cache = {};
  /// Programs of the layers that differ from `layer`, if the model is a text.
  std::vector<Program> other_layers = {};
  /// By layer, 0 for `layer`, n for other_layers[n - 1]; empty: all are `layer`.
  std::vector<std::size_t> layer_programs = {};

  /// Returns the program of a layer.
  const Program& layer_program(std::int64_t index) const {
    const std::size_t n =
        layer_programs.empty() ? 0 : layer_programs.at(static_cast<std::size_t>(index));
    return n == 0 ? layer : other_layers.at(n - 1);
  }
  /// Returns the names and layouts of a layer's caches, or of those of the prefixes that it reads.
  std::vector<std::pair<std::string, Layout>> caches(std::int64_t index) const;
  std::vector<std::pair<std::string, Layout>> prefix_caches(std::int64_t index) const;
  /// Returns embedding, layers and head, in this order.
  std::vector<const Program*> all() const {
    std::vector<const Program*> programs{&embed, &layer};
    for (const Program& other : other_layers) programs.push_back(&other);
    programs.push_back(&head);
    return programs;
  }
};

/// Adds embedding, head and sampling to a layer, by the layout of its residual stream. Both ends
/// use the one table `V_zyE_x`: the embedding ends with the path from `BLE_x partialsum-yz` to the
/// stream; the head begins with the path from the stream's last positions (L gathered first, where
/// it is sharded) to `BE_x`.
PhasePrograms programs_around(PartitionedLayer made, const ModelConfig& config,
                              const Extents& extents, const Torus& torus, NumberFormat act,
                              const Sampling& sampling = {});

/// Adds embedding, head and sampling to a layer that a user wrote. Where `out` or a cache leaves
/// the layer in another layout than it enters in, the ops back to that layout are appended.
PhasePrograms programs_around(Program layer, const ModelConfig& config, const Extents& extents,
                              const Torus& torus, NumberFormat act, const Sampling& sampling = {});

/// The program from logits to tokens: the argmax; or e of each logit, a search for each threshold
/// given, and a draw.
Program sampling_program(const Sampling& sampling);

/// Moves a layer's K and V caches from one phase's layout to the next's; no ops if they agree.
Program hand_over(const Layout& from, const Layout& to, const Extents& extents, const Torus& torus);
/// Moves the caches of a layer, by name, from one phase's layouts to the next's.
Program hand_over(const PhasePrograms& from, const PhasePrograms& to, std::int64_t index,
                  const Extents& extents, const Torus& torus);

/// Renames a cache layout's dims to those of prefix caches, B to N and M to T; no data moves.
Layout as_prefixes(const Layout& cache);
/// prefix_hand_over moves the caches of prefixes from the layout in which the prefix passes leave
/// them (renamed by as_prefixes) to the one in which the prefill reads them; prefix_to_decode moves
/// them on to the one in which decode steps read them.
Program prefix_hand_over(const PhasePrograms& prefix, const PhasePrograms& prefill,
                         std::int64_t index, const Extents& extents, const Torus& torus);
Program prefix_to_decode(const PhasePrograms& from, const PhasePrograms& to, std::int64_t index,
                         const Extents& extents, const Torus& torus);
Program prefix_hand_over(const Layout& from, const Layout& to, const Extents& extents,
                         const Torus& torus);
Program prefix_to_decode(const Layout& from, const Layout& to, const Extents& extents,
                         const Torus& torus);

}  // namespace shardproof
