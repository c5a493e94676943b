#include <nlohmann/json.hpp>

#include "engine/layout/layout.h"
#include "engine/layout/torus.h"
#include "tools/binding/boundary.h"
#include "tools/binding/shardproof.h"

using namespace shardproof;
using namespace shardproof::binding;

char* shardproof_layout(const char* text) noexcept {
  return answer([&] {
    const Layout layout = Layout::parse(text);
    nlohmann::json dims = nlohmann::json::array();
    for (const Layout::Dim& dim : layout.dims())
      dims.push_back({{"letter", std::string(1, dim.letter)}, {"axes", dim.axes.to_string()}});
    return nlohmann::json{{"text", layout.to_string()},
                          {"dims", dims},
                          {"partial", layout.partial().to_string()},
                          {"by_max", layout.is_partial_max()}};
  });
}

char* shardproof_blocks(const char* layout_text, const char* torus_text,
                        const char* shape_text) noexcept {
  return answer([&] {
    const Layout layout = Layout::parse(layout_text);
    const Torus torus = Torus::parse(torus_text);
    const Shape shape = nlohmann::json::parse(shape_text).get<Shape>();
    if (shape.size() != layout.rank())
      throw Error("layout_rank", layout.to_string() + " has " + std::to_string(layout.rank()) +
                                     " dims, the array " + std::to_string(shape.size()));
    nlohmann::json blocks = nlohmann::json::array();
    for (int chip = 0; chip < torus.chips(); ++chip) {
      std::vector<int> of;
      for (const Layout::Dim& dim : layout.dims()) of.push_back(torus.block(chip, dim.axes));
      blocks.push_back(of);
    }
    return nlohmann::json{
        {"torus", torus.to_string()},
        {"sizes", {torus.size(Axis::x), torus.size(Axis::y), torus.size(Axis::z)}},
        {"local", local_shape(layout, shape, torus)},
        {"blocks", blocks}};
  });
}
