#include "golden/trace/pair/positions.h"

#include <algorithm>
#include <cmath>

#include "weights/base/detail/index.h"

namespace shardproof::dump {
namespace {

/// Returns what runs in both arithmetics move; nullopt if one has none of that row.
std::optional<Wander::OfLogits> moved(const Wander& a, const std::string& pass_a,
                                      std::int64_t row_a, const Wander& b,
                                      const std::string& pass_b, std::int64_t row_b) {
  const auto of = [](const Wander& w, const std::string& pass, std::int64_t row) {
    const auto found = w.logits.find(pass);
    return found == w.logits.end() || row >= std::ssize(found->second)
               ? std::nullopt
               : std::optional(found->second[at(row)]);
  };
  const auto in_a = of(a, pass_a, row_a), in_b = of(b, pass_b, row_b);
  if (!in_a || !in_b) return std::nullopt;
  return Wander::OfLogits{in_a->logit + in_b->logit, in_a->probability + in_b->probability};
}

}  // namespace

std::optional<double> PositionOfLogits::explained() const {
  if (!moved) return std::nullopt;
  return most <= *moved ? 1.0 : *moved / most;
}

std::vector<PositionOfLogits> positions_of(const LogitsOfBoth& logits, const Wander& a,
                                           const Wander& b, const std::string& pass_of_b) {
  std::vector<PositionOfLogits> all;
  const std::size_t V = at(logits.a.shape.back());
  for (std::size_t row = 0; row < logits.row_of_b.size(); ++row) {
    const std::int64_t other = logits.row_of_b[row];
    if (other < 0) continue;
    const std::size_t first_a = row * V, first_b = at(other) * V;
    bool known = true;
    for (std::size_t v = 0; v < V; ++v)
      known = known && logits.a.present[first_a + v] && logits.b.present[first_b + v];
    if (!known) continue;
    const auto p = log_probabilities(logits.a.numbers.data() + first_a, V, logits.base2);
    const auto q = log_probabilities(logits.b.numbers.data() + first_b, V, logits.base2);
    PositionOfLogits position;
    position.pass = logits.pass, position.row = static_cast<std::int64_t>(row);
    for (std::size_t v = 0; v < V; ++v) {
      const double d = std::abs(p[v] - q[v]);
      if (!(d <= position.most)) position.most = d, position.token = static_cast<std::int64_t>(v);
      position.divergence += std::exp(p[v]) * (p[v] - q[v]);
    }
    position.divergence = std::max(position.divergence, 0.0);
    if (const auto by = moved(a, logits.pass, position.row, b, pass_of_b, other))
      position.moved = by->probability;
    all.push_back(position);
  }
  return all;
}

void hold_against_logits(Parting& parting, const LogitsOfBoth& logits, const Wander& a,
                         const Wander& b, const std::string& pass_of_b) {
  const std::int64_t V = logits.a.shape.back();
  parting.margin_a = parting.margin_b = std::nan("");
  const std::int64_t other =
      parting.row < std::ssize(logits.row_of_b) ? logits.row_of_b[at(parting.row)] : -1;
  const auto is_id = [&](std::int64_t token) { return token >= 0 && token < V; };
  if (other < 0 || !is_id(parting.token_a) || !is_id(parting.token_b)) return;
  const auto in_a = [&](std::int64_t token) {
    return logits.a.numbers[at(parting.row * V + token)];
  };
  const auto in_b = [&](std::int64_t token) { return logits.b.numbers[at(other * V + token)]; };
  parting.margin_a = in_a(parting.token_a) - in_a(parting.token_b);
  parting.margin_b = in_b(parting.token_b) - in_b(parting.token_a);
  parting.apart = std::abs(in_a(parting.token_a) - in_b(parting.token_a)) +
                  std::abs(in_a(parting.token_b) - in_b(parting.token_b));
  if (const auto by = moved(a, logits.pass, parting.row, b, pass_of_b, other))
    parting.moved = 2 * by->logit;
}

}  // namespace shardproof::dump
