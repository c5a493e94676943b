#include "tests/engine/cost/formulas/closed_forms.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <map>
#include <utility>

#include "engine/strategies/strategy.h"
#include "weights/base/detail/words.h"
#include "weights/model/registry.h"

namespace shardproof::cost {
namespace {

/// The lines of one table by value and class: "q", "k YZ", "flops k none", "held cache Z".
using Rows = std::map<std::string, std::string>;

/// Returns them; none if the text has none of the table.
Rows rows_of(std::string_view table) {
  Rows rows;
  bool mine = false;
  for (std::string_view line : split(kClosedForms, "\n")) {
    line = trim(line.substr(0, line.find('#')));
    if (line.starts_with("forms ")) {
      mine = false;
      for (const std::string_view name : split(line.substr(6), " "))
        mine = mine || name == table ||
               (name.ends_with('*') && table.starts_with(name.substr(0, name.size() - 1)));
    } else if (mine && !line.empty()) {
      const std::vector<std::string_view> sides = split(line, " : ");
      std::vector<std::string_view> words = split(sides.at(0), " ");
      std::string before;
      if (words[0] == "flops" || words[0] == "held") {
        before = fmt::format("{} ", words[0]);
        words.erase(words.begin());
      }
      if (words.size() < 2) words.emplace_back();  // no class
      for (const std::string_view value : split(words.at(0), ","))
        for (const std::string_view one : split(words.at(1), ","))
          rows[fmt::format("{}{}{}{}", before, value, one.empty() ? "" : " ", one)] = sides.at(1);
    }
  }
  return rows;
}

bool has_counts(const Rows& rows) { return rows.contains("flops q"); }

/// Returns the share of chips whose block changes when a subscript's axes are reordered.
double share_that_moves(const Axes& from, const Axes& to, const Torus& torus) {
  const auto block = [&](const Axes& order, const std::map<Axis, int>& at) {
    int number = 0;
    for (const Axis a : order) number = number * torus.size(a) + at.at(a);
    return number;
  };
  int moved = 0, all = 0;
  for (int x = 0; x < torus.size(Axis::x); ++x)
    for (int y = 0; y < torus.size(Axis::y); ++y)
      for (int z = 0; z < torus.size(Axis::z); ++z, ++all) {
        const std::map<Axis, int> at{{Axis::x, x}, {Axis::y, y}, {Axis::z, z}};
        moved += block(from, at) != block(to, at) ? 1 : 0;
      }
  return static_cast<double>(moved) / all;
}

class ClosedForm {
 public:
  ClosedForm(const Rows& rows, const ModelConfig& model, const Numerics& numerics,
             const Torus& torus, const Pass& pass, const std::string& heads)
      : rows_(rows), model_(model), numerics_(numerics), torus_(torus), heads_(heads) {
    extents_ = {{'B', pass.B},  {'L', pass.L},  {'T', pass.M + pass.L}, {'E', model.E},
                {'F', model.F}, {'H', model.H}, {'K', model.K},         {'Q', model.Q}};
  }

  ClosedWork work() {
    const bool serial = model_.block == Block::serial;
    const int norms = serial ? 2 : 1, outs = serial ? 2 : 1;
    const int statistics = model_.norm == Norm::layernorm ? 2 : 1;
    const int wide = has_weight(model_, "w_up") ? 2 : 1;
    ClosedWork work;
    work.matmul_flops =
        2.0 * (flops("q") + 2.0 * flops("k " + heads_) + flops("out_attn") + wide * flops("gate") +
               flops("out_ffn") + norms * statistics * flops("stat"));
    work.attention_flops = 4.0 * flops("scores");
    const double matrices = held("wq") + held("wo") + 2.0 * held("wk " + heads_) +
                            wide * held("w_gate") + held("w_out");
    const double vectors = norms * (has_weight(model_, "norm_bias") ? 2.0 : 1.0);
    work.weight_bytes = matrices * bytes_of(weight_row("wq")->wire(numerics_)) +
                        4.0 * vectors * static_cast<double>(model_.E);
    work.cache_bytes =
        2.0 * held("cache " + heads_) * bytes_of(value_row("k_cache")->wire(numerics_, model_));
    work.stream_bytes = value("BLE/XYZ") * activation_bytes();
    for (const auto& [name, times] : {std::pair<std::string, int>{"in", norms},
                                      {"stat", norms * statistics},
                                      {"q", 1},
                                      {"k " + heads_, 2},
                                      {"attn", 1},
                                      {"gate", wide},
                                      {"hidden", 1},
                                      {"out", outs},
                                      {"wq", 1},
                                      {"wo", 1},
                                      {"wk " + heads_, 2},
                                      {"w_gate", wide},
                                      {"w_out", 1}})
      move(name, times);
    work.traffic = std::move(sent_);
    return work;
  }

 private:
  /// Evaluates "BLE/XY": a product of extents over a product of axis sizes.
  double value(std::string_view formula) const {
    double product = 1.0;
    bool over = false;
    for (const char c : formula)
      if (c == '/')
        over = true;
      else if (!over)
        product *= static_cast<double>(extents_.at(c));
      else
        product /= torus_.size(Axes::parse(
            std::string(1, static_cast<char>(std::tolower(static_cast<unsigned char>(c))))));
    return product;
  }

  double flops(const std::string& of) const { return value(rows_.at("flops " + of)); }
  double held(const std::string& of) const { return value(rows_.at("held " + of)); }

  int activation_bytes() const { return bytes_of(value_row("out")->wire(numerics_, model_)); }
  int bytes(std::string_view of) const {
    if (of == "partial") return numerics_.wire == NumberFormat::bf16 ? 2 : 4;
    if (of == "activation") return activation_bytes();
    return of == "weight" ? bytes_of(weight_row("wq")->wire(numerics_)) : 4;
  }

  /// Adds a value's collectives, "all_gather yz BLE/X activation; ...": D(K−1)/K each, twice that
  /// for an all-reduce (paper A.1).
  void move(const std::string& name, int times) {
    const auto moves = rows_.find(name);
    if (moves == rows_.end() || moves->second == "nothing") return;
    for (const std::string_view one : split(moves->second, ";")) {
      const std::vector<std::string_view> words = split(one, " ");
      const OpKind kind = find_op(words.at(0))->kind;
      const auto arrow = words.at(1).find('>');
      const Axes from = Axes::parse(words[1].substr(0, arrow)), axes = long_axes(from, torus_);
      const double K = torus_.size(axes), D = times * value(words.at(2));
      double sent = D * (K - 1.0) / K;
      if (kind == OpKind::all_reduce) sent *= 2.0;
      if (kind == OpKind::permute_axes)
        sent = D * share_that_moves(from, Axes::parse(words[1].substr(arrow + 1)), torus_);
      if (sent == 0.0) continue;
      Sent& total = sent_[{kind, axes.to_string()}];
      total.elements += sent;
      total.bytes += sent * bytes(words.at(3));
    }
  }

  const Rows& rows_;
  const ModelConfig& model_;
  const Numerics& numerics_;
  const Torus& torus_;
  const std::string& heads_;
  std::map<char, std::int64_t> extents_;
  Totals sent_;
};

/// Returns the class name, in the text of forms, of how far K is divided. Keys sharded over the
/// batch count as "none" if the weights' axes of heads, zy, have one chip.
std::string class_of(const Rows& rows, std::int64_t K, const Torus& torus, bool to_batch) {
  const std::int64_t z = torus.size(Axis::z), yz = z * torus.size(Axis::y);
  if (rows.contains("k one") && K == 1) return "one";
  if (to_batch && yz == 1) return "none";
  if (K % torus.chips() == 0) return "all";
  if (yz > 1 && K % yz == 0) return "YZ";
  return z > 1 && K % z == 0 ? "Z" : "none";
}

Error does_not_hold(std::string_view table, const std::string& why) {
  return Error("closed_c2",
               fmt::format("the closed form of {} does not hold here: {}", table, why));
}

}  // namespace

Axes long_axes(const Axes& axes, const Torus& torus) {
  Axes kept;
  for (const Axis a : axes.sorted())
    if (torus.size(a) > 1) kept = kept.with(a);
  return kept;
}

std::vector<std::string> closed_tables() {
  std::vector<std::string> names;
  for (const Strategy& strategy : all_strategies())
    if (has_counts(rows_of(strategy.to_string()))) names.push_back(strategy.to_string());
  return names;
}

ClosedWork closed_form(std::string_view table, const ModelConfig& model, const Numerics& numerics,
                       const Torus& torus, const Pass& pass) {
  const Rows rows = rows_of(table);
  if (!has_counts(rows))
    throw Error("closed_c1", fmt::format("{} has no closed form; {} have", table,
                                         fmt::join(closed_tables(), ", ")));
  const Strategy strategy = Strategy::parse(table);
  require_legal(strategy, model, torus, pass.B);
  const int n = torus.chips();
  if (!table.starts_with("ws2d:few-heads") && model.H % n != 0)
    throw does_not_hold(table, fmt::format("H={} is not divisible by {} chips", model.H, n));
  const Layout& attend = strategy.table().find("attend")->steps[0].layout;
  if (!attend.axes('B').empty() && pass.B % n != 0)
    throw does_not_hold(table, fmt::format("B={} is not divisible by {} chips", pass.B, n));
  const bool one_or_all = rows.contains("k one");
  const std::string heads = class_of(
      rows, model.K, torus, !attend.axes('B').empty() && table.starts_with("ws2d:") && !one_or_all);
  if (one_or_all && heads != "one" && (heads != "all" || torus.size(Axis::x) == 1))
    throw does_not_hold(table, fmt::format("K={} is neither 1 nor divisible by {} chips with X "
                                           "above 1",
                                           model.K, n));
  const int xy = torus.size(Axis::x) * torus.size(Axis::y);
  if (table == "ws2d:few-heads-batch" && model.Q % xy != 0)
    throw does_not_hold(table, fmt::format("Q={} is not divisible by XY={}", model.Q, xy));
  return ClosedForm(rows, model, numerics, torus, pass, heads).work();
}

}  // namespace shardproof::cost
