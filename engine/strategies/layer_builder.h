#pragma once

#include <string>

#include "engine/strategies/norm_text.h"
#include "engine/strategies/program_text.h"
#include "engine/strategies/programs.h"

namespace shardproof {

/// One layer being written as a program, for any model and strategy. Lines read as the paper's
/// figures do, with the true order of every subscript. attention.cpp writes attention, layer.cpp
/// the rest.
class LayerBuilder {
 public:
  LayerBuilder(const Strategy& strategy, const Axes& kv, const ModelConfig& config, ActType act);

  Program build();

 private:
  void inputs();
  /// The norm of `x`, gathered as the projections want it. `behind` is "" or "2".
  std::string normalise(const std::string& x, std::string_view what, const std::string& behind);
  std::string attention(const std::string& xn);
  std::string query(const std::string& xn);
  std::string key_or_value(const std::string& k, const std::string& xn);
  std::string rotated(const std::string& name, const std::string& value, const std::string& layout,
                      const std::string& pos, std::string_view checkpoint);
  std::string tail(const std::string& q, const std::string& k, const std::string& v);
  std::string attention_output(const std::string& o);
  std::string feed_forward(const std::string& xn);
  /// One contraction onto the residual stream, reduced and stored: `name` is its checkpoint.
  std::string project(const std::string& y, std::string_view name, const std::string& o,
                      const std::string& a);
  std::string add(const std::string& name, const std::string& x, const std::string& y);

  /// The layout of the keys (values) where their biases are added: K's axes there.
  Axes kv_bias_axes() const;
  /// The name of a bias, if the model has it.
  std::vector<std::string> bias(const std::string& name) const;

  /// wg-xyz: gathers a resident weight whole, right before its einsum: E over x, then `letter`.
  /// `form` is its layout with {0} for the axes of E and {1} for those of the other dim.
  std::string gathered(const std::string& w, fmt::string_view form, char letter, const Axes& axes);

  FfnLayout ffn_;
  bool batch_;
  Axes kv_;
  const ModelConfig& config_;
  ProgramText p_;
  std::string residual_, cache_;
};

}  // namespace shardproof
