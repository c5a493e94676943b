#include "weights/model/presets.h"

#include "weights/base/detail/word_table.h"

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
    {"palm-8b", 32, 4096, 16384, 16, 1, 256, 256128, "4x2x2", "positions=8096", true},
    {"palm-62b", 64, 8192, 32768, 32, 1, 256, 256128, "4x4x2", "positions=8096", true},
    {"palm-540b", 118, 18432, 73728, 48, 1, 256, 256128, "4x4x3", "positions=8096", true},
    {"mt-nlg-530b", 105, 20480, 81920, 128, 128, 160, 51200, "8x4x4",
     "block=serial,ffn=gelu,norm=layernorm,bias=all,rope=none,eps=1e-5,logit_scale=1", true},
    {"gpt-3", 96, 12288, 49152, 96, 96, 128, 50257, "1x1x1",
     "block=serial,ffn=gelu,norm=layernorm,bias=all,rope=none,eps=1e-5,logit_scale=1", true},
    {"lamda-137b", 64, 8192, 65536, 128, 128, 128, 32000, "8x4x4",
     "block=serial,ffn=geglu,rope=none,tied=false,logit_scale=1", true},
    {"llama-7b", 32, 4096, 11008, 32, 32, 128, 32000, "4x4x2",
     "block=serial,tied=false,logit_scale=1", true},
    {"llama-2-70b", 80, 8192, 28672, 64, 8, 128, 32000, "4x4x4",
     "block=serial,tied=false,eps=1e-5,logit_scale=1,positions=4096", true},
    {"phi-2", 32, 2560, 10240, 32, 32, 80, 51200, "4x4x2",
     "ffn=gelu,norm=layernorm,bias=all,rotary=0.4,tied=false,unembed_bias=true,eps=1e-5,"
     "logit_scale=1",
     true},
    {"yi-6b", 32, 4096, 11008, 32, 4, 128, 64000, "4x4x2",
     "block=serial,theta=5e6,tied=false,eps=1e-5,logit_scale=1,positions=4096", true},
    {"yi-34b", 60, 7168, 20480, 56, 8, 128, 64000, "2x2x2",
     "block=serial,theta=5e6,tied=false,eps=1e-5,logit_scale=1,positions=4096", true},
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
