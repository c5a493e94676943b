#include "weights/presets.h"

#include "weights/word_table.h"

namespace shardproof {
namespace {

constexpr Preset kPresets[] = {
    {"palm-tiny", 2, 96, 384, 24, 1, 8, 264, "4x2x3", ""},
    {"palm-mini", 2, 256, 1024, 64, 1, 16, 320, "4x4x4", ""},
    {"palm-wide", 1, 512, 2048, 512, 1, 4, 512, "8x8x8", ""},
    {"llama", 2, 96, 264, 24, 6, 8, 264, "4x2x3", "block=serial,tied=false,eps=1e-5,logit_scale=1"},
    {"gptj", 2, 96, 384, 24, 24, 16, 264, "4x2x3",
     "ffn=gelu,norm=layernorm,bias=ffn,rope=interleaved,rotary=0.25,tied=false,unembed_bias=true,"
     "eps=1e-5,logit_scale=1"},
    {"falcon", 2, 96, 384, 24, 1, 8, 264, "4x2x3",
     "ffn=gelu-erf,norm=layernorm,bias=norm,eps=1e-5,logit_scale=1"},
};

constexpr std::string_view kTwoNorms =
    "its blocks have two layernorms side by side, ln_attn for attention and ln_mlp for the FFN; "
    "both branches of a parallel block read one norm (docs/spec.md section 2.2)";

constexpr OtherModel kOtherModels[] = {
    {"falcon-40b", kTwoNorms, "falcon"},
    {"falcon-180b", kTwoNorms, "falcon"},
};

}  // namespace

std::span<const Preset> all_presets() { return kPresets; }
const Preset* find_preset(std::string_view name) { return row_named(all_presets(), name); }
const OtherModel* find_other_model(std::string_view name) { return row_named(kOtherModels, name); }

}  // namespace shardproof
