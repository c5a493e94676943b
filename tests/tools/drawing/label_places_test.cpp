#include "tools/drawing/label_places.h"

#include <gtest/gtest.h>

#include <random>

namespace shardproof {
namespace {

TEST(LabelPlaces, NeverOverlapAndStayInside) {
  std::mt19937 random(5);
  for (int i = 0; i < 50; ++i) {
    const LabelBox all{10, 20, 200, 150};
    LabelPlaces places(all);
    std::vector<LabelBox> given;
    for (int n = 0; n < 60; ++n) {
      const double x = 10 + static_cast<double>(random() % 200);
      const double y = 20 + static_cast<double>(random() % 150);
      if (n % 3 == 0) {
        given.push_back({x, y, 4, 4});
        places.take(given.back());
      } else if (const auto box = places.place(x, y, 40, 9)) {
        for (const LabelBox& other : given)
          if (other.w > 4) {
            EXPECT_FALSE(box->overlaps(other));
          }
        EXPECT_GE(box->x, all.x);
        EXPECT_LE(box->y + box->h, all.y + all.h);
        EXPECT_LE(box->x + box->w, all.x + all.w);
        given.push_back(*box);
      }
    }
  }
}

TEST(LabelPlaces, LeaveMarksFreeWhereThereIsRoom) {
  LabelPlaces places({0, 0, 300, 300});
  const std::optional<LabelBox> usual = places.place(150, 150, 40, 9);
  ASSERT_TRUE(usual);
  LabelPlaces others({0, 0, 300, 300});
  others.avoid(*usual);
  const std::optional<LabelBox> other = others.place(150, 150, 40, 9);
  ASSERT_TRUE(other);
  EXPECT_FALSE(other->overlaps(*usual));
  LabelPlaces none({0, 0, 30, 30});
  EXPECT_FALSE(none.place(15, 15, 40, 9)) << "no room at all";
}

}  // namespace
}  // namespace shardproof
