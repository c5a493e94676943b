// The rows of the registry: one for each named value, one for each named weight.
#include "weights/registry.h"

namespace shardproof {
namespace {

// Which models have a value or a weight.
bool always(const ModelConfig&) { return true; }
bool serial(const ModelConfig& c) { return c.block == Block::serial; }
bool parallel(const ModelConfig& c) { return c.block == Block::parallel; }
bool gated(const ModelConfig& c) { return c.ffn == Ffn::swiglu || c.ffn == Ffn::geglu; }
bool rotates(const ModelConfig& c) { return c.rope != Rope::none; }
bool untied(const ModelConfig& c) { return !c.tied; }
// RMS norms have no bias, whatever `bias` says (docs/spec.md section 2).
bool norm_biased(const ModelConfig& c) {
  return c.norm == Norm::layernorm && (c.bias == Bias::norm || c.bias == Bias::all);
}
bool norm2_biased(const ModelConfig& c) { return norm_biased(c) && serial(c); }
bool qkv_biased(const ModelConfig& c) { return c.bias == Bias::qkv || c.bias == Bias::all; }
bool all_biased(const ModelConfig& c) { return c.bias == Bias::all; }
bool up_biased(const ModelConfig& c) { return all_biased(c) && gated(c); }

constexpr ValueRow stat(std::string_view name, std::string_view dims, bool per_layer,
                        Section section) {
  return {.name = name,
          .dims = dims,
          .kind = ValueKind::stat,
          .per_layer = per_layer,
          .section = section,
          .in_model = always};
}

constexpr ValueRow kValues[] = {
    {.name = "embed",
     .dims = "BLE",
     .per_layer = false,
     .stored = true,
     .contraction = true,
     .in_model = always},
    {.name = "norm", .dims = "BLE", .stored = true, .section = Section::norm, .in_model = always},
    {.name = "norm2", .dims = "BLE", .stored = true, .section = Section::norm, .in_model = serial},
    {.name = "final_norm",
     .dims = "BLE",
     .per_layer = false,
     .stored = true,
     .last_rows = true,
     .section = Section::norm,
     .in_model = always},
    {.name = "q",
     .dims = "BLHQ",
     .stored = true,
     .contraction = true,
     .section = Section::attention,
     .in_model = always},
    {.name = "k",
     .dims = "BLKQ",
     .stored = true,
     .contraction = true,
     .section = Section::attention,
     .in_model = always},
    {.name = "v",
     .dims = "BLKQ",
     .stored = true,
     .contraction = true,
     .section = Section::attention,
     .in_model = always},
    {.name = "q_rot",
     .dims = "BLHQ",
     .stored = true,
     .section = Section::attention,
     .in_model = rotates},
    {.name = "k_rot",
     .dims = "BLKQ",
     .stored = true,
     .section = Section::attention,
     .in_model = rotates},
    {.name = "k_cache",
     .dims = "BMKQ",
     .stored = true,
     .cache = true,
     .program_input = true,
     .section = Section::attention,
     .in_model = always},
    {.name = "v_cache",
     .dims = "BMKQ",
     .stored = true,
     .cache = true,
     .program_input = true,
     .section = Section::attention,
     .in_model = always},
    {.name = "score",
     .dims = "BLHM",
     .contraction = true,
     .section = Section::attention,
     .in_model = always},
    {.name = "max", .dims = "BLH", .section = Section::attention, .in_model = always},
    {.name = "exp", .dims = "BLHM", .section = Section::attention, .in_model = always},
    {.name = "denom",
     .dims = "BLH",
     .contraction = true,
     .section = Section::attention,
     .in_model = always},
    {.name = "attn",
     .dims = "BLHQ",
     .stored = true,
     .contraction = true,
     .section = Section::attention,
     .in_model = always},
    {.name = "gate",
     .dims = "BLF",
     .stored = true,
     .contraction = true,
     .section = Section::ffn,
     .in_model = always},
    {.name = "up",
     .dims = "BLF",
     .stored = true,
     .contraction = true,
     .section = Section::ffn,
     .in_model = gated},
    {.name = "hidden", .dims = "BLF", .stored = true, .section = Section::ffn, .in_model = always},
    {.name = "block_out",
     .dims = "BLE",
     .stored = true,
     .contraction = true,
     .section = Section::output,
     .in_model = parallel},
    {.name = "attn_out",
     .dims = "BLE",
     .stored = true,
     .contraction = true,
     .section = Section::output,
     .in_model = serial},
    {.name = "mid", .dims = "BLE", .stored = true, .section = Section::output, .in_model = serial},
    {.name = "ffn_out",
     .dims = "BLE",
     .stored = true,
     .contraction = true,
     .section = Section::output,
     .in_model = serial},
    {.name = "out",
     .dims = "BLE",
     .stored = true,
     .program_input = true,
     .section = Section::output,
     .in_model = always},
    {.name = "logits",
     .dims = "BV",
     .per_layer = false,
     .contraction = true,
     .program_input = true,
     .in_model = always},
    {.name = "token", .dims = "B", .per_layer = false, .integer = true, .in_model = always},

    {.name = "in",
     .dims = "BLE",
     .kind = ValueKind::layer_input,
     .stored = true,
     .program_input = true,
     .section = Section::norm,
     .in_model = always},

    // Of each norm sum = S(x,1), mu = (float)(sum/E) and d = x - mu (layernorm), and ss = S(x,x) or
    // S(d,d).
    stat("sum", "BL", true, Section::norm),
    stat("sum2", "BL", true, Section::norm),
    stat("final_sum", "BL", false, Section::norm),
    stat("mu", "BL", true, Section::norm),
    stat("mu2", "BL", true, Section::norm),
    stat("final_mu", "BL", false, Section::norm),
    stat("d", "BLE", true, Section::norm),
    stat("d2", "BLE", true, Section::norm),
    stat("final_d", "BLE", false, Section::norm),
    stat("ss", "BL", true, Section::norm),
    stat("ss2", "BL", true, Section::norm),
    stat("final_ss", "BL", false, Section::norm),
    // Of sampling: the best logit of each block of the vocabulary, and its id.
    stat("candidates", "BC", false, Section::none),
    {.name = "indices",
     .dims = "BC",
     .kind = ValueKind::stat,
     .per_layer = false,
     .integer = true,
     .in_model = always},

    {.name = "ids",
     .dims = "BL",
     .kind = ValueKind::input,
     .per_layer = false,
     .program_input = true,
     .integer = true,
     .in_model = always},
    {.name = "pos",
     .dims = "BL",
     .kind = ValueKind::input,
     .per_layer = false,
     .program_input = true,
     .integer = true,
     .in_model = always},
    {.name = "ones",
     .dims = "E",
     .kind = ValueKind::constant,
     .per_layer = false,
     .program_input = true,
     .in_model = always},
};

constexpr bool kOfModel = false, kOfLayer = true;

// Name, dims, kind, whose it is, contracted dims, section, which models have it. The table is not
// scaled by its extent: embedding selects rows, and logit_scale scales logits.
constexpr WeightRow kWeights[] = {
    {"embed", "VE", WeightKind::matrix, kOfModel, 0, Section::none, always},
    {"unembed", "VE", WeightKind::matrix, kOfModel, 0, Section::none, untied},

    {"norm", "E", WeightKind::gain, kOfLayer, 0, Section::norm, always},
    {"norm2", "E", WeightKind::gain, kOfLayer, 0, Section::norm, serial},
    {"wq", "EHQ", WeightKind::matrix, kOfLayer, 1, Section::attention, always},
    {"wk", "EKQ", WeightKind::matrix, kOfLayer, 1, Section::attention, always},
    {"wv", "EKQ", WeightKind::matrix, kOfLayer, 1, Section::attention, always},
    {"wo", "HQE", WeightKind::matrix, kOfLayer, 2, Section::output, always},
    {"w_gate", "EF", WeightKind::matrix, kOfLayer, 1, Section::ffn, always},
    {"w_up", "EF", WeightKind::matrix, kOfLayer, 1, Section::ffn, gated},
    {"w_out", "FE", WeightKind::matrix, kOfLayer, 1, Section::output, always},
    {"norm_bias", "E", WeightKind::bias, kOfLayer, 0, Section::norm, norm_biased},
    {"norm2_bias", "E", WeightKind::bias, kOfLayer, 0, Section::norm, norm2_biased},
    {"bq", "HQ", WeightKind::bias, kOfLayer, 0, Section::attention, qkv_biased},
    {"bk", "KQ", WeightKind::bias, kOfLayer, 0, Section::attention, qkv_biased},
    {"bv", "KQ", WeightKind::bias, kOfLayer, 0, Section::attention, qkv_biased},
    {"bo", "E", WeightKind::bias, kOfLayer, 0, Section::output, all_biased},
    {"b_gate", "F", WeightKind::bias, kOfLayer, 0, Section::ffn, all_biased},
    {"b_up", "F", WeightKind::bias, kOfLayer, 0, Section::ffn, up_biased},
    {"b_out", "E", WeightKind::bias, kOfLayer, 0, Section::output, all_biased},

    {"final_norm", "E", WeightKind::gain, kOfModel, 0, Section::norm, always},
    {"final_norm_bias", "E", WeightKind::bias, kOfModel, 0, Section::norm, norm_biased},
    {"rope_cos", "PJ", WeightKind::rope_table, kOfModel, 0, Section::none, rotates},
    {"rope_sin", "PJ", WeightKind::rope_table, kOfModel, 0, Section::none, rotates},
};

}  // namespace

std::span<const ValueRow> all_values() { return kValues; }
std::span<const WeightRow> all_weights() { return kWeights; }

}  // namespace shardproof
