// The 32 mutants, as mutants.txt has them.
#include <gtest/gtest.h>

#include <map>
#include <sstream>
#include <stdexcept>

#include "tests/golden/text_file.h"
#include "tests/golden/verify/field/mutant_plants.h"

namespace shardproof {
namespace {

using Arguments = std::vector<std::string>;

plants::Hooks hooks_of(const std::string& name, Arguments all) {
  for (std::string& one : all)
    if (one == "-") one.clear();
  const auto first = [&](std::size_t count) {
    return Arguments(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count));
  };
  const auto at = [&](std::size_t i) { return all.at(i); };
  if (name == "reduced_again") return plants::reduced_again(at(0), at(1));
  if (name == "stored_as_order")
    return plants::stored_as_order(first(all.size() - 2), at(all.size() - 2)[0], all.back());
  if (name == "appended_at") return plants::appended_at(std::stoi(at(0)), at(1));
  if (name == "rotated_at") return plants::rotated_at(std::stoi(at(0)), at(1));
  if (name == "gathered_reversed") return plants::gathered_reversed(all);
  if (name == "relabelled") return plants::relabelled(at(0), at(1));
  const std::map<std::string, plants::Hooks (*)()> others{
      {"local_norms", plants::local_norms},
      {"tiled_kv_heads", plants::tiled_kv_heads},
      {"unmasked_lookup", plants::unmasked_lookup},
      {"ids_without_offset", plants::ids_without_offset},
      {"ring_of_other_direction", plants::ring_of_other_direction},
      {"gathered_as_arrived", plants::gathered_as_arrived},
      {"one_partial_sum_lost", plants::one_partial_sum_lost}};
  return others.at(name)();
}

std::pair<std::string, std::string> edit_of(std::string text) {
  for (auto at = text.find("\\n"); at != std::string::npos; at = text.find("\\n"))
    text.replace(at, 2, "\n");
  const auto arrow = text.find(" =>");
  if (arrow == std::string::npos) throw std::invalid_argument("mutants.txt: no arrow: " + text);
  return {text.substr(0, arrow), text.substr(std::min(arrow + 4, text.size()))};
}

/// Takes the next word of a line.
std::string word_of(std::string& line) {
  const std::string word = line.substr(0, line.find(' '));
  line.erase(0, word.size() + 1);
  return word;
}

void add_line(Mutant& mutant, const std::string& key, std::string rest) {
  if (key == "case") {
    mutant.line = rest;
  } else if (key == "refused") {
    mutant.refused.push_back(edit_of(rest));
  } else if (key == "planted") {
    mutant.planted.push_back(edit_of(rest));
  } else if (key == "seen") {
    const std::string by = word_of(rest);
    if (by != "field" && by != "index") throw std::invalid_argument("mutants.txt: seen " + by);
    mutant.by = by == "field" ? SeenBy::field : SeenBy::index;
    mutant.at = rest;
  } else if (key == "silent") {
    mutant.at = word_of(rest);
    if (mutant.at == "-") mutant.at.clear();
    mutant.silent = rest;
  } else if (key == "hook") {
    const std::string name = word_of(rest);
    Arguments arguments;
    while (!rest.empty()) arguments.push_back(word_of(rest));
    mutant.hooks = hooks_of(name, arguments);
  } else {
    throw std::invalid_argument("mutants.txt: " + key);
  }
}

}  // namespace

std::vector<Mutant> read_mutants(const std::string& text) {
  std::vector<Mutant> list;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::string key = word_of(line);
    if (key == "mutant") {
      const auto colon = line.find(": ");
      if (colon == std::string::npos) throw std::invalid_argument("mutants.txt: mutant " + line);
      list.push_back({.number = line.substr(0, colon), .what = line.substr(colon + 2)});
    } else if (list.empty()) {
      throw std::invalid_argument("mutants.txt: " + key + " before the first mutant");
    } else {
      add_line(list.back(), key, line);
    }
  }
  return list;
}

const std::vector<Mutant>& all_mutants() {
  static const std::vector<Mutant> all =
      read_mutants(text_of_file("tests/golden/verify/field/mutants.txt"));
  return all;
}

}  // namespace shardproof
