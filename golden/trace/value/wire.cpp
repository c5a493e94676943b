#include "golden/trace/value/wire.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "weights/model/registry.h"
#include "weights/text/block_terms.h"
#include "weights/text/composites.h"

namespace shardproof::dump {
namespace {

bool cut(const Layout& layout, std::string_view dims, const Torus& torus) {
  return torus.size(layout.partial()) > 1 || std::any_of(dims.begin(), dims.end(), [&](char d) {
           return layout.find(d) && torus.size(layout.axes(d)) > 1;
         });
}

using Composites = std::map<std::string, Composite>;

/// Returns whether `other` is an operand of the value: of its pass, and its layer or earlier.
bool is_operand(const Composites& all, const Subject& value, const Subject& other) {
  const Composite& of = all.at(value.name);
  if (other.meaning == Meaning::weight)  // gains and slopes are not summed over
    return (of.kind == CompositeKind::product || of.kind == CompositeKind::lookup) &&
           std::any_of(of.weights.begin(), of.weights.end(), [&](const std::string& weight) {
             return other.name == weight_id(value.layer, weight);
           });
  if (other.pass != value.pass) return false;
  if (other.meaning == Meaning::probs) return of.contracted[0] == "M" && other.layer == value.layer;
  return std::any_of(of.operands.begin(), of.operands.end(), [&](const std::string& name) {
    if (name == "in")
      return other.name == result_of(TextSection::embedding) ||
             other.name == result_of(TextSection::layer);
    // A rotation is laid out as its operand.
    const Composite& operand = all.at(name);
    const bool is_named = other.name == name || (operand.kind == CompositeKind::rotation &&
                                                 other.name == operand.operands[0]);
    return is_named && (other.layer == value.layer || !value_row(name)->per_layer);
  });
}

/// Returns whether the value's chips have partial sums, as far as the trace shows it.
bool may_travel(const DumpedValue& value, const std::vector<Values::Laid>& all,
                const Composites& composites, const Torus& torus) {
  const auto of = composites.find(value.subject.name);
  if (of == composites.end() || of->second.contracted.empty() ||
      value.subject.meaning == Meaning::stat)
    return true;
  std::string over;
  for (const std::string& letters : of->second.contracted) over += letters;
  bool known = false;
  for (const Values::Laid& other : all) {
    const bool same = other.subject.id == value.subject.id;
    if (same && torus.size(other.layout.partial()) > 1) return true;
    if (!is_operand(composites, value.subject, other.subject)) continue;
    if (cut(other.layout, over, torus)) return true;
    known = known || other.subject.meaning != Meaning::weight;
  }
  return !known;
}

}  // namespace

void leave_out_wire(Values& values, const Claim& claim) {
  if (claim.declared.wire_roundings == 0 || claim.source_case.model.rows != nullptr) return;
  const Case& c = claim.source_case;
  Composites composites;
  const NumberFormat weights = c.numerics.weights;
  for (const NamedComposites& some :
       {composites_of(c.model, weights), block_terms_of(c.model, weights)})
    composites.insert(some.begin(), some.end());
  for (DumpedValue& value : values.dumped) {
    if (value.own_wire || may_travel(value, values.laid, composites, c.torus)) continue;
    if (!value.declared) value.declared = claim.declared;
    value.declared->wire_roundings = 0;
  }
}

}  // namespace shardproof::dump
