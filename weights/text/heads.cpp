#include "weights/text/heads.h"

#include <string>

namespace shardproof {

char group_letter(const TextModel& text) {
  for (const TextSection section : kTextSections)
    for (const TextLine& line : text.flat().section(section).lines) {
      const Expression& e = line.expression;
      if (e.kind != Expression::Kind::call || row_of(e.op).form != ModelForm::view) continue;
      for (const std::size_t whole : {0U, 1U})
        if (const std::string& parts = e.parameters[1 - whole];
            e.parameters[whole] == "H" && parts.size() == 2 && parts[0] == 'K')
          return parts[1];
    }
  return 0;
}

/// Returns whether each kv head has as many query heads as any other: in models of keys, and in a
/// text that has a view for it.
static bool has_groups(const ModelConfig& model) {
  const TextModel* const text = text_model(model);
  return text == nullptr || group_letter(*text) != 0;
}

std::int64_t heads_per_group(const ModelConfig& model) {
  return model.K == 1 || !has_groups(model) ? 1 : model.H / model.K;
}

std::int64_t kv_heads(const ModelConfig& model, std::int64_t heads) {
  return model.K == 1 || !has_groups(model) ? model.K : heads / heads_per_group(model);
}

}  // namespace shardproof
