#pragma once

#include <optional>
#include <vector>

namespace shardproof {

/// A rectangle, y downwards.
struct LabelBox {
  double x = 0.0, y = 0.0, w = 0.0, h = 0.0;
  bool overlaps(const LabelBox& other) const {
    return x < other.x + other.w && other.x < x + w && y < other.y + other.h && other.y < y + h;
  }
};

/// Finds room for labels beside points, so that none lies on another or on what is there already.
class LabelPlaces {
 public:
  explicit LabelPlaces(const LabelBox& within) : within_(within) {}

  /// Something that no label may lie on.
  void take(const LabelBox& box) { taken_.push_back(box); }
  /// Something that labels leave free where there is room besides.
  void avoid(const LabelBox& box) { avoided_.push_back(box); }
  /// Where a label of this size can stand beside (x, y): right or left of it, above or below, near
  /// it first. Takes the place. Nothing where there is no room.
  std::optional<LabelBox> place(double x, double y, double w, double h);

 private:
  bool is_free(const LabelBox& box, bool strictly) const;

  LabelBox within_;
  std::vector<LabelBox> taken_, avoided_;
};

}  // namespace shardproof
