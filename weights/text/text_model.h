#pragma once

#include <memory>
#include <string>

#include "weights/base/error.h"
#include "weights/model/model_config.h"
#include "weights/model/model_rows.h"
#include "weights/model/numerics.h"
#include "weights/text/model_text.h"
#include "weights/text/sizes.h"

namespace shardproof {

/// A model that is given as a text, in one size: its rows are those of its flat form
/// (weights/text/flat.h), a checkpoint for each line.
class TextModel : public ModelRows {
 public:
  /// `line` names it in case lines: "my.model,E=64". Throws Error("model_c17", ...) (two sections
  /// define one name), and what sizes_of and text_weight_specs throw.
  TextModel(const ModelText& text, const TextKeys& keys, std::string line);
  /// Takes these sizes. With weights=int8 its flat form multiplies sums of codes by scales
  /// (weights/text/scales.h).
  TextModel(const ModelText& text, TextSizes sizes, std::string line, NumberFormat weights);

  const ModelText& text() const { return text_; }
  const ModelText& flat() const { return flat_; }
  bool int8() const { return int8_; }
  const TextSizes& sizes() const { return sizes_; }
  std::int64_t line_of(std::string_view name, std::int64_t layer) const override;
  /// Returns the weight with this name in the text, of the section that declares it first.
  const TextWeight* weight(std::string_view name) const;
  /// Returns the weight of the model with this name in files; null for one of a layer.
  const TextWeight* weight_of_file(std::string_view name) const;

 private:
  void add_weights();
  void add_scales();
  void add_values();

  ModelText text_, flat_;
  TextSizes sizes_;
  bool int8_ = false;
};

/// Returns the config of a text's model, with its rows.
ModelConfig model_config(std::shared_ptr<const TextModel> model);
/// Returns the model with its weights kept as `type`; one of keys as it is.
ModelConfig model_with_weights(ModelConfig config, NumberFormat type);
/// Returns the text of a config's model, or null if it is one of keys.
const TextModel* text_model(const ModelConfig& config);

/// Returns whether two configs are of the same model: of texts those of equal canonical form and
/// sizes, wherever they were read from.
bool same_model(const ModelConfig& a, const ModelConfig& b);

}  // namespace shardproof
