// Every value of a few small runs, against what another program makes of docs/field.md section 1:
// tests/data/field_values.txt is what tests/oracle/field/model.py prints.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "oracle/field/answer.h"
#include "oracle/field/detail/philox.h"

namespace shardproof::oracle::field {
namespace {

struct Case {
  std::string words;
  std::map<std::string, std::string> digests;  // by id
};

std::vector<Case> cases() {
  std::vector<Case> all;
  std::ifstream file(SHARDPROOF_SOURCE "/tests/data/field_values.txt");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("case"))
      all.push_back({line.substr(4), {}});
    else
      all.back().digests[line.substr(0, line.find(' '))] = line.substr(line.find(' ') + 1);
  }
  return all;
}

Request request_of(const std::string& words) {
  Request r;
  Block block = Block::parallel;
  std::map<std::string, std::string> keys{
      {"layers", "2"}, {"E", "6"}, {"F", "5"},  {"H", "4"},
      {"K", "2"},      {"Q", "4"}, {"V", "12"}, {"logit_scale", "0.5"}};
  r.setting.seed = 1;
  std::istringstream in(words);
  for (std::string word; in >> word;) {
    const std::string key = word.substr(0, word.find('='));
    const std::string value = word.substr(word.find('=') + 1);
    if (key == "block")
      block = parse_block(value);
    else if (key == "weights")
      r.weights = parse_weight_format(value);
    else if (key == "act")
      r.act = parse_act_format(value);
    else if (key == "seed")
      r.setting.seed = std::stoull(value);
    else if (key == "bits")
      r.setting.bits = std::stoi(value);
    else if (key == "lanes")
      r.setting.lanes = std::stoi(value);
    else if (key == "draw")
      r.setting.draw = std::stoi(value);
    else
      keys[key] = value;
  }
  std::string model = "palm-tiny,positions=8";
  for (const auto& [key, value] : keys) model += "," + key + "=" + value;
  r.config = parse_model(model);
  r.config.block = block;
  r.ids = IntTensor({2, 4});
  r.ids.data = {5, 0, 11, 3, 7, 2, 1, 8};
  r.passes = Passes(2, 3, 2, 2);
  return r;
}

std::string digest(const Tensor& t, int lanes) {
  std::string text;
  for (const Number& n : t.data)
    for (std::size_t j = 0; j < static_cast<std::size_t>(lanes); ++j)
      text += fmt::format("{}{:x}", text.empty() ? "" : " ", n.lane[j]);
  return fmt::format("{:016x}", fnv1a64(text));
}

/// All that the oracle files under an id of the file.
std::map<std::string, Tensor> values(const Answer& answer) {
  std::map<std::string, Tensor> all = answer.checkpoints;
  all.insert(answer.stats.begin(), answer.stats.end());
  for (const auto& [pass, logits] : answer.hashed_logits) {
    all[pass + ".candidates"] = answer.candidates(pass, 2);
    all[pass + ".indices"] = answer.indices(pass, 2);
  }
  return all;
}

TEST(FieldValues, AreThoseOfTheOtherProgram) {
  const std::vector<Case> all = cases();
  ASSERT_EQ(all.size(), 8U);
  std::size_t compared = 0;
  for (const Case& c : all) {
    std::map<std::string, std::string> digests;
    const Request request = request_of(c.words);
    for (const auto& [id, value] : values(run(request)))
      digests[id] = digest(value, request.setting.lanes);
    std::set<std::string> different;
    for (const auto& [id, text] : c.digests) {
      ++compared;
      if (!digests.contains(id) || digests[id] != text) different.insert(id);
      digests.erase(id);
    }
    for (const auto& [id, text] : digests) different.insert(id + " (not of the other)");
    std::string list;
    for (const std::string& id : different) list += "\n  " + id;
    EXPECT_TRUE(different.empty()) << "case" << c.words << list;
  }
  EXPECT_GT(compared, 800U);
}

}  // namespace
}  // namespace shardproof::oracle::field
