#include "golden/trace/pair/wander.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <thread>

#include "engine/numeric/threads.h"
#include "golden/compare/row_padding.h"
#include "golden/rerun/distances.h"
#include "golden/rerun/run.h"
#include "golden/trace/verdict/rerun_arithmetic.h"
#include "weights/base/detail/index.h"
#include "weights/model/registry.h"
#include "weights/model/softmax.h"
#include "weights/text/model_text.h"

namespace shardproof::dump {
namespace {

constexpr int kMostRuns = 32;
constexpr double kWorkOfAMinute = 4e10;  // multiply-adds of all runs

/// A value that the runs are asked for.
struct Asked {
  const Tensor* exact = nullptr;
  std::vector<bool> padding = {};  // empty: none
  double scale = 0.0;              // root mean square
};

/// What one run shows.
class LayerWatch : public rerun::Watch {
 public:
  LayerWatch(const std::map<std::string, Asked>& layers, const std::map<std::string, Asked>& logits,
             bool base2)
      : layers_(layers), logits_(logits), base2_(base2) {}

  bool wants(const std::string& id) const override {
    return layers_.contains(id) || logits_.contains(id);
  }
  void see(const std::string& id, const std::vector<double>& numbers) override {
    if (const auto of = layers_.find(id); of != layers_.end())
      drifts[id] = distance(of->second, numbers);
    if (const auto of = logits_.find(id); of != logits_.end()) see_logits(id, of->second, numbers);
  }

  std::map<std::string, double> drifts;
  std::map<std::string, std::vector<Wander::OfLogits>> rows;

 private:
  static double distance(const Asked& of, const std::vector<double>& numbers) {
    double most = 0.0;
    for (std::size_t i = 0; i < std::min(numbers.size(), of.exact->data.size()); ++i) {
      if (!of.padding.empty() && of.padding[i]) continue;
      const double d = std::abs(numbers[i] - wide(of.exact->data[i]));
      most = std::isfinite(d) ? std::max(most, d) : std::numeric_limits<double>::infinity();
    }
    return most == 0 ? 0.0 : most / of.scale;
  }
  void see_logits(const std::string& id, const Asked& of, const std::vector<double>& numbers) {
    if (numbers.size() != of.exact->data.size()) return;
    const std::size_t V = at(of.exact->shape.back());
    const std::vector<double> exact(of.exact->data.begin(), of.exact->data.end());
    for (std::size_t first = 0; first < numbers.size(); first += V) {
      const auto ours = log_probabilities(numbers.data() + first, V, base2_);
      const auto right = log_probabilities(exact.data() + first, V, base2_);
      Wander::OfLogits most;
      for (std::size_t v = 0; v < V; ++v) {
        most.logit = std::max(most.logit, std::abs(numbers[first + v] - exact[first + v]));
        most.probability = std::max(most.probability, std::abs(ours[v] - right[v]));
      }
      rows[id].push_back(most);
    }
  }

  const std::map<std::string, Asked>& layers_;
  const std::map<std::string, Asked>& logits_;
  bool base2_;
};

Asked asked(const Tensor* exact, std::vector<bool> padding) {
  Asked of{exact, std::move(padding), 0.0};
  double squares = 0.0, count = 0.0;
  for (std::size_t i = 0; i < exact->data.size(); ++i)
    if (of.padding.empty() || !of.padding[i])
      squares += wide(exact->data[i]) * wide(exact->data[i]), ++count;
  of.scale = std::sqrt(squares / std::max(count, 1.0));
  return of;
}

int count_of(const Claim& claim, int runs) {
  if (runs >= 0) return runs;
  const double work = std::max(multiply_adds(claim.source_case), 1.0);
  return static_cast<int>(std::min<double>(kMostRuns, kWorkOfAMinute / work));
}

}  // namespace

std::vector<double> log_probabilities(const double* logits, std::size_t count, bool base2) {
  const double unit = base2 ? kLn2 : 1.0;
  double top = -std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < count; ++i) top = std::max(top, logits[i] * unit);
  double sum = 0.0;
  for (std::size_t i = 0; i < count; ++i) sum += std::exp(logits[i] * unit - top);
  std::vector<double> out(count);
  for (std::size_t i = 0; i < count; ++i) out[i] = logits[i] * unit - top - std::log(sum);
  return out;
}

Wander wander_of(const Claim& claim, Reference& reference, int runs) {
  Wander found;
  const ModelConfig& model = claim.source_case.model;
  found.runs = count_of(claim, runs);
  if (found.runs == 0) {
    found.why = runs == 0 ? "none were asked for" : "the model is too large to be run again";
    return found;
  }
  const Passes passes = claim.source_case.passes();
  std::map<std::string, IntTensor> ids;
  std::map<std::string, Asked> layers, logits;
  for (std::int64_t i = 0; i < passes.size(); ++i) {
    const PassPlan pass = passes.at(i);
    ids[pass.name] = reference.ids(pass.name);
    if (!reference.on_same_ids(pass.name)) continue;
    const auto ask = [&](std::int64_t layer, const std::string& name, auto& of) {
      Subject s;
      s.pass = pass.name, s.layer = std::max<std::int64_t>(layer, 0), s.name = name;
      s.id = checkpoint_id(pass.name, layer, name, model.rows.get());
      const Tensor* const exact = reference.exact(s);
      const ValueRow* const row = value_row(name, model.rows.get());
      if (exact != nullptr && row != nullptr)
        of[s.id] = asked(exact, padding_in_trace(row->dims, exact->shape, false, pass));
    };
    for (std::int64_t layer = 0; layer < model.layers; ++layer) {
      const std::string out(result_of(TextSection::layer));
      ask(layer, out, layers);
      if (const auto of = layers.find(checkpoint_id(pass.name, layer, out, model.rows.get()));
          of != layers.end())
        found.layers[of->first].layer = layer;
    }
    ask(-1, std::string(result_of(TextSection::head)), logits);
  }
  const rerun::Question question{reference.weights(), passes, ids,
                                 rerun_arithmetic(claim.declared)};
  std::vector<std::unique_ptr<LayerWatch>> watches;
  std::vector<rerun::Watch*> all;
  for (int run = 0; run < found.runs; ++run) {
    watches.push_back(
        std::make_unique<LayerWatch>(layers, logits, model.softmax == Softmax::base2));
    all.push_back(watches.back().get());
  }
  Threads threads(static_cast<int>(std::max(1U, std::thread::hardware_concurrency())));
  rerun::watch_runs(question, rerun::runnable(question), claim.source_case.seed, threads, all);
  for (auto& [id, of] : found.layers) {
    double squares = 0.0;
    of.least = std::numeric_limits<double>::infinity();
    for (const auto& watch : watches) {
      const double drift = watch->drifts.contains(id) ? watch->drifts.at(id) : 0.0;
      of.least = std::min(of.least, drift), of.most = std::max(of.most, drift);
      squares += drift * drift;
    }
    of.rms = std::sqrt(squares / found.runs);
  }
  for (const auto& [id, of] : logits)
    for (const auto& watch : watches) {
      const auto rows = watch->rows.find(id);
      if (rows == watch->rows.end()) continue;
      std::vector<Wander::OfLogits>& most = found.logits[id.substr(0, id.rfind('.'))];
      most.resize(rows->second.size());
      for (std::size_t b = 0; b < most.size(); ++b) {
        most[b].logit = std::max(most[b].logit, rows->second[b].logit);
        most[b].probability = std::max(most[b].probability, rows->second[b].probability);
      }
    }
  return found;
}

}  // namespace shardproof::dump
