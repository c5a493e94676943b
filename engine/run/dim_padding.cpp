#include "engine/run/dim_padding.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "weights/text/heads.h"

namespace shardproof {
namespace {

void require_at_least(std::string_view key, std::int64_t given, char dim, std::int64_t own) {
  if (given != 0 && given < own)
    throw Error("case_pad", fmt::format("{0}={1} is below the model's {2}={3}; the nearest legal: "
                                        "{0}={3}",
                                        key, given, dim, own));
}

}  // namespace

ModelConfig placed_model(const Case& c) {
  ModelConfig placed = c.model;
  if (c.pad_vocab != 0) placed.V = c.pad_vocab;
  if (c.pad_heads != 0) {
    placed.H = c.pad_heads;
    placed.K = kv_heads(c.model, placed.H);
  }
  const TextModel* const of_text = text_model(c.model);
  if (of_text == nullptr || (c.pad_vocab == 0 && c.pad_heads == 0)) return placed;
  TextSizes sizes = of_text->sizes();
  const auto place = [&](char letter, std::int64_t extent) {
    if (const auto at = sizes.extents.find(letter); at != sizes.extents.end()) at->second = extent;
  };
  place('V', placed.V);
  place('H', placed.H);
  place('K', placed.K);
  if (const char group = group_letter(*of_text); group != 0) place(group, placed.H / placed.K);
  placed.rows = std::make_shared<const TextModel>(of_text->text(), std::move(sizes),
                                                  of_text->line(), c.numerics.weights);
  return placed;
}

std::string padding_text(const Case& c) {
  std::string text;
  if (c.pad_heads != 0) text = fmt::format("pad_heads={}", c.pad_heads);
  if (c.pad_vocab != 0) text += fmt::format("{}pad_vocab={}", text.empty() ? "" : " ", c.pad_vocab);
  return text;
}

void require_padding(const Case& c) {
  require_at_least("pad_heads", c.pad_heads, 'H', c.model.H);
  require_at_least("pad_vocab", c.pad_vocab, 'V', c.model.V);
  const std::int64_t group = heads_per_group(c.model);
  if (const std::int64_t behind = c.pad_heads % group; behind != 0) {
    const std::int64_t below = c.pad_heads - behind;
    const bool up = behind > group - behind;
    throw Error(
        "case_pad",
        fmt::format("pad_heads={} is not a multiple of the {} query heads of a group (H={}, "
                    "K={}); the nearest legal: pad_heads={}",
                    c.pad_heads, group, c.model.H, c.model.K, up ? below + group : below));
  }
  if (c.pad_heads == 0 && c.pad_vocab == 0) return;
  try {
    validate(placed_model(c));
  } catch (const Error& error) {
    Case unpadded = c;
    if (c.pad_heads != 0) unpadded.pad_heads = c.model.H;
    if (c.pad_vocab != 0) unpadded.pad_vocab = c.model.V;
    throw Error("case_pad", fmt::format("{}: no such model can be placed: {}; legal: {}",
                                        padding_text(c), error.message(), padding_text(unpadded)));
  }
}

}  // namespace shardproof
