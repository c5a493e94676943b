// What published.txt compares with: the choices by name.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "engine/cost/paper/detail/comparison_rows.h"
#include "weights/base/detail/words.h"

namespace shardproof::cost {
namespace {

struct Question {
  const PublishedRow& row;
  const std::vector<KnownRow>& known;
  const Efficiency& efficiency;

  std::string text(std::string_view name) const { return row.ours.settings.text(name); }
  /// Returns the rows of `name`: "64 chips, 2D" is one of 2D.
  std::vector<KnownRow> rows_of(std::string_view name) const {
    std::vector<KnownRow> rows;
    for (const KnownRow& one : known)
      if (one.row->what.ends_with(fmt::format(", {}", name))) rows.push_back(one);
    return rows;
  }
};

/// What is chosen among, with its numbers.
struct Alternative {
  std::string_view name;
  double published, ours;
};

/// Returns the names of the least, "ws2d wg-x" if both are.
std::string least(const std::vector<Alternative>& all, double Alternative::*number) {
  double least = std::numeric_limits<double>::infinity();
  for (const Alternative& one : all) least = std::min(least, one.*number);
  std::string names;
  for (const Alternative& one : all)
    if (one.*number == least) names += fmt::format("{}{}", names.empty() ? "" : " ", one.name);
  return names;
}

/// The least of the rows that are named as this one, "64 chips, faster": "64 chips, 2D" for 2D; or
/// of the rows that have those names.
ComparedChoice least_of(const Question& q) {
  const std::string names = q.text("of"), group = q.row.what.substr(0, q.row.what.find(", "));
  std::vector<Alternative> all;
  for (const std::string_view name : split(names, ","))
    for (const KnownRow& one : q.known)
      if (one.row->what == name || one.row->what == fmt::format("{}, {}", group, name))
        all.push_back({name, one.published, one.ours});
  return {q.row.published == "=" ? least(all, &Alternative::published) : q.row.published,
          least(all, &Alternative::ours),
          {}};
}

/// The two consecutive sizes between which a property begins to hold.
struct Change {
  double before = 0.0, after = 0.0;

  void add(double size, bool holds) {
    if (after == 0.0) (holds ? after : before) = size;
  }
  std::string to_string() const { return fmt::format("{:.0f}-{:.0f}", before, after); }
};

/// The tokens between which the rows of the second name come above those of the first: by the
/// numbers, or, of two layouts, by their crossover.
ComparedChoice overtakes(const Question& q) {
  const std::string names = q.text("of");
  const std::vector<std::string_view> two = split(names, ",");
  const std::vector<KnownRow> first = q.rows_of(two.at(0)), second = q.rows_of(two.at(1));
  const bool by_volume = q.row.ours.settings.has("below");
  Change published, ours;
  for (std::size_t i = 0; i < first.size(); ++i) {
    const double tokens = first[i].row->ours.settings.pass().tokens();
    published.add(tokens, second.at(i).published > first[i].published);
    ours.add(tokens,
             by_volume ? tokens > value_of({"crossover", q.row.ours.settings, "", {}}, q.efficiency)
                       : second[i].ours > first[i].ours);
  }
  return {published.to_string(), ours.to_string(), {}};
}

/// The value of a setting at which a quantity is the least; the published one if others are equal.
ComparedChoice least_at(const Question& q) {
  const std::string setting = q.text("setting"), among = q.text("among");
  const auto at = [&](std::string_view value) {
    Formula formula{q.text("quantity"), q.row.ours.settings, "", {}};
    formula.settings.set(setting, std::string(value));
    return value_of(formula, q.efficiency);
  };
  const double published = at(q.row.published);
  std::pair<std::string, double> ours{q.row.published, published};
  for (const std::string_view value : split(among, ","))
    if (const double number = at(value); number < ours.second) ours = {std::string(value), number};
  return {q.row.published, ours.first, {ours.second, published}};
}

struct ChoiceMaker {
  std::string_view name;
  ComparedChoice (*choose)(const Question&);
};
constexpr ChoiceMaker kChoices[] = {
    {"least", least_of}, {"overtakes", overtakes}, {"least_at", least_at}};

}  // namespace

ComparedChoice choice_of(const PublishedRow& row, const std::vector<KnownRow>& known,
                         const Efficiency& efficiency) {
  for (const ChoiceMaker& one : kChoices)
    if (one.name == row.ours.quantity) return one.choose({row, known, efficiency});
  throw std::logic_error(fmt::format("published.txt: {} is not a choice", row.ours.quantity));
}

}  // namespace shardproof::cost
