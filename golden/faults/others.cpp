#include "golden/faults/others.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "weights/model/registry.h"
#include "weights/model/softmax.h"

namespace shardproof::faults {
namespace {

// Indices of other_check_names().
constexpr std::size_t kTokens = 0, kTop5 = 1, kAllclose = 2, kCosine = 3, kPcc = 4, kRelative = 5,
                      kKl = 6;

double in_double(float v) { return static_cast<double>(v); }

/// The ids of the five largest of a row, the first of equals first.
std::set<std::int64_t> five_best(const float* row, std::int64_t V) {
  std::vector<std::int64_t> ids(static_cast<std::size_t>(V));
  std::iota(ids.begin(), ids.end(), 0);
  const auto best = static_cast<std::ptrdiff_t>(std::min<std::int64_t>(5, V));
  std::partial_sort(ids.begin(), ids.begin() + best, ids.end(),
                    [&](auto a, auto b) { return row[a] > row[b] || (row[a] == row[b] && a < b); });
  return {ids.begin(), ids.begin() + best};
}

std::string id_of(const Scope& scope, const Role& role, bool per_layer) {
  return per_layer ? scope.pass + ".layer" + std::to_string(scope.layer) + "." + role.name
                   : scope.pass + "." + role.name;
}

}  // namespace

std::span<const std::string_view> other_check_names() {
  static constexpr std::array<std::string_view, kOtherChecks> kNames{
      "tokens", "top-5", "allclose", "cosine", "PCC", "relative", "KL"};
  return kNames;
}

Distances distances(const std::vector<float>& a, const std::vector<float>& b) {
  Distances d;
  double aa = 0, bb = 0, ab = 0, sum_a = 0, sum_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = in_double(a[i]), y = in_double(b[i]);
    if (!(std::abs(x - y) <= 1e-8 + 1e-5 * std::abs(y))) d.allclose = false;
    aa += x * x, bb += y * y, ab += x * y, sum_a += x, sum_b += y;
  }
  const auto n = static_cast<double>(a.size());
  const auto ratio = [](double top, double squares) {
    if (std::isnan(top) || std::isnan(squares)) return 0.0;
    return squares > 0 ? top / std::sqrt(squares) : 1.0;
  };
  if (aa > 0 || bb > 0 || std::isnan(aa)) {
    d.cosine = aa > 0 && bb > 0 ? ratio(ab, aa * bb) : 0.0;
    const double va = aa - sum_a * sum_a / n, vb = bb - sum_b * sum_b / n;
    d.pcc = va > 0 && vb > 0 ? ratio(ab - sum_a * sum_b / n, va * vb) : (d.allclose ? 1.0 : 0.0);
    d.relative = std::isnan(ab) ? 1.0 : 1 - 2 * ab / (aa + bb);
  }
  return d;
}

double mean_kl(const std::vector<float>& a, const std::vector<float>& b, std::int64_t V,
               double unit) {
  const auto width = static_cast<std::size_t>(V);
  const std::size_t rows = b.size() / width;
  const auto log_sum = [&](const float* row) {
    const double most = unit * in_double(*std::max_element(row, row + width));
    double sum = 0;
    for (std::size_t v = 0; v < width; ++v) sum += std::exp(unit * in_double(row[v]) - most);
    return most + std::log(sum);
  };
  double all = 0;
  for (std::size_t r = 0; r < rows; ++r) {
    const float *x = a.data() + r * width, *y = b.data() + r * width;
    const double lx = log_sum(x), ly = log_sum(y);
    for (std::size_t v = 0; v < width; ++v) {
      const double log_p = unit * in_double(y[v]) - ly, log_q = unit * in_double(x[v]) - lx;
      all += std::exp(log_p) * (log_p - log_q);
    }
  }
  return rows > 0 ? all / static_cast<double>(rows) : 0.0;
}

void Others::observe(const Scope& scope, const Program&, const Op* op, const ValueDecl& declared,
                     const Sharded& value) {
  const Role& role = declared.role;
  if (op == nullptr || role.kind != Role::Kind::checkpoint || role.last ||
      declared.layout.is_partial() || value.layout().is_partial())
    return;
  const ValueRow* const row = value_row(role, scope.rows);
  if (row == nullptr) return;
  const std::string id = id_of(scope, role, row->per_layer);
  if (value.stores_int32()) {
    const auto known = right_.tokens.find(id);
    if (known == right_.tokens.end()) return;
    const IntTensor all = assemble_int(value);
    if (all.data != known->second.data)
      sights_.end_to_end[kTokens] = sights_.per_value[kTokens] = true;
    return;
  }
  const auto known = right_.checkpoints.find(id);
  if (known == right_.checkpoints.end() || value.holds_partial()) return;
  const Tensor all = assemble(value);
  if (all.shape != known->second.shape) return;
  const std::vector<float> a(all.data.begin(), all.data.end());
  const std::vector<float> b(known->second.data.begin(), known->second.data.end());
  const bool logits = row->dims.find('V') != std::string_view::npos;
  of_values(a, b, logits);
  if (logits) of_logits(a, b);
}

void Others::of_values(const std::vector<float>& a, const std::vector<float>& b, bool logits) {
  std::vector<float> x, y;  // without slots that nothing was written to
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!std::isnan(b[i])) x.push_back(a[i]), y.push_back(b[i]);
  const Distances d = distances(x, y);
  const std::array<std::pair<std::size_t, bool>, 4> all{{{kAllclose, !d.allclose},
                                                         {kCosine, d.cosine < 0.99},
                                                         {kPcc, d.pcc < 0.99},
                                                         {kRelative, d.relative > 1e-3}}};
  for (const auto& [check, alarm] : all) {
    if (!alarm) continue;
    sights_.per_value[check] = true;
    if (logits) sights_.end_to_end[check] = true;
  }
}

void Others::of_logits(const std::vector<float>& a, const std::vector<float>& b) {
  const std::int64_t V = model_.V;
  const auto width = static_cast<std::size_t>(V);
  bool five = false;
  for (std::size_t r = 0; r + width <= b.size(); r += width)
    five = five ||
           std::any_of(a.begin() + static_cast<std::ptrdiff_t>(r),
                       a.begin() + static_cast<std::ptrdiff_t>(r + width),
                       [](float v) { return std::isnan(v); }) ||
           five_best(a.data() + r, V) != five_best(b.data() + r, V);
  const double far = mean_kl(a, b, V, model_.softmax == Softmax::base2 ? kLn2 : 1.0);
  if (five) sights_.end_to_end[kTop5] = sights_.per_value[kTop5] = true;
  if (!(far <= 0.015)) sights_.end_to_end[kKl] = sights_.per_value[kKl] = true;
}

OtherSights Others::finish(bool ended) const {
  if (ended) return sights_;
  OtherSights all;
  all.end_to_end.fill(true);
  all.per_value.fill(true);
  return all;
}

}  // namespace shardproof::faults
