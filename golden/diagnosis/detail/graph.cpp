#include "golden/diagnosis/detail/graph.h"

#include <algorithm>

#include "weights/text/rules.h"
#include "weights/text/writer.h"

namespace shardproof::diagnosis {
namespace {

ModelConfig config_of_text(const Weights& weights) {
  if (text_model(weights.config()) != nullptr) return weights.config();
  return model_config(std::make_shared<const TextModel>(
      parse_model_text(text_of_model(weights.config(), weights.stored_type())), TextKeys(), ""));
}

}  // namespace

Graph::Graph(const Weights& weights)
    : of_keys_(text_model(weights.config()) == nullptr),
      config_(config_of_text(weights)),
      lines_(std::make_unique<const bounds::TextLines>(config_)),
      positional_{"pos", "slot"},
      composites_(composites_of(weights.config(), weights.stored_type())) {
  for (const TextLine& line : lines_->text().section(TextSection::embedding).lines) {
    const std::vector<std::string> reads = reads_of(lines_->text(), line).now;
    if (std::all_of(reads.begin(), reads.end(), [&](const std::string& name) {
          return positional(name) || model().weight(name) != nullptr;
        }))
      positional_.insert(line.name);
  }
}

bool Graph::heads(char letter) const {
  const TextDim* const dim = lines_->text().dim(letter);
  return dim != nullptr && dim->words.find("heads") != std::string::npos;
}

bool Graph::groups() const {
  const TextDim* const dim = lines_->text().dim('G');
  return heads('H') && heads('K') && dim != nullptr && dim->formula &&
         dim->formula->to_string() == "H // K";
}

std::set<std::string> Graph::indicators(const TextLine& line, std::int64_t layer) const {
  std::set<std::string> all;
  if (!line.where.empty()) all.insert(line.where);
  const Expression& e = line.expression;
  if (e.kind == Expression::Kind::call &&
      (e.op == ModelOp::append || e.op == ModelOp::gather || e.terms.size() > 1))
    return all;
  for (const std::string& read : reads_of(lines_->text(), line).now)
    if (const TextLine* const operand = lines_->line_of({"", layer, read}))
      for (const std::string& indicator : indicators(*operand, layer)) {
        const std::string& letters = lines_->line_of({"", layer, indicator})->letters;
        if (letters.find_first_not_of(line.letters) == std::string::npos) all.insert(indicator);
      }
  return all;
}

}  // namespace shardproof::diagnosis
