#include "tools/runner/case_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

namespace shardproof::tools {

std::string shell_word(const std::string& text) {
  const auto plain = [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("/._-+=:,@").find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (std::all_of(text.begin(), text.end(), plain)) return text;
  std::string quoted = "'";
  for (char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

const std::string* LayerFileNames::of_prefill() const {
  if (program) return &*program;
  return program_prefill ? &*program_prefill : nullptr;
}

const std::string* LayerFileNames::of_decode() const {
  if (program) return &*program;
  return program_decode ? &*program_decode : nullptr;
}

std::vector<std::pair<std::string, std::string>> LayerFileNames::members() const {
  std::vector<std::pair<std::string, std::string>> given;
  for (const auto& [member, file] : {std::pair{"layouts", &layouts},
                                     {"program", &program},
                                     {"program_prefill", &program_prefill},
                                     {"program_decode", &program_decode}})
    if (*file) given.emplace_back(member, **file);
  return given;
}

std::string LayerFileNames::words() const {
  std::string text;
  for (const auto& [flag, file] : {std::pair{"layouts", &layouts},
                                   {"program", &program},
                                   {"program-prefill", &program_prefill},
                                   {"program-decode", &program_decode}})
    if (*file) text += fmt::format(" --{} {}", flag, shell_word(**file));
  return text;
}

std::string CaseSource::command(const Case& c) const {
  std::string text = "shardproof verify" + files.words();
  if (!weights.empty()) text += " --weights " + shell_word(weights);
  if (alone) text += " --hazards full";
  return text + fmt::format(" --case \"{}\"", print_case(c));
}

std::pair<std::string, std::string> CaseSource::phases(const Case& c) const {
  const std::string* prefill = files.of_prefill();
  const std::string* decode = files.of_decode();
  if (decode == nullptr && prefill != nullptr && c.gen == 1) return {*prefill, "-"};
  return {prefill != nullptr ? *prefill : c.prefill.to_string(),
          decode != nullptr ? *decode : c.decode.to_string()};
}

}  // namespace shardproof::tools
