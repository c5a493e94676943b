#include "tools/runner/tally.h"

#include <fmt/format.h>

namespace shardproof::tools {

void Tally::add(const Case& c, const Judgement& j) {
  switch (j.verdict) {
    case Verdict::equal:
      ++equal;
      break;
    case Verdict::different:
      ++different;
      break;
    case Verdict::not_judged:
      ++not_judged;
      break;
    case Verdict::refused:
      ++refused;
      break;
  }
  tensors += j.tensors;
  elements += j.elements;
  if (j.drift) {
    drift.add(*j.drift);
    ++drifting;
  }
  if (j.from_plain) {
    from_plain.add(*j.from_plain);
    ++folded;
  }
  if (j.bounds) {
    bounds.add(*j.bounds);
    ++bounded;
  }
  if (j.field && j.verdict == Verdict::equal) {
    ++of_field;
    if (!j.field->distinct_ids) ++of_these_ids;
    if (!weakest || weakest->log2_miss < j.field->log2_miss) weakest = j.field;
  }
  if (j.verdict != Verdict::equal && !first_failure) first_failure = Failure{c, j.verdict};
  for (const std::string& note : j.notes) notes[note].push_back(cases());
}

std::string Tally::to_string() const {
  return fmt::format("{} equal, {} different, {} not judged, {} refused", equal, different,
                     not_judged, refused);
}

}  // namespace shardproof::tools
