// The table of case keys for models that are texts: a row for each key, and each refusal.
#include "engine/run/text_keys.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

#include "engine/run/plan.h"
#include "weights/text/model_file.h"
#include "weights/text/text_model.h"

namespace shardproof {
namespace {

const ModelText& handed() {
  static const ModelText text =
      load_model_text(SHARDPROOF_SOURCE "/tests/data/models/llama-3.model");
  return text;
}

Case case_of(const ModelText& text, const std::string& line) {
  Case c = parse_case("gen=2 torus=1x2x1 prefill=ws1d:heads batch=2 " + line);
  c.model = model_config(std::make_shared<const TextModel>(text, TextKeys{}, "m.model"));
  return c;
}

std::string refusal(const std::string& line, const ModelText& text = handed()) {
  try {
    make_plan(case_of(text, line));
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

TEST(TextCaseKeys, AreAllKeysOfALineInOrder) {
  std::vector<std::string> keys;
  for (const TextCaseKey& row : text_case_keys()) keys.emplace_back(row.key);
  ASSERT_GE(keys.size(), case_keys().size());
  EXPECT_TRUE(std::equal(case_keys().begin(), case_keys().end(), keys.begin()));
  for (const TextCaseKey& row : text_case_keys())
    if (!row.holds) {
      EXPECT_NE(row.why, "") << row.key;
    }
}

TEST(TextCaseKeys, HoldAsTheTableSays) {
  const std::map<std::string, std::string> lines{{"torus", "torus=1x1x2"},
                                                 {"decode_torus", "decode_torus=2x1x1"},
                                                 {"model", ""},
                                                 {"prefill", "prefill=ws2d:batch"},
                                                 {"decode", "decode=dp"},
                                                 {"numerics", "numerics=released"},
                                                 {"weights", "weights=bf16"},
                                                 {"act", "act=bf16"},
                                                 {"regime", "regime=field"},
                                                 {"schedule", "regime=f32 schedule=ring"},
                                                 {"loop", "loop=one-way"},
                                                 {"acc", "regime=f32 acc=bf16"},
                                                 {"wire", "wire=bf16"},
                                                 {"batch", "batch=4"},
                                                 {"prompt", "prompt=6"},
                                                 {"lengths", "lengths=4,2"},
                                                 {"chunk", "chunk=2"},
                                                 {"gen", "gen=4"},
                                                 {"seed", "seed=5"},
                                                 {"sample", "sample=random"},
                                                 {"temperature", "temperature=0.5"},
                                                 {"top_k", "top_k=4"},
                                                 {"top_p", "top_p=0.5"},
                                                 {"prefix", "prefix=1:2"},
                                                 {"pad_heads", "pad_heads=48"},
                                                 {"pad_vocab", "pad_vocab=288"}};
  for (const TextCaseKey& row : text_case_keys()) {
    const auto line = lines.find(std::string(row.key));
    if (line == lines.end()) {  // refused where the line is read
      EXPECT_FALSE(row.holds) << row.key;
      continue;
    }
    std::string words = "gen=2 torus=1x2x1 prefill=ws1d:heads batch=2";
    const std::string key = line->second.substr(0, line->second.find('='));
    if (const auto at = words.find(key + "="); !key.empty() && at != words.npos)
      words.erase(at, words.find(' ', at) - at);
    Case c = parse_case(words + " " + line->second);
    c.model = model_config(std::make_shared<const TextModel>(handed(), TextKeys{}, "m.model"));
    std::string why = "none";
    try {
      make_plan(c);
    } catch (const Error& error) {
      why = error.what();
    }
    if (row.holds) {
      EXPECT_EQ(why, "none") << row.key;
    } else {
      EXPECT_TRUE(why.starts_with("case_model: model=m.model: " + std::string(row.key))) << why;
    }
  }
}

TEST(TextCaseKeys, RefuseLengthsWhereALineReducesRowsOrPositions) {
  const auto with = [](const std::string& line) {
    std::string text = print_model_text(handed());
    const std::string old_line = "mid : BLE = store(add(in, attn_out))";
    text.replace(text.find(old_line), old_line.size(), line);
    return refusal("prompt=4 lengths=4,2", parse_model_text(text, "m.model"));
  };
  EXPECT_EQ(with("mid : BLE = store(add(in, attn_out))"), "none");
  EXPECT_EQ(
      with("mid : BLE = store(add(in, sum(attn_out, L)))"),
      "case_model: model=m.model: lengths are not for a text whose line mid_1 reduces L, along "
      "which rows that are shorter have padding; legal: rows of one length");
  EXPECT_NE(with("mid : BLE = store(add(in, max(attn_out, B)))").find("mid_1 reduces B"),
            std::string::npos);
}

TEST(TextCaseKeys, RefusePrefixesWhereALineReducesRowsOrPositions) {
  const auto with = [](const std::string& line) {
    std::string text = print_model_text(handed());
    const std::string old_line = "mid : BLE = store(add(in, attn_out))";
    text.replace(text.find(old_line), old_line.size(), line);
    return refusal("prompt=4 prefix=2:1", parse_model_text(text, "m.model"));
  };
  EXPECT_EQ(with("mid : BLE = store(add(in, attn_out))"), "none");
  EXPECT_EQ(with("mid : BLE = store(add(in, max(attn_out, B)))"),
            "case_model: model=m.model: prefix is not for a text whose line mid_1 reduces B, which "
            "passes over prefixes have fewer of; legal: no prefix");
  EXPECT_NE(with("mid : BLE = store(add(in, sum(attn_out, L)))").find("mid_1 reduces L"),
            std::string::npos);
}

/// Whether a number of the field is within a range has no meaning; of positions it is exact.
TEST(TextCaseKeys, RefuseTheFieldWhereARangeIsNotOfPositions) {
  const auto with = [](const std::string& marks) {
    std::string text = print_model_text(handed());
    const std::string old_line = "mid : BLE = store(add(in, attn_out))";
    text.replace(text.find(old_line), old_line.size(),
                 "marks : " + marks + "\nmid : BLE = store(add(in, attn_out))");
    return refusal("regime=field", parse_model_text(text, "m.model"));
  };
  EXPECT_EQ(with("BL = within(sub(pos, 2), 0, inf)"), "none");
  for (const char* marks : {"BLE = within(in, 0, inf)", "BL = within(mul(pos, 0.5), 0, 1)",
                            "BLE = mul(in, within(attn_out, -1, 1))"})
    EXPECT_EQ(
        with(marks),
        "case_model: model=m.model: regime=field is not for a text with top, or with within "
        "of other numbers than positions: numbers of a field have no order; legal: exact, f32")
        << marks;
}

TEST(TextCaseKeys, RefusePaddingThatALineNeedsWhole) {
  const auto with = [](const std::string& key, const std::string& line) {
    std::string text = print_model_text(handed());
    const std::string old_line = "mid : BLE = store(add(in, attn_out))";
    text.replace(text.find(old_line), old_line.size(), line);
    return refusal(key, parse_model_text(text, "m.model"));
  };
  const std::string heads = "pad_heads=48", words = "pad_vocab=288";
  EXPECT_EQ(
      with(heads, "mid : BLE = store(add(in, sum(attn, HQ)))"),
      "case_model: model=m.model: pad_heads is not for a text whose line mid_1 needs all of H "
      "as it is; legal: leave it out");
  EXPECT_NE(with(heads, "mid : BLE = store(add(in, max(k, KQ)))").find("mid_1 needs all of K"),
            std::string::npos);
  EXPECT_NE(with(heads, "mid : BLE = store(add(in, einsum(BLHQ,BLHQ->BL; attn, attn)))")
                .find("mid_1 needs all of H"),
            std::string::npos);
  EXPECT_EQ(with(heads, "mid : BLE = store(add(in, attn_out))"), "none");
  EXPECT_EQ(with(words, "mid : BLE = store(add(in, attn_out))"), "none");
  std::string text = print_model_text(handed());
  const auto logits = text.rfind("\nlogits : BLV = ");
  ASSERT_NE(logits, text.npos);
  text.replace(logits, 16, "\nwords : BLV = ");
  text += "logits : BLV = sub(words, max(words, V))\n";
  EXPECT_NE(refusal(words, parse_model_text(text, "m.model")).find("logits_1 needs all of V"),
            std::string::npos);
  EXPECT_EQ(refusal(heads, parse_model_text(text, "m.model")), "none");
}

/// A text says of itself what these keys say of a model of keys.
TEST(TextCaseKeys, OfAModelOfKeysAreRefusedWhereTheyAreRead) {
  const std::string file = SHARDPROOF_SOURCE "/tests/data/models/llama-3.model";
  const auto refused = [](const std::string& line) {
    try {
      parse_case(line);
    } catch (const Error& error) {
      return error.label();
    }
    return std::string("none");
  };
  EXPECT_EQ(refused("model=" + file + " block=serial"), "case_model");
  for (const char* key : {"block=serial", "ffn=gelu", "norm=layernorm", "rope=none"})
    EXPECT_EQ(refused("model=" + file + "," + key), "model_c1") << key;
}

/// The page has the table.
TEST(TextCaseKeys, AreThoseOfThePage) {
  std::ifstream file(SHARDPROOF_SOURCE "/docs/spec-case.md");
  std::stringstream page;
  page << file.rdbuf();
  for (const TextCaseKey& row : text_case_keys())
    EXPECT_NE(page.str().find("| `" + std::string(row.key) + "` | " +
                              (row.holds ? "holds" : "refused") + " | " + std::string(row.why)),
              std::string::npos)
        << row.key << " | " << row.why;
}

}  // namespace
}  // namespace shardproof
