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

/// Returns an approximate upper bound in bytes of the trace of a run (0 for a plan without types)
/// whose replicas agree, as in a correct run: weights, and every op output of every pass, once as a
/// logical tensor or, for partial sums, per chip, with HDF5's overhead.
double estimated_trace_bytes(const TypedPlan& typed);

class TraceFile;

/// Writes every op output of a run, its weights, token ids and caches into one HDF5 file
/// (docs/trace-format.md, "What Shardproof writes"): `/ID` is the logical tensor if each chip holds
/// exactly its block of it, otherwise `/chips/X_Y_Z/ID` is the chip's shard; ID is the step's
/// stable name ("prefill.c0.layer0.qr"). The logical tensor is assembled by the declared layouts,
/// so that a trace shows what a program claims. write() creates the file, complete or not at all.
class Trace : public Observer {
 public:
  /// Throws Error: "trace_c1" (a path where a file cannot be created), "trace_c2" (a trace too
  /// large for the disk; states the size), "case_split" (a case of two tori).
  /// `weights_given`: the weights were not generated from the case's seed.
  Trace(const TypedPlan& typed, std::filesystem::path target, bool weights_given = false);
  ~Trace() override;

  void observe(const Scope& scope, const Program& program, const Op* op, const ValueDecl& declared,
               const Sharded& value) override;

  /// Writes the unsharded model's value for an op output to `/expected/ID`; writes nothing if the
  /// model has no such value, or the run did not reach it.
  void expect(const std::string& id, const OracleMemo::Known& known);

  /// Writes the file; call it once. `ended` says how the run ended: "complete", or the first
  /// finding. Throws Error("trace_c1", ...) if the disk fails, and then leaves nothing behind.
  void write(std::string_view ended);

 private:
  std::unique_ptr<TraceFile> file_;
};

}  // namespace shardproof
