#include "golden/trace/write/trace.h"

#include <utility>

#include "golden/trace/write/detail/file.h"
#include "golden/trace/write/detail/size.h"
#include "weights/base/detail/replace_file.h"

namespace shardproof {

namespace fs = std::filesystem;

Trace::Trace(const TypedPlan& typed, fs::path target, bool weights_given) {
  require_one_torus(typed.plan.source_case, "a trace");
  const fs::path resolved = require_replaceable(target, "trace_c1");
  require_trace_room(typed, resolved.has_parent_path() ? resolved.parent_path() : fs::path("."));
  file_ = std::make_unique<TraceFile>(typed.plan, std::move(target), weights_given);
}

Trace::~Trace() = default;

void Trace::observe(const Scope& scope, const Program& program, const Op* op,
                    const ValueDecl& declared, const Sharded& value) {
  // What the reduction makes of them is written.
  if (declared.layout.is_partial_max()) return;
  file_->add(scope, program, op, declared, value);
}

void Trace::expect(const std::string& id, const OracleMemo::Known& known) {
  file_->expect(id, known);
}

void Trace::write(std::string_view ended) { file_->write(ended); }

}  // namespace shardproof
