// Which mutants a study has, which it draws, and the numbers of other people's checks.
#include "golden/faults/study.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "golden/faults/others.h"
#include "golden/faults/smallest.h"

namespace shardproof::faults {
namespace {

Study study_of_two() {
  std::vector<FaultCase> all = cases_of(Strategy::parse("ws2d:batch"));
  for (FaultCase& one : cases_of(Strategy::parse("dp"))) all.push_back(std::move(one));
  return plan_study(std::move(all));
}

std::vector<std::string> words_of(const Study& study) {
  std::vector<std::string> all;
  for (const Planned& one : study.mutants)
    all.push_back(std::to_string(one.of_case) + " " + one.mutant.to_string());
  return all;
}

TEST(FaultStudy, DrawsByTheSeedClassByClass) {
  Study first = study_of_two(), again = study_of_two(), other = study_of_two();
  const std::size_t all = first.mutants.size();
  draw(first, 60, 1);
  draw(again, 60, 1);
  draw(other, 60, 2);
  EXPECT_EQ(words_of(first), words_of(again));
  EXPECT_NE(words_of(first), words_of(other));
  std::map<std::string_view, int> classes;
  std::set<std::string> once;
  for (const Planned& one : first.mutants) ++classes[one.mutant.how->fault_class];
  for (const std::string& one : words_of(first)) EXPECT_TRUE(once.insert(one).second);
  for (const FaultClass& one : all_classes()) EXPECT_GE(classes[one.name], 3) << one.name;
  Study whole = study_of_two();
  draw(whole, 1'000'000, 1);
  EXPECT_EQ(whole.mutants.size(), all);
}

TEST(FaultStudy, ZooHasEachOperatorOnce) {
  Study study = study_of_two();
  std::set<std::string_view> before, after;
  for (const Planned& one : study.mutants) before.insert(one.mutant.how->name);
  keep_one_each(study);
  for (const Planned& one : study.mutants) EXPECT_TRUE(after.insert(one.mutant.how->name).second);
  EXPECT_EQ(before, after);
}

TEST(FaultStudy, NumbersMutantsByTheirCase) {
  const Study study = study_of_two();
  ASSERT_EQ(study.sizes.size(), study.cases.size());
  std::vector<std::size_t> counts(study.cases.size(), 0);
  for (const Planned& one : study.mutants) EXPECT_EQ(one.number, counts[one.of_case]++);
  EXPECT_EQ(counts, study.sizes);
}

TEST(FaultStudy, OfOneCaseNamesAMutant) {
  const Study study = plan_study({cases_of(Strategy::parse("ws2d:batch")).at(0)});
  for (const std::size_t i : {std::size_t{0}, study.mutants.size() / 2, study.mutants.size() - 1}) {
    const Planned& one = study.mutants[i];
    const Planned found = of_one_case(study, one.mutant);
    EXPECT_EQ(found.number, one.number);
    EXPECT_EQ(found.mutant.to_string(), one.mutant.to_string());
  }
  EXPECT_THROW(of_one_case(study, {&find_operator("ring-sign"), Site::parse("a.b.c"), "-"}), Error);
}

TEST(FaultSizes, AreTriedInAllStepsOfACaseOrTwoOfEach) {
  std::vector<TypedPlan> plans;
  for (const char* strategy : {"ws1d:heads", "ws1d:batch", "ws2d:batch", "dp"})
    plans.push_back(make_typed_plan(cases_of(Strategy::parse(strategy)).at(0).source_case));
  const std::vector<SizeSite> of_four = sites_of_sizes(plans, NumberFormat::f32);
  ASSERT_EQ(of_four.size(), 8U);
  std::set<std::string> values;
  for (std::size_t i = 0; i < of_four.size(); ++i) {
    EXPECT_EQ(of_four[i].of_case, i / 2);
    values.insert(of_four[i].site.value);
  }
  EXPECT_GE(values.size(), 6U);
  plans.resize(1);
  const std::vector<SizeSite> all = sites_of_sizes(plans, NumberFormat::f32);
  const std::vector<SizeSite> stored = sites_of_sizes(plans, NumberFormat::bf16);
  std::size_t steps = 0;
  for (const Op& op : plans[0].plan.prefill.layer.ops)
    if (op.results.size() == 1 && op.kind != OpKind::append) ++steps;
  EXPECT_GT(all.size(), stored.size());
  EXPECT_LE(all.size(), steps);
  for (const SizeSite& one : stored)
    EXPECT_FALSE(plans[0].plan.prefill.layer.declared(one.site.value).layout.is_partial())
        << one.site.value;
}

TEST(FaultSizes, GrowUntilTheyAreSeen) {
  const Case c = parse_case(
      "torus=2x1x1 prefill=ws1d:heads batch=1 prompt=2 gen=1 "
      "model=palm-tiny,layers=1,E=8,F=8,H=4,Q=4,V=8,positions=4");
  OracleMemo memo;
  const std::vector<SizeCurve> curves =
      smallest_effects({{std::string(kOwnCase), "ws1d:heads", c}}, memo, 2);
  ASSERT_EQ(curves.size(), 6U);
  for (const SizeCurve& curve : curves) {
    SCOPED_TRACE(curve.what + " in " + curve.format);
    ASSERT_GT(curve.sizes.size(), 3U);
    // The right run is silent, and the largest change is seen at each step; allclose says of right
    // runs what it says of faults.
    const SizeSeen &none = curve.sizes.front(), &most = curve.sizes.back();
    EXPECT_EQ(none.size, "none");
    EXPECT_EQ(none.exact + none.bounds, 0);
    EXPECT_GT(none.sites, 3);
    EXPECT_EQ(most.sites, none.sites);
    EXPECT_EQ(most.exact, most.sites);
    EXPECT_EQ(most.bounds, most.sites);
    for (const SizeSeen& one : curve.sizes) EXPECT_EQ(one.sites, none.sites) << one.size;
  }
}

TEST(OtherChecks, HaveTheirUsualNumbers) {
  // Sums of few small integers, and square roots of their squares: all exact in f64.
  const std::vector<float> b{1, 2, 3, 4};
  const Distances same = distances(b, b);
  EXPECT_TRUE(same.allclose);
  EXPECT_EQ(same.cosine, 1);
  EXPECT_EQ(same.pcc, 1);
  EXPECT_EQ(same.relative, 0);
  // A factor is nothing to cosine and PCC, an offset nothing to PCC.
  const Distances twice = distances({2, 4, 6, 8}, b);
  EXPECT_FALSE(twice.allclose);
  EXPECT_EQ(twice.cosine, 1);
  EXPECT_EQ(twice.pcc, 1);
  EXPECT_EQ(twice.relative, 1 - 2 * 60.0 / 150);
  EXPECT_EQ(distances({11, 12, 13, 14}, b).pcc, 1);
  EXPECT_TRUE(distances({1, 2, 3, 4.00003F}, b).allclose);
  EXPECT_FALSE(distances({1, 2, 3, 4.00005F}, b).allclose);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Distances broken = distances({1, 2, nan, 4}, b);
  EXPECT_FALSE(broken.allclose);
  EXPECT_EQ(broken.cosine, 0);
  EXPECT_EQ(broken.pcc, 0);
  EXPECT_EQ(broken.relative, 1);
  EXPECT_EQ(distances({0, 0, 0, 0}, b).cosine, 0);
}

TEST(OtherChecks, KlIsThatOfTheDistributions) {
  EXPECT_EQ(mean_kl({0, 1}, {0, 1}, 2, 1.0), 0);
  // Of (1/2, 1/2) and, as exp(-1000) is 0 in f64, (1, exp(-1000)): the logarithms are 0 and -1000.
  const double far = mean_kl({0, -1000}, {0, 0}, 2, 1.0);
  EXPECT_DOUBLE_EQ(far, 500 - std::log(2.0));
  // Not the other way round: (1, 0) of (1/2, 1/2).
  EXPECT_DOUBLE_EQ(mean_kl({0, 0}, {0, -1000}, 2, 1.0), std::log(2.0));
  // Of a row and one that is equal: half of it.
  EXPECT_EQ(mean_kl({0, -1000, 3, 5}, {0, 0, 3, 5}, 2, 1.0), far / 2);
  // A unit is a factor of all logits.
  EXPECT_EQ(mean_kl({0, -500}, {0, 0}, 2, 2.0), far);
}

}  // namespace
}  // namespace shardproof::faults
