#include "tools/drawing/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "tools/drawing/detail/collective_card.h"
#include "tools/drawing/detail/header_card.h"
#include "tools/drawing/detail/page.h"
#include "tools/drawing/detail/scene.h"
#include "tools/drawing/detail/value_card.h"
#include "tools/drawing/svg.h"
#include "weights/base/error.h"
#include "weights/model/registry.h"

namespace shardproof {
namespace {

/// Returns the part of a layer to which the value of a role belongs; "" if unknown.
std::string_view section(const Role& role, const ModelRows* rows) {
  if (role.kind == Role::Kind::weight) {
    const WeightRow* const weight = weight_row(role.name, rows);
    return weight == nullptr ? "" : to_string(weight->section);
  }
  const ValueRow* const value = value_row(role, rows);
  return value == nullptr ? "" : to_string(value->section);
}

/// Returns whether a step only moves or slices an activation: it then belongs to the section that
/// uses the value, not to the one that names it.
bool only_moves(const Program& program, const Op& op) {
  const Role& role = op.results[0].role;
  return role.kind != Role::Kind::weight && op.args.size() == 1 &&
         program.declared(op.args[0]).role == role;
}
Card titled(std::string_view title, const Card& card) {
  constexpr double kHeight = 14;
  Svg svg;
  svg.text(0, kHeight - 4, title, {8, "start", "#000", true});
  svg.line(0, kHeight - 1.5, kColumn, kHeight - 1.5, "stroke=\"#000\" stroke-width=\"0.8\"");
  svg.append_at(0, kHeight, card.elements);
  return {card.height + kHeight, svg.take()};
}

std::string draw(const Scene& scene) {
  std::vector<Card> cards{header_card(scene)};
  std::string_view part = "";
  const auto add = [&](std::string_view title, Card card) {
    if (!title.empty() && title != part) {
      card = titled(title, card);
      part = title;
    }
    cards.push_back(std::move(card));
  };
  for (const ValueDecl& input : scene.program.inputs)
    add("inputs, in their resident layouts", value_card(scene, input, "input "));
  for (std::size_t i = 0; i < scene.program.ops.size(); ++i) {
    const Op& op = scene.program.ops[i];
    const bool stays = i > 0 && only_moves(scene.program, op);
    add(stays ? "" : section(op.results[0].role, scene.program.rows.get()),
        is_collective(op.kind) ? collective_card(scene, op, i) : local_card(scene, op));
  }
  return page(cards, scene.heading());
}

}  // namespace

int example_chip(const Torus& torus) {
  const int x = std::min(1, torus.size(Axis::x) - 1);
  const int z = torus.size(Axis::z) - 1;
  return x * torus.size(Axis::y) * torus.size(Axis::z) + z;
}

std::string picture(const Program& program, const std::map<std::string, Type>& types,
                    const Torus& torus, const Numerics& numerics, const ModelConfig& config,
                    const PictureOptions& options) {
  if (torus.chips() > kMostChipsInPicture)
    throw Error("picture_c1",
                fmt::format("torus {} has {} chips; a picture shows at most {}, so draw a smaller "
                            "torus: the layouts are the same",
                            torus.to_string(), torus.chips(), kMostChipsInPicture));
  return draw(Scene(program, types, torus, numerics, config, options));
}

}  // namespace shardproof
