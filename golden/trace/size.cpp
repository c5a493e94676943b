#include "golden/trace/size.h"

#include <fmt/format.h>
#include <sys/statvfs.h>

#include <string>

#include "golden/trace/trace.h"
#include "weights/error.h"
#include "weights/memory.h"

namespace shardproof {
namespace {

namespace fs = std::filesystem;

/// What HDF5 needs for a dataset, its link and its attributes, texts aside.
constexpr double kDatasetBytes = 700.0;

double count(const Shape& shape) {
  double n = 1.0;
  for (std::int64_t extent : shape) n *= static_cast<double>(extent);
  return n;
}

/// Bytes of what the ops of one program yield in one pass over L positions with M cached before.
double bytes_of(const Program& program, const Case& c, std::int64_t L, std::int64_t M) {
  // Which strategies the case names plays no part in a program's types.
  const auto types = check(program, c.inference(), L, M);
  const auto chips = static_cast<double>(c.torus.chips());
  double bytes = 0.0;
  for (const Op& op : program.ops)
    for (const Result& r : op.results) {
      const Type& type = types.at(r.name);
      const bool f64 = type.layout.is_partial() && c.numerics.regime == Regime::exact;
      const double texts = 2.0 * static_cast<double>(op.to_string().size() + r.name.size());
      bytes += 4.0 * count(type.shape) +
               (f64 ? 8.0 : 4.0) * chips * count(local_shape(type.layout, type.shape, c.torus)) +
               (chips + 1.0) * (kDatasetBytes + texts);
    }
  return bytes;
}

double bytes_of(const PhasePrograms& phase, const Case& c, std::int64_t L, std::int64_t M) {
  return static_cast<double>(c.model.layers) * bytes_of(phase.layer, c, L, M) +
         bytes_of(phase.embed, c, L, M) + bytes_of(phase.head, c, L, M) +
         bytes_of(phase.sample, c, L, M);
}

/// Of `passes` passes of L positions each, the first with M cached: a pass grows linearly in M.
double bytes_of(const PhasePrograms& phase, const Case& c, std::int64_t L, std::int64_t M,
                std::int64_t passes) {
  if (passes < 1) return 0.0;
  const double first = bytes_of(phase, c, L, M);
  const double last = passes == 1 ? first : bytes_of(phase, c, L, M + (passes - 1) * L);
  return static_cast<double>(passes) * (first + last) / 2.0;
}

}  // namespace

double estimated_trace_bytes(const Case& c, const GivenLayers& layers) {
  const InferencePrograms programs = build_programs(c.inference(layers));
  const std::int64_t chunk = c.chunk > 0 ? c.chunk : c.prompt;
  const std::int64_t rest = c.prompt % chunk;
  const auto depth = static_cast<double>(c.model.layers);
  constexpr double kFile = 1 << 20;
  double bytes = kFile + 2000.0 * c.torus.chips();
  bytes += 4.0 * static_cast<double>(c.batch) * static_cast<double>(c.prompt + c.gen);
  bytes += bytes_of(programs.prefill, c, chunk, 0, c.prompt / chunk);
  if (rest > 0) bytes += bytes_of(programs.prefill, c, rest, c.prompt - rest);
  if (c.gen > 1) bytes += bytes_of(programs.decode, c, 1, c.prompt, c.gen - 1);
  if (c.gen > 1) bytes += depth * bytes_of(programs.hand_over, c, c.prompt, c.prompt);
  return bytes;
}

void require_trace_room(const Case& c, const GivenLayers& layers, const fs::path& folder) {
  const double bytes = estimated_trace_bytes(c, layers);
  const double run = estimated_bytes(c.inference(layers), build_programs(c.inference(layers)));
  try {
    require_memory(bytes + run, "both need about");
  } catch (const Error& error) {
    const std::string why = std::string(error.what()).substr(error.label().size() + 2);
    throw Error("trace_c2",
                fmt::format("the trace takes about {}, built in memory beside the run: {}",
                            show_bytes(bytes), why));
  }
  struct statvfs disk {};
  if (::statvfs(folder.c_str(), &disk) != 0) return;  // the writing will tell
  const double free = static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize);
  if (bytes > free)
    throw Error("trace_c2", fmt::format("the trace takes about {}, the disk under {:?} has {} left",
                                        show_bytes(bytes), folder.string(), show_bytes(free)));
}

}  // namespace shardproof
