#include "golden/compare/dim_padding.h"

namespace shardproof {

DimPadding::DimPadding(const ModelConfig& model, std::int64_t pad_heads, std::int64_t pad_vocab) {
  if (pad_vocab > model.V) extents_['V'] = pad_vocab;
  if (pad_heads <= model.H) return;
  extents_['H'] = pad_heads;
  if (model.K != 1) extents_['K'] = pad_heads * model.K / model.H;
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
