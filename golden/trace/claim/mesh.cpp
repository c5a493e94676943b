#include "golden/trace/claim/mesh.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

namespace shardproof::dump {
namespace {

constexpr Axis kAxes[] = {Axis::x, Axis::y, Axis::z};

}  // namespace

Mesh Mesh::parse(std::string_view text, const Torus& torus) {
  const auto refuse = [&](std::string_view why) {
    throw Error("dump_mesh", fmt::format("mesh={:?}: {}", text, why));
  };
  Mesh mesh;
  std::istringstream words{std::string(text)};
  for (std::string word; words >> word;) {
    const auto equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const std::string axis = equals == std::string::npos ? word : word.substr(equals + 1);
    if (axis != "x" && axis != "y" && axis != "z")
      refuse(fmt::format("'{}' names no axis; legal: x, y, z, or NAME=x", word));
    const Axis a = kAxes[axis[0] - 'x'];
    if (std::find(mesh.order_.begin(), mesh.order_.end(), a) != mesh.order_.end())
      refuse(fmt::format("axis {} is named twice", axis));
    if (std::find(mesh.names_.begin(), mesh.names_.end(), name) != mesh.names_.end())
      refuse(fmt::format("'{}' is named twice", name));
    mesh.order_.push_back(a);
    mesh.names_.push_back(name);
  }
  for (const Axis a : kAxes)
    if (torus.size(a) > 1 &&
        std::find(mesh.order_.begin(), mesh.order_.end(), a) == mesh.order_.end())
      refuse(fmt::format("axis {} of torus {} is not named", to_char(a), torus.to_string()));
  return mesh;
}

Shape Mesh::shape(const Torus& torus) const {
  Shape extents;
  for (const Axis a : order_) extents.push_back(torus.size(a));
  return extents;
}

int Mesh::chip(const Torus& torus, std::int64_t place) const {
  int at[3] = {0, 0, 0};
  for (std::size_t i = order_.size(); i-- > 0;) {
    const int size = torus.size(order_[i]);
    at[static_cast<int>(order_[i])] = static_cast<int>(place % size);
    place /= size;
  }
  return (at[0] * torus.size(Axis::y) + at[1]) * torus.size(Axis::z) + at[2];
}

int Mesh::rank(const Torus& torus, int chip) const {
  if (order_.empty()) return chip;
  const int at[3] = {chip / torus.size(Axis::z) / torus.size(Axis::y),
                     chip / torus.size(Axis::z) % torus.size(Axis::y), chip % torus.size(Axis::z)};
  int rank = 0;
  for (const Axis a : order_) rank = rank * torus.size(a) + at[static_cast<int>(a)];
  return rank;
}

Layout Mesh::layout(std::string_view letters, std::string_view spec,
                    std::string_view partial) const {
  const auto refuse = [&](std::string_view why) {
    throw Error("dump_layout",
                fmt::format("spec={:?}{}: {}", spec,
                            partial.empty() ? "" : fmt::format(" partial={:?}", partial), why));
  };
  using nlohmann::json;
  const auto axis_of = [&](const json& name) {
    if (!name.is_string()) refuse("not a list of names");
    const auto at = std::find(names_.begin(), names_.end(), name.get<std::string>());
    if (at == names_.end())
      refuse(fmt::format("the mesh has no axis {:?}", name.get<std::string>()));
    return to_char(order_[static_cast<std::size_t>(at - names_.begin())]);
  };
  const auto subscript = [&](const json& names) {
    std::string text;
    if (names.is_null()) return text;
    if (names.is_array())
      for (const json& name : names) text += axis_of(name);
    else
      text += axis_of(names);
    return text;
  };
  const json list = json::parse(spec, nullptr, false);
  const json partial_axes = partial.empty() ? json::array() : json::parse(partial, nullptr, false);
  if (!list.is_array() || !partial_axes.is_array()) refuse("not a JSON list");
  if (list.size() > letters.size()) refuse(fmt::format("{} dims, of {}", list.size(), letters));
  std::vector<Layout::Dim> dims;
  for (std::size_t i = 0; i < letters.size(); ++i)
    dims.push_back({letters[i], Axes::parse(i < list.size() ? subscript(list[i]) : std::string())});
  return Layout(std::move(dims), Axes::parse(subscript(partial_axes)).sorted());
}

}  // namespace shardproof::dump
