#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/layout/torus.h"
#include "engine/layouts/table.h"
#include "engine/program/program.h"
#include "weights/base/error.h"
#include "weights/model/model_config.h"
#include "weights/model/prefix.h"

namespace shardproof {

/// How one phase is partitioned: by a named table of layouts, e.g. `ws2d:batch`, or by a layer
/// program that a user wrote.
class Strategy {
 public:
  Strategy();  ///< ws2d:heads
  explicit Strategy(LayoutTable table);
  explicit Strategy(Program layer);

  /// Reads the name of a shipped table or of one of `own`; `ws2d` alone means `ws2d:heads`, `wg-x`
  /// alone `wg-x:natural`. Throws Error("strategy_c1", ...) on an unknown name, naming the nearest.
  static Strategy parse(std::string_view text, const std::vector<Strategy>& own = {});

  /// The layer program, or null where there is a table.
  const Program* program() const { return program_.get(); }
  /// Requires that there is no program.
  const LayoutTable& table() const { return *table_; }
  /// The table's name, or the program's file.
  const std::string& to_string() const {
    return program_ != nullptr ? program_->source.file : table_->name;
  }
  /// Returns true if the strategy is one of all_strategies(), not a user's.
  bool ships() const { return program_ == nullptr && table_->source.file.empty(); }
  bool operator==(const Strategy& other) const;

 private:
  std::shared_ptr<const LayoutTable> table_;  // exactly one of table_ and program_ is set
  std::shared_ptr<const Program> program_;
};

/// Every strategy that ships (engine/strategies/strategies.layouts), in the order of the paper.
const std::vector<Strategy>& all_strategies();

/// Reads the strategies of a file of tables. Throws what load_layouts throws, and
/// Error("layouts_c2", ...) if a table has the name of a shipped one.
std::vector<Strategy> load_strategies(const std::string& path);

/// A dim that a strategy shards over the chips along `axes`, which must divide it.
struct ShardedDim {
  char dim;   ///< B is the batch, L the positions of a pass
  Axes axes;  ///< in x, y, z order
};
/// Every dim that must divide, in the order E F H Q V B L: as the table's layouts (or those of the
/// layer program's values) shard them; E and V also as the table `V_zyE_x` and the logits `BV_zyx`
/// do. If a dim is sharded in several ways, the largest. K and N are left out: they are sharded
/// over as many of their axes as divide them.
std::vector<ShardedDim> sharded_dims(const Strategy& strategy);
/// "XYZ" for xyz: the product of the sizes, as messages print it.
std::string product_name(const Axes& axes);

/// The smallest batch, and the smallest number of positions, that the strategy can shard.
std::int64_t smallest_batch(const Strategy& strategy, const Torus& torus);
std::int64_t smallest_length(const Strategy& strategy, const Torus& torus);
/// Returns true if the strategy can decode: the one position of a decode step is not shardable.
bool decodes(const Strategy& strategy);

/// Throws Error("strategy_c3", ...) if dims do not divide as the strategies of the phases need: all
/// of them at once, with the nearest legal model (and batch), and the least padding of H and V that
/// divides. Throws Error("strategy_c4", ...) if only the batch is too small. Layer programs are
/// skipped: their types check this. `placed` is the model with its dims as chips hold them; null if
/// they are the model's own.
void require_legal(const std::vector<Strategy>& phases, const ModelConfig& config,
                   const Torus& torus, std::int64_t batch, const ModelConfig* placed = nullptr);
void require_legal(const Strategy& strategy, const ModelConfig& config, const Torus& torus,
                   std::int64_t batch);

/// Throws Error("strategy_c2", ...) unless the strategy can decode, naming some that can.
void require_decodes(const Strategy& strategy);
/// Throws Error("strategy_c5", ...) unless the strategy's blocks of L divide every pass over the
/// prompt; with prefixes, the passes over them and those over what follows them.
void require_lengths(const Strategy& strategy, const Torus& torus, std::int64_t prompt,
                     std::int64_t chunk, const SharedPrefix& prefix = {});

}  // namespace shardproof
