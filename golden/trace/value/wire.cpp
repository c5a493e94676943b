#include "golden/trace/value/wire.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "weights/model/registry.h"

namespace shardproof::dump {
namespace {

/// The operands, weights and contracted dims of a sum; for a norm, those of its statistics.
struct Sum {
  std::string_view name, operands, weights;  ///< space-separated names
  std::string_view over;                     ///< dims
};
constexpr std::array kSums{Sum{"embed", "", "embed", "V"},
                           Sum{"norm", "embed out", "", "E"},
                           Sum{"norm2", "mid", "", "E"},
                           Sum{"final_norm", "out", "", "E"},
                           Sum{"q", "norm", "wq", "E"},
                           Sum{"k", "norm", "wk", "E"},
                           Sum{"v", "norm", "wv", "E"},
                           Sum{"score", "q q_rot k_cache", "", "Q"},
                           Sum{"denom", "exp probs", "", "M"},
                           Sum{"attn", "exp probs v_cache", "", "M"},
                           Sum{"attn_out", "attn", "wo", "HQ"},
                           Sum{"gate", "norm norm2", "w_gate", "E"},
                           Sum{"up", "norm norm2", "w_up", "E"},
                           Sum{"ffn_out", "hidden", "w_out", "F"},
                           Sum{"block_out", "attn hidden", "wo w_out", "HQF"},
                           Sum{"logits", "final_norm", "unembed embed", "E"}};

bool has_word(std::string_view words, std::string_view word) {
  for (std::size_t at = words.find(word); at != words.npos; at = words.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || words[at - 1] == ' ') && (end == words.size() || words[end] == ' '))
      return true;
  }
  return false;
}

bool cut(const Layout& layout, std::string_view dims, const Torus& torus) {
  return torus.size(layout.partial()) > 1 || std::any_of(dims.begin(), dims.end(), [&](char d) {
           return layout.find(d) && torus.size(layout.axes(d)) > 1;
         });
}

/// Returns whether `other` is an operand of the value: of its pass, and its layer or earlier.
bool is_operand(const Sum& sum, const Subject& value, const Subject& other) {
  if (other.meaning == Meaning::weight) {
    const std::string name = other.name.substr(other.name.rfind('.') + 1);
    return has_word(sum.weights, name) &&
           (name == other.name || other.name == weight_id(value.layer, name));
  }
  if (other.pass != value.pass || !has_word(sum.operands, other.name)) return false;
  const bool earlier = other.name == "out" || other.name == "final_norm" || other.name == "embed";
  return earlier || other.layer == value.layer;
}

/// Returns whether the value's chips have partial sums, as far as the trace shows it.
bool may_travel(const DumpedValue& value, const std::vector<Values::Laid>& all,
                const Torus& torus) {
  const auto* const sum = std::find_if(kSums.begin(), kSums.end(),
                                       [&](const Sum& s) { return s.name == value.subject.name; });
  if (sum == kSums.end() || value.subject.meaning == Meaning::stat) return true;
  bool known = false;
  for (const Values::Laid& other : all) {
    const bool same = other.subject.id == value.subject.id;
    if (same && torus.size(other.layout.partial()) > 1) return true;
    if (!is_operand(*sum, value.subject, other.subject)) continue;
    if (cut(other.layout, sum->over, torus)) return true;
    known = known || other.subject.meaning != Meaning::weight;
  }
  return !known;
}

}  // namespace

void leave_out_wire(Values& values, const Claim& claim) {
  // Which values are sums is known by their names, which a text gives as it likes.
  if (claim.declared.wire_roundings == 0 || claim.source_case.model.rows != nullptr) return;
  for (DumpedValue& value : values.dumped) {
    if (value.own_wire || may_travel(value, values.laid, claim.source_case.torus)) continue;
    if (!value.declared) value.declared = claim.declared;
    value.declared->wire_roundings = 0;
  }
}

}  // namespace shardproof::dump
