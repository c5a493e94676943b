#include "golden/trace/reference/masked_slots.h"

#include "golden/trace/value/last_rows.h"

namespace shardproof::dump {

bool has_unseen_slots(std::string_view name) {
  return name == "score" || name == "exp" || name == "probs";
}

MaskedSlots::MaskedSlots(const DumpedValue& dumped, const Claim& claim, Reference& reference) {
  const Subject& s = dumped.subject;
  if (!claim.masked_any) return;
  if (claim.source_case.model.rows != nullptr) {
    if (s.meaning == Meaning::checkpoint && !s.last) masked_ = reference.replay().absent(s.id);
    return;
  }
  if (!has_unseen_slots(s.name)) return;
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  const bounds::Derivation& replay = reference.replay();
  const PassPlan& pass = replay.pass(s.pass);
  masked_.resize(at(element_count(s.shape)));
  const std::size_t H = at(s.shape.end()[-2]), M = at(s.shape.end()[-1]);
  const Shape whole{s.shape[0], pass.L};
  const std::vector<std::size_t> tokens =
      s.last ? last_elements(whole, pass) : std::vector<std::size_t>();
  for (std::size_t i = 0; i < masked_.size(); ++i) {
    const std::size_t n = s.last ? tokens[i / M / H] : i / M / H;
    masked_[i] =
        static_cast<std::int64_t>(i % M) > replay.position(pass, n / at(pass.L), n % at(pass.L));
  }
}

}  // namespace shardproof::dump
