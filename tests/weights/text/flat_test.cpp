// The flat form of texts: a few lines by eye, and what holds for all.
#include "weights/text/flat.h"

#include <gtest/gtest.h>

#include "tests/weights/text/plain_model.h"
#include "weights/base/detail/words.h"
#include "weights/maps/load_model.h"
#include "weights/text/model_file.h"
#include "weights/text/rules.h"
#include "weights/text/sizes.h"
#include "weights/text/text_model.h"
#include "weights/text/writer.h"

namespace shardproof {
namespace {

/// The flat lines of the layer, as texts print them, that begin with `name`.
std::string flat_lines(const std::string& text, std::string_view name) {
  const std::string flat = print_model_text(flat_text(parse_model_text(text)));
  std::string lines;
  for (const std::string_view line : split(flat, "\n"))
    if (line.starts_with(name)) lines += std::string(line) + "\n";
  return lines;
}

TEST(FlatText, GivesALineToWhatIsNotPointwise) {
  const std::string plain(kPlainModel);
  EXPECT_EQ(flat_lines(plain, "norm"),
            "norm_1 : BLE = mul(in, in)\n"
            "norm_2 : BL = sum(norm_1, E)\n"
            "norm : BLE = store(mul(div(in, sqrt(add(div(norm_2, E), eps))), g))\n");
  EXPECT_EQ(flat_lines(plain, "q"),
            "q_1 : BLHQ = einsum(BLE,EHQ->BLHQ; norm, wq)\n"
            "q : BLHQ = store(q_1)\n");
  EXPECT_EQ(flat_lines(plain, "embed"),
            "embedding\n"
            "embed_1 : BLE = gather(table, ids, V)\n"
            "embed_2 : BLE = gather(places, pos, P)\n"
            "embed : BLE = store(add(embed_1, embed_2))\n");
}

TEST(FlatText, KeepsGuardsAndIndicatorsOfLines) {
  EXPECT_EQ(flat_lines(std::string(kPlainModel), "dot"),
            "dot_1 : BLKGQ = split_dim(q, H->KG) if local\n"
            "dot : BLKGM where see_near = einsum(BLKGQ,BMKQ->BLKGM; dot_1, k_cache) if local\n"
            "dot_2 : BLKGQ = split_dim(q, H->KG) unless local\n"
            "dot : BLKGM where see = einsum(BLKGQ,BMKQ->BLKGM; dot_2, k_cache) unless local\n");
}

TEST(FlatText, DividesASumByTheExtentsOnlyWhereAllExists) {
  EXPECT_EQ(flat_lines(with_line("more : BLE = mul(in, extra) if local",
                                 "pooled : BLKG = mul(mean(exp, M), 2)\n"
                                 "wide : BL = mean(attn, HQ)\n"
                                 "more : BLE = mul(in, extra) if local"),
                       "pooled"),
            "pooled_1 : BLKG = mean(exp, M)\n"
            "pooled : BLKG = mul(pooled_1, 2)\n");
  EXPECT_EQ(flat_lines(with_line("more : BLE = mul(in, extra) if local",
                                 "bare : BLKG = mean(exp, M)\n"
                                 "more : BLE = mul(in, extra) if local"),
                       "bare"),
            "bare : BLKG = mean(exp, M)\n");
  EXPECT_EQ(flat_lines(with_line("more : BLE = mul(in, extra) if local",
                                 "chosen_mean : BLA = mul(mean(expert, X), 2)\n"
                                 "more : BLE = mul(in, extra) if local"),
                       "chosen_mean"),
            "chosen_mean_1 : BLA = mean(expert, X)\n"
            "chosen_mean : BLA = mul(chosen_mean_1, 2)\n");
  EXPECT_EQ(flat_lines(with_line("more : BLE = mul(in, extra) if local",
                                 "wide : BL = mean(attn, HQ)\n"
                                 "more : BLE = mul(in, extra) if local"),
                       "wide"),
            "wide_1 : BL = sum(attn, HQ)\n"
            "wide : BL = div(wide_1, mul(H, Q))\n");
}

TEST(FlatText, NamesNothingTwice) {
  EXPECT_EQ(flat_lines(with_line("norm : BLE = store(mul(div(in, sqrt(add(mean(mul(in, in), E), "
                                 "eps))), g))",
                                 "norm_1 : BLE = in\n"
                                 "norm : BLE = mul(in, mean(mul(in, in), E))"),
                       "norm"),
            "norm_1 : BLE = in\n"
            "norm_2 : BLE = mul(in, in)\n"
            "norm_3 : BL = sum(norm_2, E)\n"
            "norm : BLE = mul(in, div(norm_3, E))\n");
}

/// One op of names in each line, or pointwise ones; the flat form of a flat text is the text.
void require_flat(const ModelText& text) {
  const ModelText flat = flat_text(text);
  EXPECT_NO_THROW(check_model_text(flat)) << text.name;
  EXPECT_EQ(print_model_text(flat_text(flat)), print_model_text(flat)) << text.name;
  for (const TextSection section : kTextSections)
    for (const TextLine& line : flat.section(section).lines) {
      const Expression& e = line.expression;
      if (e.kind != Expression::Kind::call) continue;
      for (const Expression& arg : e.args)
        EXPECT_TRUE(is_pointwise(e.op) || arg.kind != Expression::Kind::call) << print(e);
    }
}

TEST(FlatText, IsATextWithOneOpALine) {
  require_flat(parse_model_text(kPlainModel));
  for (const char* name : {"llama-3", "gpt-2", "gemma-2", "cohere", "qwen3"})
    require_flat(
        load_model_text(std::string(SHARDPROOF_SOURCE "/tests/data/models/") + name + ".model"));
  for (const char* keys : {"palm-tiny", "llama", "gptj", "falcon", "palm-tiny,softmax=base2",
                           "palm-tiny,rope=alibi,bias=all,block=serial,norm=layernorm"})
    require_flat(parse_model_text(text_of_model(parse_model(keys))));
}

// ---- a text as a model with rows ----

TEST(TextModels, HaveARowForEachLineAndWeight) {
  const ModelConfig config = model_config(std::make_shared<const TextModel>(
      parse_model_text(kPlainModel), TextKeys{{"layers", "3"}, {"E", "16"}, {"local", "101"}},
      "m"));
  const ModelRows* const rows = config.rows.get();
  EXPECT_EQ(config.layers, 3);
  EXPECT_EQ(config.E, 16);
  EXPECT_EQ(print_model(config), "m");
  ASSERT_NE(value_row("q", rows), nullptr);
  EXPECT_TRUE(value_row("q", rows)->stored && value_row("q", rows)->per_layer);
  EXPECT_TRUE(value_row("q_1", rows)->contraction && value_row("q_1", rows)->acc);
  EXPECT_FALSE(value_row("q_1", rows)->stored);
  EXPECT_FALSE(value_row("dot", rows)->acc);
  EXPECT_TRUE(value_row("k_cache", rows)->cache);
  EXPECT_FALSE(value_row("see", rows)->per_layer);
  EXPECT_EQ(value_row("gate", rows), nullptr);
  EXPECT_NE(value_row("token", rows), nullptr);
  EXPECT_EQ(shape_of("BLKGM", config, {.B = 5, .L = 7, .M = 11}), (Shape{5, 7, 2, 2, 11}));
  EXPECT_EQ(weight_row("wq", rows)->kind, WeightKind::matrix);
  EXPECT_EQ(weight_row("g", rows)->kind, WeightKind::gain);
  EXPECT_EQ(weight_id(2, "wq", rows), "layer2.wq");
  EXPECT_EQ(weight_id(2, "table", rows), "table");
  EXPECT_EQ(checkpoint_id("decode.1", 2, "see", rows), "decode.1.see");
  std::set<std::string> ids;
  for (const WeightSpec& spec : weight_specs(config)) ids.insert(spec.name);
  EXPECT_TRUE(ids.contains("layer0.extra") && ids.contains("layer2.extra"));
  EXPECT_FALSE(ids.contains("layer1.extra"));
}

TEST(TextModels, AreTheSameByWhatTheySay) {
  const std::string file = SHARDPROOF_SOURCE "/tests/data/models/gemma-2.model";
  const ModelConfig plain = read_model(file);
  EXPECT_TRUE(same_model(plain, read_model(file)));
  EXPECT_TRUE(same_model(plain, read_model(file + ",E=96")));
  EXPECT_FALSE(same_model(plain, read_model(file + ",E=48")));
  EXPECT_FALSE(same_model(plain, read_model(file + ",local=01")));
  ModelText other = text_model(plain)->text();
  other.sections[1].lines.back().expression = other.sections[1].lines[0].expression;
  EXPECT_FALSE(same_model(plain, model_config(std::make_shared<const TextModel>(
                                     other, TextKeys{}, print_model(plain)))));
  EXPECT_FALSE(same_model(plain, parse_model("palm-tiny")));
  EXPECT_TRUE(same_model(parse_model("palm-tiny"), parse_model("palm-tiny")));
}

TEST(TextModels, AreReadFromALineOfKeys) {
  const std::string file = SHARDPROOF_SOURCE "/tests/data/models/gemma-2.model";
  const ModelConfig config = read_model(file + ",layers=3,local=011,E=48");
  EXPECT_EQ(text_model(config)->sizes().flags.at("local"), (std::vector<bool>{false, true, true}));
  EXPECT_EQ(print_model(config), file + ",layers=3,local=011,E=48");
  EXPECT_EQ(text_model(read_model("palm-tiny")), nullptr);
  const auto label = [](const std::string& line) {
    try {
      read_model(line);
    } catch (const Error& error) {
      return error.label();
    }
    return std::string("none");
  };
  EXPECT_EQ(label(file + ",E"), "model_key");
  EXPECT_EQ(label(file + ",E=48,E=48"), "model_key");
  EXPECT_EQ(label(file + ",Z=4"), "model_c1");
  EXPECT_EQ(label(file + ",E=0"), "model_c14");
  EXPECT_EQ(label("none.model"), "model_f1");
  EXPECT_EQ(label("none"), "model_preset");
}

}  // namespace
}  // namespace shardproof
