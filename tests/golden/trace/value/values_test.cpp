// What is read of arrays: sums of terms, copies, layouts, and what does not fit.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/golden/trace/written.h"
#include "tests/weights/expect_error.h"

namespace shardproof::dump {
namespace {

const std::string kAt = "decode.1.layer0.";

class ReadValues : public testing::Test {
 protected:
  /// What is read of a trace of these values alone, of their chips or whole.
  Values read(const std::vector<Written>& values, const Attributes& more = {}) const {
    Dump d = run.trace(values, "f32");
    for (const auto& [name, text] : more) d.attributes[name] = text;
    return read(d);
  }
  Values read(const Dump& d) const {
    return read_values(d, read_claim(d.attributes, std::nullopt), run.weights());
  }
  const ExactRun run{kLine};
};

TEST_F(ReadValues, TermsAreAddedElementByElement) {
  const Written out = run.whole(kAt + "out");
  std::vector<Written> terms(3, out);
  for (std::size_t t = 0; t < terms.size(); ++t) {
    terms[t].name += "_" + std::to_string(t);
    terms[t].attributes["summand_of"] = "out";
    for (std::size_t i = 0; i < out.numbers.size(); ++i)
      terms[t].numbers[i] = t == 1 ? -7.0 : static_cast<double>(i * (t + 1));
  }
  const Values values = read(terms);
  ASSERT_EQ(values.dumped.size(), 1U);
  const DumpedValue& sum = values.dumped[0];
  EXPECT_EQ(sum.name, kAt + "out_0+" + kAt + "out_1+" + kAt + "out_2");
  EXPECT_EQ(sum.terms, 3);
  for (std::size_t i = 0; i < out.numbers.size(); ++i) {
    ASSERT_EQ(sum.shards[0][i], 4.0 * static_cast<double>(i) - 7.0) << i;
    ASSERT_EQ(sum.size(0, i), 4.0 * static_cast<double>(i) + 7.0) << i;
  }
}

TEST_F(ReadValues, TermsInOtherLayoutsAreNoSum) {
  Dump d = run.trace({}, "f32");
  for (const auto& [suffix, layout] : {std::pair{"_0", "BLE_x"}, std::pair{"_1", "BLE_z"}}) {
    Written term = run.whole(kAt + "out");
    term.name += suffix;
    term.attributes["summand_of"] = "out";
    run.add(d, term, layout, 2);
  }
  const Values values = read(d);
  ASSERT_EQ(values.dumped.size(), 1U);
  EXPECT_TRUE(values.dumped[0].misfit);
  EXPECT_NE(values.dumped[0].why_not.find("are in different layouts"), std::string::npos)
      << values.dumped[0].why_not;
}

// A copy is judged with what it is the same as; it must be the same value of the model.
TEST_F(ReadValues, CopiesAreOfTheSameValue) {
  const auto copy_of = [&](const char* meaning) {
    Written copy{kAt + "copy", "", {0}, {}, {{"same_as", kAt + "gate"}}};
    if (*meaning != '\0') copy.attributes["meaning"] = meaning;
    return read({run.whole(kAt + "gate"), copy});
  };
  for (const char* same : {"", "gate"}) {
    const Values values = copy_of(same);
    EXPECT_EQ(values.copies, 1) << same;
    EXPECT_EQ(values.dumped.size(), 1U) << same;
  }
  EXPECT_EQ(message_of([&] { copy_of("up"); }), "dump_attribute: " + kAt + "copy: same_as=\"" +
                                                    kAt + "gate\": this is " + kAt + "up, that " +
                                                    kAt + "gate");
}

// Layouts say which block a chip has only where it has a block: not with padding between, nor with
// heads in another order.
TEST_F(ReadValues, PaddingAndOtherOrdersAreNoPlainBlocks) {
  const auto plain = [&](const Written& w, const std::string& layout, const Attributes& more) {
    Dump d = run.trace({}, "f32");
    run.add(d, w, layout, 2);
    for (const auto& [name, text] : more) d.attributes[name] = text;
    const Values values = read(d);
    EXPECT_EQ(values.laid.size(), 1U) << layout;
    return values.laid.at(0).plain;
  };
  const Written q = run.whole(kAt + "q");
  EXPECT_TRUE(plain(q, "BLH_zQ", {}));
  EXPECT_FALSE(plain(q, "BLH_zQ", {{"heads", "4,2,0,5,1,3"}}));
  EXPECT_FALSE(plain(q, "BLH_zQ", {{"rope_pairs", "interleaved"}}));
  for (const char letter : q.dims) {
    Written longer = q;
    longer.attributes["padded"] = std::string(1, letter);
    longer.shape[q.dims.find(letter)] += 6;
    longer.numbers.assign(static_cast<std::size_t>(element_count(longer.shape)), 1.0);
    EXPECT_FALSE(plain(longer, "BLH_zQ", {})) << letter;
  }
}

// An array that does not fit is one value that is not judged; what the file says wrongly ends all.
TEST_F(ReadValues, AMisfitIsNoMistake) {
  Written short_by_one = run.whole(kAt + "gate");
  short_by_one.shape[0] -= 1;
  short_by_one.numbers.resize(static_cast<std::size_t>(element_count(short_by_one.shape)));
  const Values values = read({short_by_one, run.whole(kAt + "up")});
  ASSERT_EQ(values.dumped.size(), 2U);
  EXPECT_TRUE(values.dumped[0].misfit);
  EXPECT_FALSE(values.dumped[0].why_not.empty());
  EXPECT_FALSE(values.dumped[1].misfit);
  Written of_no_dim = run.whole(kAt + "gate");
  of_no_dim.attributes = {{"fused", "gate,up"}, {"along", "H"}};
  const std::string why = message_of([&] { read({of_no_dim}); });
  EXPECT_TRUE(why.starts_with("dump_attribute: ")) << why;
}

}  // namespace
}  // namespace shardproof::dump
