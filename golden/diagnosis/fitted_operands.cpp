// Blocks of weights that make an operand which the dump lacks, as the product of it shows them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "golden/diagnosis/detail/edits.h"
#include "golden/diagnosis/detail/orders.h"
#include "golden/diagnosis/detail/trial.h"
#include "weights/base/detail/index.h"
#include "weights/model/registry.h"

namespace shardproof::diagnosis {
namespace {

using bounds::IntervalTensor;

class FittedOperands : Trial {
 public:
  FittedOperands(const Question& q, Search& search) : Trial(q, search), sum_(contraction_of(q)) {}

  void run() {
    if (q_.right() || q_.raw() || search_.explained() || sum_->terms.size() != 1 ||
        sum_->terms[0].places == nullptr || !lacks(sum_->terms[0].id))
      return;
    const Step& step = q_.step_of(sum_->terms[0].id);
    const std::vector<const TextWeight*> gains = step.weights(WeightKind::gain);
    for (const Axes& set : q_.sets())
      if (gains.size() == 1 && gains[0]->letters == sum_->terms[0].letters)
        blocks_of_gain(step.weight_id(*gains[0]), set);
    for (const std::string& id : step.operands())
      if (lacks(id) && q_.step_of(id).calls(ModelOp::gather))
        for (const Axes& set : q_.sets()) blocks_of_table(id, set);
  }

 private:
  bool lacks(const std::string& id) const {
    return !q_.replay().dumped(id) && q_.replay().place_of(id).pass == q_.place().pass;
  }

  /// Returns a value that the dump lacks, under another weight.
  IntervalTensor under(const std::string& id, const std::string& weight, Tensor numbers) const {
    Question::Change change;
    change.weights.emplace(weight, std::move(numbers));
    return q_.step_of(id)
        .under(
            change, [this](const std::string& of) -> const auto& { return q_.value(of); })
        .rounded(q_.replay().format_at(q_.replay().place_of(id)));
  }
  /// Returns the question's value that follows from another one.
  IntervalTensor following(const std::string& id, IntervalTensor value) const {
    Replaced replaced(q_);
    replaced.put(id, std::move(value));
    return replaced.expected(q_.id());
  }

  /// The weight's n blocks of its first dim, held[r] in place of block r.
  Tensor in_order(const std::string& weight, const std::vector<int>& held) const {
    Tensor numbers = *q_.weight(weight);
    const std::vector<float> own(numbers.data.begin(), numbers.data.end());
    const std::vector<std::size_t> from =
        reordered(own.size(), std::ssize(own) / std::ssize(held), held);
    for (std::size_t i = 0; i < from.size(); ++i) numbers.data[i] = own[from[i]];
    return numbers;
  }
  static std::vector<int> rotated(int n, int by) {
    std::vector<int> held;
    for (int r = 0; r < n; ++r) held.push_back((r + by) % n);
    return held;
  }

  void attempt(const std::string& id, const std::string& weight, const std::vector<int>& held,
               const Axes& set, const std::string& words) {
    Replaced replaced(q_);
    replaced.put(id, under(id, weight, in_order(weight, held)));
    try_replaced(
        {.fault = is_permutation(held) ? "chunks in another order" : "another chip's block",
         .detail = fmt::format("{}{}, in {}, which the dump lacks", words, fmt::join(held, ","),
                               q_.replay().place_of(id).name),
         .parameters = 700,
         .axes = set.to_string(),
         .fitted = true},
        std::move(replaced));
  }

  /// Puts another block of the gain in place of one, or exchanges two, as long as less is left of
  /// the differences: gains of short blocks are combinations of one another, so that no counts can
  /// be fitted.
  void blocks_of_gain(const std::string& gain, const Axes& set) {
    constexpr std::size_t kSamples = 512, kBlocks = 64;
    const Contraction::Term& term = sum_->terms[0];
    const std::vector<int> block = blocks_of(term, term.letters[0], q_.torus().size(set));
    const std::size_t n = at(q_.torus().size(set));
    if (block.empty() || n > kBlocks) return;
    std::vector<IntervalTensor> turned;
    for (std::size_t by = 0; by < n; ++by)
      turned.push_back(
          under(term.id, gain, in_order(gain, rotated(static_cast<int>(n), static_cast<int>(by)))));
    std::vector<std::pair<std::size_t, double>> differences;  // of elements, before their scale
    for (int chip = 0; chip < q_.chips(); ++chip)
      for (const std::size_t local :
           q_.right(chip) ? std::vector<std::size_t>() : q_.judged(chip)) {
        const std::size_t g = q_.global(chip, local);
        const double scale = sum_->scales.empty() ? 1.0 : sum_->scales[g % sum_->columns];
        differences.emplace_back(g, (q_.shard(chip)[local] - q_.expected().center[g]) / scale);
      }
    const std::size_t samples = std::min(differences.size(), kSamples);
    std::vector<double> left(samples);
    // What each sample has more if block i of the operand has block j of the gain.
    std::vector<std::vector<double>> more(n * n, std::vector<double>(samples));
    for (std::size_t s = 0; s < samples; ++s) {
      const auto [g, difference] = differences[s * differences.size() / samples];
      left[s] = difference;
      const std::size_t x = sum_->row_of(term, g) * term.width;
      const double* const w = &(*term.w)[sum_->column_of(term, g) * term.width];
      for (std::size_t k = 0; k < term.width; ++k)
        for (std::size_t by = 0; by < n; ++by) {
          const std::size_t i = at(block[k]);
          more[i * n + (i + by) % n][s] +=
              (turned[by].center[x + k] - turned[0].center[x + k]) * w[k];
        }
    }
    const std::vector<int> held = nearest(std::move(left), more, n);
    if (held != rotated(static_cast<int>(n), 0))
      attempt(term.id, gain, held, set,
              fmt::format("{} of {}: its blocks are ", term.letters, gain));
  }

  static std::vector<int> nearest(std::vector<double> left,
                                  const std::vector<std::vector<double>>& more, std::size_t n) {
    std::vector<int> held = rotated(static_cast<int>(n), 0);
    const auto squares = [](const std::vector<double>& numbers) {
      return std::inner_product(numbers.begin(), numbers.end(), numbers.begin(), 0.0);
    };
    const auto with = [&](const std::vector<int>& other) {
      std::vector<double> of_other = left;
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t s = 0; s < left.size() && other[i] != held[i]; ++s)
          of_other[s] += more[i * n + at(held[i])][s] - more[i * n + at(other[i])][s];
      return of_other;
    };
    for (double least = squares(left);;) {
      std::vector<int> best = held;
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j) {
          std::vector<int> one = held, both = held;
          one[i] = static_cast<int>(j);
          std::swap(both[i], both[j]);
          for (const std::vector<int>& other : {one, both})
            if (const double now = squares(with(other)); now < least) least = now, best = other;
        }
      if (best == held) return held;
      left = with(best);
      held = best;
    }
  }

  /// Tokens show which block of the table each block's rows are of, one token after the other.
  void blocks_of_table(const std::string& id, const Axes& set) {
    const Step& step = q_.step_of(id);
    const std::vector<const TextWeight*> tables = step.weights(WeightKind::matrix);
    if (tables.size() != 1) return;
    const std::string table = step.weight_id(*tables[0]);
    const int n = q_.torus().size(set);
    const std::int64_t rows = q_.weight(table)->shape[0], of_chip = rows / n;
    if (rows % n != 0) return;
    const IntTensor& ids = q_.replay().ids().at(q_.place().pass);
    std::vector<std::vector<bool>> fits(at(n), std::vector<bool>(at(n), true));
    std::vector<bool> seen(at(n), false);
    for (int by = 0; by < n; ++by) {
      const Prediction value =
          q_.logical(following(id, under(id, table, in_order(table, rotated(n, by)))));
      for (int chip = 0; chip < q_.chips(); ++chip)
        for (const std::size_t local : q_.judged(chip)) {
          const std::size_t token = sum_->row_of(sum_->terms[0], q_.global(chip, local));
          if (ids.data[token] < 0) continue;
          const auto r = at(ids.data[token] / of_chip);
          const int other = (static_cast<int>(r) + by) % n;
          seen[r] = true;
          fits[r][at(other)] = fits[r][at(other)] && q_.fits(chip, local, value(chip, local));
        }
    }
    std::vector<int> held;
    for (int r = 0; r < n; ++r) {
      const auto found = std::find(fits[at(r)].begin(), fits[at(r)].end(), true);
      if (found == fits[at(r)].end()) return;
      held.push_back(
          !seen[at(r)] || fits[at(r)][at(r)] ? r : static_cast<int>(found - fits[at(r)].begin()));
    }
    attempt(id, table, held, set, fmt::format("blocks of {} rows of {}: ", of_chip, table));
  }

  std::shared_ptr<const Contraction> sum_;
};

}  // namespace

void try_fitted_operands(const Question& q, Search& search, const Row&) {
  FittedOperands(q, search).run();
}

}  // namespace shardproof::diagnosis
