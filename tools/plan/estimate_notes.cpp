#include "tools/plan/estimate_notes.h"

#include "engine/cost/formulas/embeddings.h"
#include "engine/cost/work/efficiency.h"
#include "tools/text/wrapped.h"

namespace shardproof::tools {
namespace {

constexpr const char* kComparison =
    "constants fitted on all volumes, taken of the FFN's: a comparison, no prediction";

}  // namespace

std::string embedding_notes(const cost::PlanRequest& request) {
  std::string out;
  for (const NumberFormat weights : request.weights)
    if (const std::string note = cost::embeddings_note(weights); !note.empty())
      out += wrapped(note, kWidth, "") + "\n";
  return out;
}

std::string estimate_notes(const cost::PlanRequest& request) {
  std::string out;
  if (const std::string guess = cost::guess_on(request.chip); !guess.empty())
    out += wrapped(guess, kWidth, "") + "\n";
  if (request.volumes == cost::Volumes::paper) out += std::string(kComparison) + "\n";
  return out + embedding_notes(request);
}

void add_embedding_types(const cost::PlanRequest& request, nlohmann::json& out) {
  for (const NumberFormat weights : request.weights)
    out["embeddings"][std::string(to_string(weights))] =
        to_string(cost::embeddings_beside(weights));
}

void add_estimate_notes(const cost::PlanRequest& request, nlohmann::json& out) {
  add_embedding_types(request, out);
  if (std::string guess = cost::guess_on(request.chip); !guess.empty())
    out["guess"] = std::move(guess);
  if (request.volumes == cost::Volumes::paper) out["comparison"] = kComparison;
}

}  // namespace shardproof::tools
