#include "golden/rerun/distances.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>

#include "golden/rerun/run.h"
#include "golden/rerun/text_run.h"
#include "weights/base/detail/index.h"
#include "weights/text/text_model.h"

namespace shardproof::rerun {
namespace {

bool counts(const RequestedValue& asked, std::size_t i) {
  return asked.left_out.empty() || !asked.left_out[i];
}

/// A requested value and its root mean square.
struct Scaled {
  const RequestedValue& asked;
  double scale;
};

double distance(const Scaled& of, const std::vector<double>& numbers) {
  double most = 0.0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (!counts(of.asked, i)) continue;
    const double d = std::abs(numbers[i] - static_cast<double>(of.asked.exact->data[i]));
    if (!std::isfinite(d)) return std::numeric_limits<double>::infinity();
    most = std::max(most, d);
  }
  return most == 0 ? 0.0 : most / of.scale;
}

/// Collects the distances of one run.
class Distances : public Watch {
 public:
  explicit Distances(const std::vector<Scaled>& of) : of_(of), found_(of.size(), -1.0) {}

  bool wants(const std::string& id) const override {
    return std::any_of(of_.begin(), of_.end(), [&](const Scaled& s) { return s.asked.id == id; });
  }
  void see(const std::string& id, const std::vector<double>& numbers) override {
    for (std::size_t i = 0; i < of_.size(); ++i)
      if (of_[i].asked.id == id && of_[i].asked.exact->data.size() == numbers.size())
        found_[i] = distance(of_[i], numbers);
  }
  /// Distances by index; below 0 for values that the run did not compute.
  const std::vector<double>& found() const { return found_; }

 private:
  const std::vector<Scaled>& of_;
  std::vector<double> found_;
};

/// Returns true if a run can compute the pass from the given ids.
bool can_run(const Question& question, const PassPlan& pass) {
  const ModelConfig& config = question.weights.config();
  const auto ids = question.ids.find(pass.name);
  if (ids == question.ids.end() || std::ssize(ids->second.data) != pass.batch() * pass.L)
    return false;
  const TextModel* const text = text_model(config);
  const bool has_tables = rotates(config) || (text != nullptr && text->extent('P') > 0);
  for (const PassRows& group : pass.rows)
    if (has_tables && group.end() > config.positions) return false;
  return std::all_of(ids->second.data.begin(), ids->second.data.end(),
                     [&](std::int32_t id) { return id >= 0 && id < config.V; });
}

/// Returns all passes up to the last one with a requested value.
std::vector<PassPlan> passes_to_run(const Question& question,
                                    const std::vector<RequestedValue>& asked) {
  std::vector<PassPlan> passes = runnable(question);
  const auto is_asked = [&](const PassPlan& pass) {
    return std::any_of(asked.begin(), asked.end(),
                       [&](const RequestedValue& a) { return a.id.starts_with(pass.name + "."); });
  };
  while (!passes.empty() && !is_asked(passes.back())) passes.pop_back();
  return passes;
}

/// Shows the values of one run to a watch.
using RunOnce = std::function<void(std::uint64_t number, Watch& watch)>;

template <class Real>
RunOnce run_of(const Question& question, const std::vector<PassPlan>& passes, std::uint64_t seed) {
  if (text_model(question.weights.config()) != nullptr)
    return [&question, &passes, seed](std::uint64_t number, Watch& watch) {
      run_text<Real>(question, passes, seed, number, watch);
    };
  const auto model = std::make_shared<const Model<Real>>(question.weights);
  return [&question, &passes, seed, model](std::uint64_t number, Watch& watch) {
    Run<Real> run(*model, question.arithmetic, seed, number, watch);
    for (const PassPlan& pass : passes) run.pass(pass, question.ids.at(pass.name));
  };
}

template <class Real>
void watched(const Question& question, const std::vector<PassPlan>& passes, std::uint64_t seed,
             Threads& threads, const std::vector<Watch*>& watches) {
  const RunOnce run = run_of<Real>(question, passes, seed);
  threads.for_each(std::ssize(watches), [&](std::int64_t number) {
    run(static_cast<std::uint64_t>(number), *watches[at(number)]);
  });
}

}  // namespace

double root_mean_square(const RequestedValue& asked) {
  double squares = 0.0, numbers = 0.0;
  for (std::size_t i = 0; i < asked.exact->data.size(); ++i) {
    if (!counts(asked, i)) continue;
    const auto v = static_cast<double>(asked.exact->data[i]);
    squares += v * v;
    ++numbers;
  }
  return std::sqrt(squares / std::max(numbers, 1.0));
}

std::vector<PassPlan> runnable(const Question& question) {
  std::vector<PassPlan> passes;
  for (std::int64_t i = 0; i < question.passes.size(); ++i) {
    PassPlan pass = question.passes.at(i);
    if (!can_run(question, pass)) break;
    passes.push_back(std::move(pass));
  }
  return passes;
}

std::vector<std::vector<double>> distances(const Question& question,
                                           const std::vector<RequestedValue>& asked, int runs,
                                           std::uint64_t seed, Threads& threads) {
  std::vector<std::vector<double>> of_values(asked.size());
  const std::vector<PassPlan> passes = passes_to_run(question, asked);
  std::vector<Scaled> scaled;
  for (const RequestedValue& a : asked) scaled.push_back({a, root_mean_square(a)});
  std::vector<std::unique_ptr<Distances>> found;
  std::vector<Watch*> watches;
  for (int run = 0; run < runs; ++run) {
    found.push_back(std::make_unique<Distances>(scaled));
    watches.push_back(found.back().get());
  }
  watch_runs(question, passes, seed, threads, watches);
  for (const auto& of_run : found)
    for (std::size_t i = 0; i < asked.size(); ++i)
      if (of_run->found()[i] >= 0) of_values[i].push_back(of_run->found()[i]);
  return of_values;
}

void watch_runs(const Question& question, const std::vector<PassPlan>& passes, std::uint64_t seed,
                Threads& threads, const std::vector<Watch*>& watches) {
  if (question.arithmetic.values == NumberFormat::f64)
    watched<double>(question, passes, seed, threads, watches);
  else
    watched<float>(question, passes, seed, threads, watches);
}

}  // namespace shardproof::rerun
