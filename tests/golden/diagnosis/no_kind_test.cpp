// Faults that are of no kind, in whole runs of several models and strategies: nothing explains
// them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "golden/trace/verdict/wrong_value.h"
#include "tests/golden/trace/engine.h"
#include "tests/golden/trace/own_trace.h"
#include "tests/golden/trace/written.h"
#include "tests/sanitized.h"

namespace shardproof::dump {
namespace {

using diagnosis::Hypothesis;
using Plain = std::vector<double>;

constexpr int kFaults = 300;

/// Runs of the engine in f32 and in bf16, each followed by one of other weights and prompts.
std::vector<std::string> runs() {
  std::vector<std::string> lines;
  for (const std::string line :
       {"torus=2x1x3 model=palm-tiny,layers=2,E=12,F=24,H=6,K=2,Q=4,V=24 prefill=ws2d:heads "
        "decode=ws2d:batch batch=6 prompt=6 chunk=3 gen=2 seed=",
        "torus=4x1x1 model=llama,layers=2,E=16,F=24,H=8,K=4,Q=4,V=24 prefill=ws1d decode=ws1d "
        "batch=4 prompt=5 gen=3 seed=",
        "torus=2x2x1 model=falcon,layers=1,E=16,F=16,H=4,K=2,Q=4,V=20,bias=all prefill=wg-xy:batch "
        "decode=ws2d:heads batch=4 prompt=6 gen=2 seed="})
    for (const char* of : {" regime=f32", " regime=f32 act=bf16 weights=bf16"})
      for (const char* seed : {"3", "4"}) lines.push_back(line + seed + of);
  return lines;
}

struct Source {
  explicit Source(const std::string& line) : run(line), dump(own_trace(line)) {}

  /// What somebody sees of it: the model's values of these names alone, or all.
  dump::Dump seen(const std::set<std::string>* names) const {
    dump::Dump d = dump;
    const ExactRun::Read read(run, dump);
    std::set<std::string> unseen;
    for (const DumpedValue& value : read.values.dumped)
      if (const Subject& s = value.subject;
          names != nullptr && !s.pass.empty() && s.meaning < Meaning::candidates &&
          (s.meaning != Meaning::checkpoint || !names->contains(s.name)))
        unseen.insert(value.name);
    for (const std::string& name : dump.order) {
      const std::string* const same = find(dump.values.at(name).attributes, "same_as");
      if (same != nullptr && unseen.contains(*same)) unseen.insert(name);
      if (!unseen.contains(name)) continue;
      d.values.erase(name);
      std::erase(d.order, name);
    }
    return d;
  }

  ExactRun run;
  dump::Dump dump;
};

Plain numbers_of(const StoredArray& s) {
  Plain numbers(s.size());
  for (std::size_t i = 0; i < s.size(); ++i) numbers[i] = s.at(i);
  return numbers;
}
double rms(const Plain& numbers) {
  double squares = 0;
  for (const double v : numbers) squares += v * v;
  return std::sqrt(squares / static_cast<double>(numbers.size()));
}

/// Changes an array, whose rows have this many elements; `other`: that of a run of other weights.
struct Change {
  const char* name;
  void (*to)(Plain& numbers, std::size_t width, const Plain& other, std::mt19937_64& random);
};
const Change kChanges[]{
    {"noise",
     [](Plain& x, std::size_t, const Plain&, std::mt19937_64& random) {
       const double size = std::ldexp(rms(x), -static_cast<int>(random() % 8));
       std::normal_distribution<double> normal;
       for (double& v : x) v += size * normal(random);
     }},
    {"noise in some elements",
     [](Plain& x, std::size_t, const Plain&, std::mt19937_64& random) {
       const double size = std::ldexp(rms(x), 1 - static_cast<int>(random() % 4));
       std::normal_distribution<double> normal;
       for (double& v : x)
         if (random() % 3 == 0) v += size * normal(random);
     }},
    {"elements in another order",
     [](Plain& x, std::size_t, const Plain&, std::mt19937_64& random) {
       std::shuffle(x.begin(), x.end(), random);
     }},
    {"each row's elements in another order",
     [](Plain& x, std::size_t width, const Plain&, std::mt19937_64& random) {
       for (auto row = x.begin(); row != x.end(); row += static_cast<std::ptrdiff_t>(width))
         std::shuffle(row, row + static_cast<std::ptrdiff_t>(width), random);
     }},
    {"a part of another run",
     [](Plain& x, std::size_t, const Plain& other, std::mt19937_64& random) {
       const std::size_t parts = 1 + random() % 3, part = random() % parts;
       for (std::size_t i = 0; i < x.size(); ++i)
         if (i * parts / x.size() == part) x[i] = other[i];
     }},
    {"elements of another run here and there",
     [](Plain& x, std::size_t, const Plain& other, std::mt19937_64& random) {
       for (std::size_t i = 0; i < x.size(); ++i)
         if (random() % 4 == 0) x[i] = other[i];
     }},
    {"one half times a factor, the other one of the next row",
     [](Plain& x, std::size_t width, const Plain&, std::mt19937_64& random) {
       const double by = 1.25 + static_cast<double>(random() % 8) / 4;
       const Plain was = x;
       for (std::size_t i = 0; i < x.size(); ++i)
         x[i] = i % width < width / 2 ? was[i] * by : was[(i + width) % was.size()];
     }},
    {"of the next row, and times a factor, and noise",
     [](Plain& x, std::size_t width, const Plain&, std::mt19937_64& random) {
       const Plain was = x;
       std::normal_distribution<double> normal;
       for (std::size_t i = 0; i < x.size(); ++i)
         x[i] = 2 * was[(i + width) % was.size()] + 0.3 * rms(was) * normal(random);
     }},
};

class NoKind : public testing::Test {
 protected:
  const Source& source(std::size_t n) {
    std::unique_ptr<Source>& known = sources_[n];
    if (known == nullptr) known = std::make_unique<Source>(lines_.at(n));
    return *known;
  }

  /// An array of a dump: a whole value, or a chip's shard.
  struct Place {
    std::string name;
    std::optional<std::array<int, 3>> chip;

    template <class Dump>
    auto& of(Dump& d) const {
      auto& value = d.values.find(name)->second;
      return chip ? value.chips.find(*chip)->second : value.whole;
    }
  };

  /// Changes some value of a run, or a chip's, and says what; the judge may call it right.
  static std::string plant(dump::Dump& d, const dump::Dump& another, int n,
                           std::mt19937_64& random) {
    std::vector<Place> places;
    const auto add = [&](Place place) {
      const StoredArray& s = place.of(d);
      if (s.size() >= 24 && s.encoding != NumberFormat::int32) places.push_back(std::move(place));
    };
    for (const std::string& name : d.order) {
      if (!name.starts_with("prefill.") && !name.starts_with("decode.")) continue;
      const Value& value = d.values.at(name);
      if (!value.in_shards()) add({name, std::nullopt});
      for (const auto& [chip, shard] : value.chips)
        if (random() % 4 == 0) add({name, chip});
    }
    const Place& place = places.at(random() % places.size());
    StoredArray& s = place.of(d);
    Plain numbers = numbers_of(s);
    const bool in_bf16 =
        std::all_of(numbers.begin(), numbers.end(), [](double v) { return as_bf16(v) == v; });
    const Change& change = kChanges[static_cast<std::size_t>(n) % std::size(kChanges)];
    change.to(numbers, static_cast<std::size_t>(s.shape.back()), numbers_of(place.of(another)),
              random);
    if (in_bf16) std::transform(numbers.begin(), numbers.end(), numbers.begin(), as_bf16);
    s = stored(s.shape, numbers, s.encoding);
    return fmt::format("{}{}: {}", place.name, place.chip ? " of a chip" : "", change.name);
  }

  std::vector<std::string> lines_ = runs();

 private:
  std::map<std::size_t, std::unique_ptr<Source>> sources_;
};

TEST_F(NoKind, NothingExplainsIt) {
  const std::set<std::string>* const kSeen[] = {nullptr, &kHooks, &kLean};
  const OneInN taken(20, "faults of no kind");
  for (int n = 0; n < kFaults; ++n) {
    if (!taken(n)) continue;
    std::mt19937_64 random(static_cast<std::uint64_t>(n) + 1);
    const std::size_t which = random() % lines_.size();
    const std::set<std::string>* const seen = kSeen[random() % 3];
    for (bool wrong = false; !wrong;) {
      dump::Dump d = source(which).seen(seen);
      const std::string what = plant(d, source(which ^ 1U).dump, n, random);
      ExactRun::Read read(source(which).run, d);
      const Verdict verdict = judge(read.values, read.claim, read.reference);
      wrong = verdict.first.has_value();
      for (const Hypothesis& h : diagnosed(verdict, read.values, read.claim, read.reference))
        EXPECT_FALSE(h.explains) << n << ", " << lines_[which] << ", " << what << "\n"
                                 << h.fault << " [" << h.axes << "]: " << h.detail << ", residual "
                                 << h.residual;
    }
  }
}

/// The same runs, with a fault that is of a kind.
TEST_F(NoKind, AKindIsSaid) {
  for (std::size_t which = 0; which < lines_.size(); which += 4) {
    const Source& of = source(which);
    dump::Dump d = of.dump;
    StoredArray& s = d.values.at("prefill.c0.layer0.xn").whole;
    Plain numbers = numbers_of(s);
    for (double& v : numbers) v *= 2;
    s = stored(s.shape, numbers, s.encoding);
    ExactRun::Read read(of.run, d);
    const Verdict verdict = judge(read.values, read.claim, read.reference);
    ASSERT_EQ(first_of(verdict), "prefill.c0.layer0.norm") << lines_[which];
    const auto said = diagnosed(verdict, read.values, read.claim, read.reference);
    ASSERT_FALSE(said.empty()) << lines_[which];
    EXPECT_TRUE(said[0].explains) << lines_[which];
    EXPECT_EQ(said[0].fault + ": " + said[0].detail, "another factor: times 2") << lines_[which];
  }
}

}  // namespace
}  // namespace shardproof::dump
