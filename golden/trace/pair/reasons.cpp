#include "golden/trace/pair/reasons.h"

#include "weights/model/registry.h"

namespace shardproof::dump {

Reasons::Reasons(const JudgedTrace& a, const JudgedTrace& b, const Tokens& tokens,
                 bool same_weights)
    : traces_{&a, &b}, tokens_(tokens), same_weights_(same_weights) {}

void Reasons::settle(bool of_b, const Subject& value, const std::string& why) {
  const std::size_t side = of_b ? 1 : 0;
  if (!why.empty() && first_[side].empty()) first_[side] = why;
  // Raw sums, statistics and the like are read by nothing that has a name.
  if (value.meaning != Meaning::checkpoint && value.meaning != Meaning::probs &&
      value.meaning != Meaning::token && value.meaning != Meaning::joined)
    return;
  const auto [found, is_new] = settled_[side].try_emplace(value.id, why);
  if (!is_new && found->second.empty()) found->second = why;
}

std::string Reasons::of_operands(bool of_b, const Subject& s) const {
  if (!same_weights_) return "the weights differ";
  if (s.meaning == Meaning::weight || s.meaning == Meaning::positions) return "";
  if (tokens_.shifted()) return "the positions differ";
  if (s.meaning != Meaning::ids)
    if (std::string why = tokens_.reason_before(of_b, s.pass); !why.empty()) return why;
  std::set<std::string> seen;
  const std::string before = s.id.substr(0, s.id.rfind('.') + 1);
  switch (s.meaning) {
    case Meaning::ids:
      return tokens_.reason(of_b, s.pass);
    case Meaning::token:
    case Meaning::candidates:
    case Meaning::indices:
    case Meaning::drawing:
      return of_value(of_b, s.pass + ".logits", seen);
    case Meaning::joined:
      return of_all_before(of_b);
    case Meaning::probs: {
      const std::string why = of_value(of_b, before + "exp", seen);
      return why.empty() ? of_value(of_b, before + "denom", seen) : why;
    }
    default:
      break;
  }
  // What lines of a text read besides named values is not known here.
  if (traces_[of_b ? 1 : 0]->claim.source_case.model.rows != nullptr) {
    const std::string why = of_all_before(of_b);
    return why.empty() ? tokens_.reason(of_b, s.pass) : why;
  }
  const auto found = traces_[of_b ? 1 : 0]->operands.find(id_of_operands(s, nullptr));
  if (found == traces_[of_b ? 1 : 0]->operands.end()) return of_all_before(of_b);
  if (found->second.empty()) return tokens_.reason(of_b, s.pass);
  for (const std::string& id : found->second)
    if (const std::string why = of_value(of_b, id, seen); !why.empty()) return why;
  return "";
}

std::string Reasons::of_value(bool of_b, const std::string& id, std::set<std::string>& seen) const {
  if (!seen.insert(id).second) return "";
  const std::size_t side = of_b ? 1 : 0;
  if (const auto found = settled_[side].find(id); found != settled_[side].end())
    return found->second;
  const auto operands = traces_[side]->operands.find(id);
  if (operands == traces_[side]->operands.end()) return of_all_before(of_b);
  if (operands->second.empty())
    return tokens_.reason(of_b, id.substr(0, id.find('.', id.find('.') + 1)));
  for (const std::string& operand : operands->second)
    if (const std::string why = of_value(of_b, operand, seen); !why.empty()) return why;
  return "";
}

std::string Reasons::of_all_before(bool of_b) const { return first_[of_b ? 1 : 0]; }

}  // namespace shardproof::dump
