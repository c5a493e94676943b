#include "golden/compare/dim_padding.h"

#include "weights/text/text_model.h"

namespace shardproof {
namespace {

/// Returns the letter beside K that a view of heads has; 0 if the expression is no such view.
char group_in(const Expression& e) {
  if (e.kind != Expression::Kind::call) return 0;
  const bool splits = e.op == ModelOp::split_dim;
  if (!splits && e.op != ModelOp::merge_dim) return 0;
  const std::string& parts = e.parameters[splits ? 1 : 0];
  return parts.size() == 2 && parts[0] == 'K' ? parts[1] : '\0';
}

}  // namespace

DimPadding::DimPadding(const ModelConfig& model, std::int64_t pad_heads, std::int64_t pad_vocab) {
  if (pad_vocab > model.V) extents_['V'] = pad_vocab;
  if (pad_heads <= model.H) return;
  extents_['H'] = pad_heads;
  if (model.K != 1) {
    extents_['K'] = pad_heads * model.K / model.H;
    return;
  }
  // With one kv head all heads are its group, by whatever letter a text sees them beside K.
  if (const TextModel* const text = text_model(model); text != nullptr)
    for (const TextLine& line : text->flat().section(TextSection::layer).lines)
      if (const char group = group_in(line.expression); group != 0) extents_[group] = pad_heads;
}

std::int64_t DimPadding::placed(char letter, std::int64_t own) const {
  const auto at = extents_.find(letter);
  return at == extents_.end() ? own : at->second;
}

Shape DimPadding::placed(std::string_view letters, const Shape& own) const {
  Shape shape = own;
  for (std::size_t d = 0; d < shape.size() && d < letters.size(); ++d)
    shape[d] = placed(letters[d], own[d]);
  return shape;
}

std::string whole_letters(const Layout& layout) {
  std::string letters = layout.letters();
  if (const std::size_t at = letters.find("SR"); at != std::string::npos)
    letters.replace(at, 2, "H");
  return letters;
}

}  // namespace shardproof
