#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "engine/program/execute.h"
#include "engine/run/plan_types.h"
#include "golden/memo/oracle_memo.h"
#include "weights/base/error.h"

namespace shardproof {

/// The version of the file format (docs/trace-format.md).
inline constexpr int kTraceFormat = 1;

/// Bytes of the trace of a run, about and from above (0 of a plan without types), where copies of
/// values agree, as they do in a run that is right: weights, and every op output of every pass,
/// once as a logical tensor or, of partial sums, as the chips' summands, and what HDF5 needs to
/// describe them.
double estimated_trace_bytes(const TypedPlan& typed);

class TraceFile;

/// Writes every op output of a run, its weights, token ids and caches into one HDF5 file
/// (docs/trace-format.md, "What Shardproof writes"): `/ID` the logical tensor where each chip holds
/// just its block of it, else `/chips/X_Y_Z/ID` the chip's shard, ID being the step's stable name
/// ("prefill.c0.layer0.qr"). Layouts are the declared ones, and the logical tensor is put together
/// by them, so that a trace shows what a program claims. The file is built in memory and appears
/// whole, by write(), or not at all.
class Trace : public Observer {
 public:
  /// Throws Error: "trace_c1" (a path where no file can be made), "trace_c2" (a trace too large for
  /// the machine's memory together with the run, or for the disk; the size is named), "trace_c3"
  /// (regime=field: a trace is of floats), "case_split" (a case of two tori).
  /// `weights_given`: they were not made from the case's seed.
  Trace(const TypedPlan& typed, std::filesystem::path target, bool weights_given = false);
  ~Trace() override;

  /// Throws Error("trace_c2", ...) where copies of values differ and there is no room for them.
  void observe(const Scope& scope, const Program& program, const Op* op, const ValueDecl& declared,
               const Sharded& value) override;

  /// Puts what a value of the run should have been under `/expected/ID`, as the unsharded model has
  /// it; nothing, where that has no such value, or where the run never came to it.
  void expect(const std::string& id, const OracleMemo::Known& known);

  /// Writes the file; to be called once. `ended` says how the run ended: "complete", or what was
  /// found first. Throws Error("trace_c1", ...) if the disk refuses; then nothing is left
  /// behind.
  void write(std::string_view ended);

 private:
  std::unique_ptr<TraceFile> file_;
};

}  // namespace shardproof
