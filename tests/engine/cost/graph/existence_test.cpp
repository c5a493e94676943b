#include "engine/cost/graph/existence.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/weights/expect_error.h"

namespace shardproof::cost {
namespace {

/// A text with these lines of indicators.
TextModel model_of(const std::string& lines, const TextKeys& keys = {}) {
  return TextModel(
      parse_model_text(
          "model m\ndim E width\ndim V vocabulary\ndim X experts\ndim N groups\ndim Y = X // N\n"
          "number near\nnumber chunk\nflag local\n"
          "small E=2, V=2, X=8, N=4, near=-3, chunk=4, layers=2, local=10\n"
          "embedding\nweight table : VE\n"
          "embed : BLE = gather(table, ids, V)\nfar : BLM = sub(slot, pos)\n" +
          lines +
          "layer\nweight w : EX\nscore : BLX = einsum(BLE,EX->BLX; in, w)\n"
          "best : BLX = top(score, X, 2)\nparts : BLNY = split_dim(best, X->NY)\nout : BLE = in\n"
          "head\nlogits : BLV = einsum(BLE,VE->BLV; in, table)\n"),
      keys, "m.model");
}

using There = std::function<bool(double pos, double slot)>;

/// Counts one by one what the class counts in closed form, or by itself.
void expect_counted(const TextModel& model, const std::vector<std::string>& indicators,
                    const Pass& pass, const There& there) {
  const ExistingShare share = Existence(model, 0, pass).share_of(indicators);
  const std::int64_t slots = pass.M + pass.L;
  double pairs = 0.0, seen = 0.0;
  for (std::int64_t slot = 0; slot < slots; ++slot) {
    bool any = false;
    for (std::int64_t pos = pass.M; pos < slots; ++pos)
      if (there(static_cast<double>(pos), static_cast<double>(slot))) {
        pairs += 1.0;
        any = true;
      }
    seen += any ? 1.0 : 0.0;
  }
  EXPECT_EQ(share.pairs / share.of, pairs / static_cast<double>(pass.L * slots))
      << indicators[0] << " of L=" << pass.L << " M=" << pass.M;
  EXPECT_EQ(share.slots, seen / static_cast<double>(slots))
      << indicators[0] << " of L=" << pass.L << " M=" << pass.M;
}

RC_GTEST_PROP(Existence, OfPositionsIsWhatALoopCounts, ()) {
  const std::int64_t L = *rc::gen::inRange(1, 12), M = *rc::gen::inRange(0, 12);
  const Pass pass{L == 1 ? Phase::decode : Phase::prefill, *rc::gen::inRange(1, 3), L, M};
  const int low = *rc::gen::inRange(-14, 5), high = low + *rc::gen::inRange(-1, 16);
  const int other = *rc::gen::inRange(-6, 7);
  const std::string range = fmt::format("{}, {}", low, high);
  const TextModel model =
      model_of("a : BLM = within(far, " + range + ")\nb : BLM = within(sub(pos, slot), " + range +
               ")\nc : BLM = within(add(mul(far, -2), 1), " + range +
               ")\nd : BLM = within(far, -inf, " + std::to_string(other) +
               ")\ne : BLM = mul(a, d)\nf : BLM = within(far, near, 0)\n"
               "g : BLM = within(sub(floor(div(slot, chunk)), floor(div(pos, chunk))), 0, 0)\n"
               "h : BLM = mul(g, d)\ni : M = within(slot, " +
               range + ")\nj : BLM = within(mul(-2, far), " + range +
               ")\nk : BLM = within(mul(far, far), 0, 4)\nl : BLM = mul(g, a)\n"
               "m : BL = within(sub(pos, chunk), " +
               range + ")\nn : M = within(sub(slot, chunk), " + range +
               ")\no : BLM = within(add(far, floor(far)), " + range + ")\n");
  const auto in = [&](double x) { return low <= x && x <= high; };
  const There a = [&](double p, double s) { return in(s - p); };
  const There d = [&](double p, double s) { return s - p <= other; };
  const There g = [&](double p, double s) { return std::floor(s / 4) == std::floor(p / 4); };
  expect_counted(model, {"a"}, pass, a);
  expect_counted(model, {"b"}, pass, [&](double p, double s) { return in(p - s); });
  expect_counted(model, {"c"}, pass, [&](double p, double s) { return in(-2 * (s - p) + 1); });
  expect_counted(model, {"d"}, pass, d);
  const There both = [&](double p, double s) { return a(p, s) && d(p, s); };
  expect_counted(model, {"e"}, pass, both);
  expect_counted(model, {"a", "d"}, pass, both);
  expect_counted(model, {"f"}, pass, [&](double p, double s) { return -3 <= s - p && s <= p; });
  expect_counted(model, {"g"}, pass, g);
  expect_counted(model, {"h"}, pass, [&](double p, double s) { return g(p, s) && d(p, s); });
  expect_counted(model, {"j"}, pass, [&](double p, double s) { return in(-2 * (s - p)); });
  expect_counted(model, {"k"}, pass, [&](double p, double s) { return std::abs(s - p) <= 2; });
  expect_counted(model, {"l"}, pass, [&](double p, double s) { return g(p, s) && a(p, s); });
  expect_counted(model, {"m"}, pass, [&](double p, double) { return in(p - 4); });
  expect_counted(model, {"n"}, pass, [&](double, double s) { return in(s - 4); });
  expect_counted(model, {"o"}, pass, [&](double p, double s) { return in(2 * (s - p)); });
  expect_counted(model, {"i"}, pass, [&](double, double s) { return in(s); });
}

TEST(Existence, OfEverythingIsOne) {
  const ExistingShare share = Existence(model_of(""), 0, {Phase::prefill, 2, 3, 4}).share_of({});
  EXPECT_EQ(share.pairs, 1.0);
  EXPECT_EQ(share.of, 1.0);
  EXPECT_EQ(share.slots, 1.0);
  EXPECT_EQ(share.chosen, 1.0);
}

/// A plan asks for sizes of which no loop comes to an end.
TEST(Existence, OfTheCausalMaskIsThatOfAPassOfAnySize) {
  const TextModel model = model_of(
      "see : BLM = within(far, -inf, 0)\ndouble : BLM = within(mul(far, 2), -inf, 1)\n"
      "back : BLM = within(sub(pos, slot), 0, inf)\nshift : BLM = within(add(far, chunk), -inf, "
      "4)\n");
  for (const Pass& pass : {Pass{Phase::prefill, 1, 1LL << 20, 0}, Pass{Phase::prefill, 3, 7, 5},
                           Pass{Phase::decode, 1, 1, 1LL << 40}, Pass{Phase::decode, 1, 1, 0}}) {
    const ExistingShare share = Existence(model, 0, pass).share_of({"see"});
    EXPECT_EQ(share.pairs, pass.seen());
    for (const char* other : {"double", "back", "shift"})
      EXPECT_EQ(Existence(model, 0, pass).share_of({other}).pairs, pass.seen()) << other;
    EXPECT_EQ(share.slots, 1.0);
  }
}

TEST(Existence, OfTopIsItsShareOfTheLetter) {
  const TextModel model = model_of("see : BLM = within(far, near, 0)\n");
  const ExistingShare share =
      Existence(model, 0, {Phase::decode, 1, 1, 7}).share_of({"best", "see"});
  EXPECT_EQ(share.chosen, 0.25);
  EXPECT_EQ(Existence(model, 0, {Phase::decode, 1, 1, 7}).share_of({"parts"}).chosen, 0.25);
  EXPECT_EQ(share.pairs, 4.0);
  EXPECT_EQ(share.of, 8.0);
  EXPECT_EQ(share.slots, 0.5);
}

/// Of activations nothing is known: all may exist.
TEST(Existence, OfActivationsIsOne) {
  const TextModel model = model_of("row : BLE = within(embed, 0, inf)\n");
  EXPECT_EQ(Existence(model, 0, {Phase::decode, 1, 1, 7}).share_of({"row"}).pairs, 1.0);
}

TEST(Existence, RefusesMorePairsThanItCounts) {
  const TextModel model =
      model_of("g : BLM = within(sub(floor(div(slot, chunk)), floor(div(pos, chunk))), 0, 0)\n");
  EXPECT_NO_THROW(Existence(model, 0, {Phase::decode, 1, 1, 1000}).share_of({"g"}));
  EXPECT_EQ(label_of([&] {
              Existence(model, 0, {Phase::prefill, 1, 4096, 1}).share_of({"g"});
            }),
            "graph_c1");
}

}  // namespace
}  // namespace shardproof::cost
