#include "golden/trace/write/detail/size.h"

#include <fmt/format.h>
#include <sys/statvfs.h>

#include <string>

#include "engine/run/memory.h"
#include "golden/trace/write/trace.h"
#include "weights/base/error.h"
#include "weights/base/memory.h"
#include "weights/model/registry.h"

namespace shardproof {
namespace {

namespace fs = std::filesystem;

/// Bytes of HDF5 per dataset for its link and attributes, texts excluded.
constexpr double kDatasetBytes = 700.0;

double count(const Shape& shape) {
  double n = 1.0;
  for (std::int64_t extent : shape) n *= static_cast<double>(extent);
  return n;
}

/// Returns the number of chips with a part of their own: replicas are written once.
double parts(const Layout& layout, const Torus& torus) {
  double count = 1.0;
  for (const Axis axis : {Axis::x, Axis::y, Axis::z})
    if (layout.used().has(axis)) count *= torus.size(axis);
  return count;
}

/// Bytes of a number: of the field regime three lanes (golden/trace/write/field_words.h).
double bytes_of_number(Regime regime) { return regime == Regime::field ? 24.0 : 4.0; }

/// Bytes of a value of any kind.
double bytes_of(const Type& type, const Torus& torus, Regime regime, std::size_t texts) {
  const double described = kDatasetBytes + static_cast<double>(texts);
  if (!type.layout.is_partial()) return bytes_of_number(regime) * count(type.shape) + described;
  const double size = regime == Regime::exact ? 8.0 : bytes_of_number(regime);
  return parts(type.layout, torus) *
         (size * count(local_shape(type.layout, type.shape, torus)) + described);
}

/// Bytes of one program's op outputs in one pass, with the caches and ids that it is given. Its
/// weights, and the prefixes' caches, are in the file once.
double bytes_of(const Program& program, const ValueTypes& types, const Torus& torus,
                Regime regime) {
  double bytes = 0.0;
  for (const ValueDecl& input : program.inputs) {
    if (input.role.kind == Role::Kind::previous || input.role.kind == Role::Kind::input)
      bytes += bytes_of(types.at(input.name), torus, regime, 2 * input.name.size());
    if (input.role.kind == Role::Kind::prefix)
      bytes += kDatasetBytes + static_cast<double>(2 * input.name.size());
  }
  for (const Op& op : program.ops)
    for (const ValueDecl& r : op.results) {
      const std::size_t texts = 2 * (op.to_string().size() + r.name.size());
      const Type& type = types.at(r.name);
      if (type.layout.is_partial_max()) continue;
      // Outputs of ops that only move data are stored once.
      const bool moves = op_row(op.kind).only_moves && !type.layout.is_partial() &&
                         type.shape == types.at(op.args[0]).shape;
      bytes +=
          moves ? kDatasetBytes + static_cast<double>(texts) : bytes_of(type, torus, regime, texts);
    }
  return bytes;
}

double bytes_of(const PhasePrograms& phase, const PassTypes& types, const Case& c) {
  const auto of = [&](const Program& program, const ValueTypes& its) {
    return bytes_of(program, its, phase.torus, c.numerics.regime);
  };
  return static_cast<double>(c.model.layers) * of(phase.layer, types.layer) +
         of(phase.embed, types.embed) + of(phase.head, types.head) + of(phase.sample, types.sample);
}

}  // namespace

double estimated_trace_bytes(const TypedPlan& typed) {
  if (!typed.types) return 0.0;
  const Case& c = typed.plan.source_case;
  constexpr double kFile = 1 << 20;
  double bytes = kFile + 2000.0 * c.torus.chips();
  const Passes& all = typed.plan.passes;
  for (const WeightSpec& spec : weight_specs(typed.plan.placed, c.numerics.weights))
    bytes += bytes_of_number(c.numerics.regime) * count(spec.shape) + 2 * kDatasetBytes;
  // The size of a pass is linear in M within a group, from the first pass to the last.
  for (const TypedPasses& passes : typed.types->passes) {
    const PhasePrograms& programs = typed.plan.programs(passes.phase);
    bytes += static_cast<double>(passes.count) / 2.0 *
             (bytes_of(programs, passes.first, c) + bytes_of(programs, passes.last, c));
  }
  const auto hand_over = [&](const Program& program, const ValueTypes& types) {
    bytes += static_cast<double>(c.model.layers) *
             bytes_of(program, types, typed.plan.prefill.torus, c.numerics.regime);
  };
  if (all.decodes()) hand_over(typed.plan.hand_over, typed.types->hand_over);
  if (!all.prefix().given()) return bytes;
  hand_over(typed.plan.prefix_hand_over, typed.types->prefix_hand_over);
  if (all.decodes()) hand_over(typed.plan.prefix_to_decode, typed.types->prefix_to_decode);
  return bytes;
}

void require_trace_room(const TypedPlan& typed, const fs::path& folder) {
  const double bytes = estimated_trace_bytes(typed);
  struct statvfs disk {};
  if (::statvfs(folder.c_str(), &disk) != 0) return;  // a full disk is an error of writing, too
  const double free = static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize);
  if (bytes > free)
    throw Error("trace_c2", fmt::format("the trace takes about {}, the disk under {:?} has {} left",
                                        show_bytes(bytes), folder.string(), show_bytes(free)));
}

}  // namespace shardproof
