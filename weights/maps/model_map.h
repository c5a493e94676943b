#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weights/base/error.h"
#include "weights/maps/config_formula.h"
#include "weights/maps/tensor_pattern.h"
#include "weights/text/model_text.h"

namespace shardproof {

/// How another program's model is one of a text (docs/spec-model-map.md): what its config.json
/// gives, where its checkpoint has the weights, and which modules show the text's values.
struct ModelMap {
  /// "E = hidden_size": an extent, number, flag, table, or "layers".
  struct Setting {
    std::string name;
    ConfigFormula formula;
    int line = 0;
  };
  /// "require hidden_act == 'silu'": what a config must say for the text to be its model.
  struct Requirement {
    ConfigFormula formula;
    int line = 0;
  };
  /// "wq < model.layers.{n}.self_attn.q_proj.weight (HQ)E": where a weight's numbers are.
  struct Source {
    std::string weight, tensor;  ///< the tensor with {n} for the layer and {x} for the expert
    TensorPattern pattern;
    std::optional<ConfigFormula> condition;  ///< the line holds for configs of which this is true
    int line = 0;
  };
  /// "ignore transformer.h.{n}.attn.masked_bias": a tensor that is no weight.
  struct Ignored {
    std::string tensor;
    std::optional<ConfigFormula> condition;
    int line = 0;
  };
  /// "norm ~ model.layers.{n}.input_layernorm BLE": which module shows a value.
  struct Module {
    std::string value, module;
    TensorPattern pattern;
    bool input = false;  ///< what it is given, otherwise what it returns
    std::optional<ConfigFormula> condition;
    int line = 0;
  };

  std::string file, model_class, config_class;
  std::vector<std::pair<std::string, ConfigFormula>> example;  ///< entries of a small config.json
  std::vector<Setting> settings;
  std::vector<Requirement> requirements;
  std::vector<Ignored> ignored;
  std::vector<Source> sources;  ///< of one weight the first whose tensor is there
  std::vector<Module> modules;

  /// Returns "FILE line 7: ", as errors begin.
  std::string where(int line) const;
  /// Returns the tensor's or module's name in a layer.
  static std::string name_in(const std::string& pattern, std::int64_t layer, std::int64_t expert);
};

/// Reads a map. Throws Error, each with file, line and value: "model_map_c0" (not a statement, or
/// beyond a limit), "model_map_c3" (no pattern).
ModelMap parse_model_map(std::string_view text, std::string_view file = "");
/// Reads the file of a map. Throws Error: "model_map_f1" (it cannot be read), "model_map_f2" (not
/// text, or beyond 1 MiB), and what parse_model_map throws.
ModelMap load_model_map(const std::string& path);

/// Throws Error("model_map_c1", ...), naming the line and the nearest name, unless all that the map
/// names is the text's: extents, numbers, flags and weights, values and letters.
void require_names(const ModelMap& map, const ModelText& text);

}  // namespace shardproof
