// That a map names what a text has.
#include <fmt/format.h>

#include <set>

#include "weights/base/nearest.h"
#include "weights/maps/model_map.h"

namespace shardproof {
namespace {

using Names = std::set<std::string, std::less<>>;

class NameCheck {
 public:
  NameCheck(const ModelMap& map, const ModelText& text) : map_(map), text_(text) {
    for (const TextDim& dim : text.dims) letters_ += dim.letter;
    for (const TextSection section : kTextSections) {
      for (const TextWeight& weight : text.section(section).weights) weights_.insert(weight.name);
      for (const TextLine& line : text.section(section).lines) values_.insert(line.name);
    }
  }

  void check() const {
    Names known = weights_;
    known.insert("layers");
    for (const TextDim& dim : text_.dims) known.emplace(1, dim.letter);
    for (const TextNumber& number : text_.numbers) known.insert(number.name);
    for (const TextFlag& flag : text_.flags) known.insert(flag.name);
    for (const ModelMap::Setting& setting : map_.settings)
      require(setting.line, setting.name, known, "extent, number, flag or weight");
    for (const ModelMap::Source& source : map_.sources) {
      require(source.line, source.weight, weights_, "weight");
      require_letters(source.line, source.pattern, letters_);
    }
    for (const ModelMap::Module& module : map_.modules) {
      require(module.line, module.value, values_, "value");
      require_letters(module.line, module.pattern, letters_ + std::string(kGivenLetters));
    }
  }

 private:
  void require(int line, const std::string& name, const Names& known, std::string_view what) const {
    if (known.contains(name)) return;
    const std::string near = nearest(name, {known.begin(), known.end()});
    throw Error(
        "model_map_c1",
        fmt::format("{}{}: the text {} has no such {}{}", map_.where(line), name, text_.name, what,
                    near.empty() ? "" : fmt::format("; did you mean {}?", near)));
  }

  void require_letters(int line, const TensorPattern& pattern, std::string_view known) const {
    for (const char letter : pattern.letters())
      if (known.find(letter) == std::string_view::npos)
        throw Error("model_map_c1",
                    fmt::format("{}{}: the text {} has no letter {}", map_.where(line),
                                pattern.text, text_.name, letter));
  }

  const ModelMap& map_;
  const ModelText& text_;
  std::string letters_;
  Names weights_, values_;
};

}  // namespace

void require_names(const ModelMap& map, const ModelText& text) { NameCheck(map, text).check(); }

}  // namespace shardproof
