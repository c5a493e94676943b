#include "golden/verdict/judgement.h"

#include <ostream>
#include <utility>

#include "weights/base/detail/word_table.h"

namespace shardproof {

std::string_view to_string(Verdict verdict) {
  static constexpr std::pair<std::string_view, Verdict> kWords[] = {
      {"equal", Verdict::equal},
      {"different", Verdict::different},
      {"not judged", Verdict::not_judged},
      {"refused", Verdict::refused}};
  return word_in(kWords, verdict);
}

std::ostream& operator<<(std::ostream& out, Verdict verdict) { return out << to_string(verdict); }

Finding with_mismatch(Finding found, const Mismatch& mismatch) {
  found.chip = mismatch.chip;
  found.index = mismatch.index;
  found.expected = mismatch.expected;
  found.actual = mismatch.actual;
  found.reach = mismatch.reach;
  return found;
}

Verdict verdict_of(const std::vector<Finding>& findings, Verdict otherwise) {
  if (findings.empty()) return otherwise;
  return findings[0].detector == Detector::run ? Verdict::refused : Verdict::different;
}

const Finding* Judgement::difference() const& {
  return !findings.empty() && findings[0].detector == Detector::values ? findings.data() : nullptr;
}

std::string Judgement::detector() const {
  if (findings.empty() || verdict != Verdict::different || difference() != nullptr) return "";
  return std::string(to_string(findings[0].detector));
}

std::string Judgement::reason() const {
  if (findings.empty()) return missing;
  return difference() != nullptr ? "" : findings[0].to_string();
}

std::string Judgement::explanation() const {
  if (difference() != nullptr) return difference()->to_string();
  return detector().empty() ? reason() : detector() + ": " + reason();
}

}  // namespace shardproof
