#include "tools/drawing/label_places.h"

#include <algorithm>

namespace shardproof {

std::optional<LabelBox> LabelPlaces::place(double x, double y, double w, double h) {
  for (const bool strictly : {true, false})
    for (const double away : {4.0, 9.0, 15.0})
      for (const LabelBox& box :
           {LabelBox{x + away, y - h - away / 2, w, h}, LabelBox{x + away, y + away / 2, w, h},
            LabelBox{x - away - w, y - h - away / 2, w, h},
            LabelBox{x - away - w, y + away / 2, w, h}})
        if (is_free(box, strictly)) {
          take(box);
          return box;
        }
  return std::nullopt;
}

bool LabelPlaces::is_free(const LabelBox& box, bool strictly) const {
  if (box.x < within_.x || box.y < within_.y || box.x + box.w > within_.x + within_.w ||
      box.y + box.h > within_.y + within_.h)
    return false;
  const auto overlaps = [&](const LabelBox& other) { return other.overlaps(box); };
  return std::none_of(taken_.begin(), taken_.end(), overlaps) &&
         (!strictly || std::none_of(avoided_.begin(), avoided_.end(), overlaps));
}

}  // namespace shardproof
