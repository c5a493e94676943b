#include "engine/cost/paper/published.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>
#include <stdexcept>

#include "weights/base/detail/words.h"

namespace shardproof::cost {
namespace {

/// Returns the lines without comments; one that begins with blanks continues the one before.
std::vector<std::string> whole_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.empty() || line.starts_with('#')) continue;
    if (line.starts_with(' '))
      lines.back() += fmt::format(" {}", trim(line));
    else
      lines.emplace_back(line);
  }
  return lines;
}

/// What published.txt says.
struct Publication {
  std::vector<Torus> tori;
  std::vector<MeasuredPass> passes;
  std::vector<PublishedSection> sections;
  Settings with;  ///< of the rows that follow

  explicit Publication(std::string_view text) {
    for (const std::string& line : whole_lines(text)) read(line);
  }

  void read(std::string_view line) {
    const std::string_view kind = line.substr(0, line.find(' '));
    const std::vector<std::string_view> parts = split(line.substr(kind.size()), "|");
    const auto part = [&](std::size_t i) { return std::string(parts.at(i)); };
    if (kind == "tori") {
      for (const std::string_view torus : split(parts.at(0), " "))
        tori.push_back(Torus::parse(torus));
    } else if (kind == "with") {
      with = formula(part(0), {}).settings;
    } else if (kind == "pass") {
      passes.push_back({part(0), formula(part(1), {}).settings});
    } else if (kind == "section") {
      sections.push_back({part(0), part(1), {}, {}, {}});
      with = {};
    } else if (kind == "row") {
      add_row(part(0), part(1), part(2), formula(part(3), with));
    } else if (kind == "passes") {
      for (const MeasuredPass& pass : passes) {
        Settings settings = pass.settings;
        settings.set(with);
        add_row(pass.name, part(0), part(1), formula(part(2), settings));
      }
    } else if (kind == "why") {
      sections.back().reasons.push_back({part(0), part(1), part(2)});
    } else if (kind == "note") {
      PublishedNote& note = sections.back().notes.emplace_back(PublishedNote{part(0), {}});
      for (std::size_t i = 1; i < parts.size(); ++i) note.numbers.push_back(formula(part(i), with));
    } else {
      throw std::logic_error(fmt::format("published.txt: {}", line));
    }
  }

  void add_row(const std::string& what, const std::string& published, const std::string& verdict,
               Formula ours) {
    const std::string text =
        published.starts_with('$') ? ours.settings.text(published.substr(1)) : published;
    sections.back().rows.push_back({what, text, verdict, std::move(ours)});
  }

  /// Reads "QUANTITY NAME=VALUE ... [over QUANTITY NAME=VALUE ...]", with settings onto those `of`.
  Formula formula(const std::string& text, const Settings& of) const {
    Formula whole{"", of, "", {}};
    Formula* one = &whole;
    std::istringstream words(text);
    for (std::string word; words >> word;) {
      const auto equals = word.find('=');
      if (word == "over" || word == "plus") {
        whole.second = {whole};
        whole.join = word;
        one = &whole.second.front();
      } else if (equals == std::string::npos) {
        one->quantity = word;
      } else if (word.starts_with("pass=")) {
        one->settings.set(pass_named(word.substr(equals + 1)));
      } else {
        one->settings.set(word.substr(0, equals), word.substr(equals + 1));
      }
    }
    return whole;
  }

  const Settings& pass_named(std::string name) const {
    std::replace(name.begin(), name.end(), '_', ' ');
    for (const MeasuredPass& pass : passes)
      if (pass.name == name) return pass.settings;
    throw std::logic_error(fmt::format("published.txt has no pass {}", name));
  }
};

const Publication& publication() {
  static const Publication all(published_text());
  return all;
}

double number_of(std::string_view text) {
  double number = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    throw std::logic_error(fmt::format("published.txt: {} is not a number", text));
  return number;
}

}  // namespace

double Printed::value() const { return number_of(text); }

int Printed::decimals() const {
  const auto point = text.find('.');
  return point == std::string_view::npos ? 0 : static_cast<int>(text.size() - point - 1);
}

double Printed::half_unit() const { return 0.5 / std::pow(10.0, decimals()); }

void Settings::set(std::string_view name, std::string value) {
  values_.insert_or_assign(std::string(name), std::move(value));
}
void Settings::set(const Settings& other) {
  for (const auto& [name, value] : other.values_) set(name, value);
}

std::string Settings::text(std::string_view name) const {
  if (const auto found = values_.find(name); found != values_.end()) return found->second;
  if (name != "ffn") throw std::logic_error(fmt::format("published.txt: {} is missing", name));
  const std::string strategy = text("strategy");
  return strategy.substr(0, strategy.find(':'));
}

double Settings::number(std::string_view name) const { return number_of(text(name)); }
double Settings::number(std::string_view name, double otherwise) const {
  return has(name) ? number(name) : otherwise;
}
std::int64_t Settings::count(std::string_view name, std::int64_t otherwise) const {
  return static_cast<std::int64_t>(number(name, static_cast<double>(otherwise)));
}

ModelConfig Settings::model() const { return parse_model(text(has("run") ? "run" : "model")); }
Torus Settings::torus() const {
  return has("torus") ? Torus::parse(text("torus")) : released_torus(count("chips", 0));
}
Strategy Settings::strategy() const { return Strategy::parse(text("strategy")); }
NumberFormat Settings::weights() const { return parse_weight_format(text("weights")); }

Pass Settings::pass() const {
  const std::int64_t B = count("B", 1), context = count("context", kMeasuredContext);
  const std::int64_t cached = count("M", 0);
  if (text("phase") == "prefill") return {Phase::prefill, B, context - cached, cached};
  return {Phase::decode, B, 1, context - 1 - count("steps", 1) / 2};
}

const std::vector<MeasuredPass>& tables_2_and_3() { return publication().passes; }
const std::vector<PublishedSection>& published_sections() { return publication().sections; }

Torus released_torus(std::int64_t chips) {
  std::string legal;
  for (const Torus& torus : publication().tori) {
    if (torus.chips() == chips) return torus;
    legal += fmt::format(" {}", torus.chips());
  }
  throw Error("published_c1",
              fmt::format("the released code has no torus of {} chips; legal:{}", chips, legal));
}

}  // namespace shardproof::cost
