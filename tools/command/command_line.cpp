#include "tools/command/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "weights/base/error.h"
#include "weights/model/model_config.h"

namespace shardproof::tools {
namespace {

/// Flags of other programs, and what replaces them here.
const std::map<std::string, std::string>& other_names() {
  static const std::map<std::string, std::string> all{{"--strategy", "--prefill and --decode"},
                                                      {"--mesh", "--torus"},
                                                      {"--topology", "--torus"},
                                                      {"--layers", "--model palm-tiny,layers=N"},
                                                      {"--dtype", "--act and --weights"},
                                                      {"--verbose", "--json"}};
  return all;
}

std::string path_of(const CLI::App& verb) {
  return verb.get_parent() == nullptr ? verb.get_name()
                                      : path_of(*verb.get_parent()) + " " + verb.get_name();
}

/// Returns the verb's name in messages, "weights generate"; the program's if there is no verb yet.
std::string title_of(const CLI::App& verb) {
  const std::string path = path_of(verb);
  const auto space = path.find(' ');
  return space == std::string::npos ? path : path.substr(space + 1);
}

/// Truncates a word for a message, so that the rest of the line survives a long one.
std::string shown(const std::string& word) {
  constexpr std::size_t kLongest = 60;
  return word.size() <= kLongest ? word : word.substr(0, kLongest) + "...";
}

std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  return names;
}

std::string name_of(const CLI::Option& option) {
  const std::vector<std::string> names = names_of(option);
  if (names.empty()) return option.get_name(true);
  // Prefers the longest name: --help for "-h,--help".
  return *std::max_element(names.begin(), names.end(),
                           [](const auto& a, const auto& b) { return a.size() < b.size(); });
}

/// Returns the option's help text on one line.
std::string meaning_of(const CLI::Option& option) {
  std::string text = option.get_description();
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }
bool needs_value(const CLI::Option& option) { return option.get_items_expected_min() > 0; }
bool takes_several(const CLI::Option& option) { return option.get_items_expected_max() > 1; }

std::vector<const CLI::App*> verbs_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<std::string> verb_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : verbs_of(app)) names.push_back(verb->get_name());
  return names;
}

std::string did_you_mean(const std::string& word, const std::vector<std::string>& legal) {
  const std::string near = nearest(word, legal);
  return near.empty() ? "" : fmt::format(", did you mean {}?", near);
}

/// Reads the words in order, and tracks the current verb.
class Reader {
 public:
  Reader(const CLI::App& app, const std::vector<std::string>& words) : at_(&app), words_(words) {}

  void read() {
    bool only_words = false;
    for (; next_ < words_.size(); ++next_) {
      const std::string& word = words_[next_];
      if (!only_words && word == "--" && verbs_of(*at_).empty())
        only_words = true;
      else if (!only_words && word.size() > 1 && word[0] == '-')
        flag(word);
      else
        plain(word);
    }
    if (!help_) complete();
  }

 private:
  [[noreturn]] void refuse(std::string_view label, const std::string& message) const {
    throw Error(label, fmt::format("{} ({})", message, help_of(*at_)));
  }

  const CLI::Option* find(const CLI::App& verb, const std::string& name) const {
    for (const CLI::Option* option : verb.get_options()) {
      const std::vector<std::string> names = names_of(*option);
      if (std::find(names.begin(), names.end(), name) != names.end()) return option;
    }
    return nullptr;
  }

  std::vector<std::string> flags() const {
    std::vector<std::string> all;
    for (const CLI::Option* option : at_->get_options())
      for (const std::string& name : names_of(*option)) all.push_back(name);
    return all;
  }

  /// Returns the verbs that have the flag `name`.
  std::vector<std::string> verbs_with(const std::string& name) const {
    const CLI::App* root = at_;
    while (root->get_parent() != nullptr) root = root->get_parent();
    std::vector<std::string> titles;
    for (const CLI::App* verb : verbs_of(*root)) {
      if (find(*verb, name) != nullptr) titles.push_back(title_of(*verb));
      for (const CLI::App* sub : verbs_of(*verb))
        if (find(*sub, name) != nullptr) titles.push_back(title_of(*sub));
    }
    return titles;
  }

  [[noreturn]] void unknown_flag(const std::string& name) const {
    std::string hint;
    if (const auto other = other_names().find(name); other != other_names().end())
      hint = fmt::format(", did you mean {}?", other->second);
    else
      hint = did_you_mean(name, flags());
    if (const auto elsewhere = verbs_with(name); hint.empty() && !elsewhere.empty())
      hint = fmt::format("; it is one of {}", fmt::join(elsewhere, ", "));
    if (!verbs_of(*at_).empty() && !verbs_with(name).empty())
      refuse("verb_c1", fmt::format("{} is written before the verb; write shardproof {} {} ...",
                                    shown(name), verbs_with(name).front(), shown(name)));
    refuse("flag_c1", fmt::format("{} has no flag {}{}", title_of(*at_), shown(name), hint));
  }

  void flag(const std::string& word) {
    const auto equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const CLI::Option* option = find(*at_, name);
    if (option == nullptr) unknown_flag(name);
    if (++given_[option] > 1 && !takes_several(*option))
      refuse("flag_c4", fmt::format("{} is given twice", name));
    if (option == at_->get_help_ptr() || name == "--version") help_ = true;
    if (!takes_value(*option)) {
      if (equals != std::string::npos)
        refuse("flag_c2", fmt::format("{} takes no value, but is given {}", name,
                                      shown(word.substr(equals + 1))));
      return;
    }
    std::string value;
    if (equals != std::string::npos) {
      value = word.substr(equals + 1);
    } else if (!needs_value(*option) &&
               (next_ + 1 == words_.size() || words_[next_ + 1].starts_with("-"))) {
      return;
    } else if (next_ + 1 == words_.size() || is_flag(words_[next_ + 1])) {
      refuse("flag_c2", fmt::format("{} needs a value: {}", name, meaning_of(*option)));
    } else {
      value = words_[++next_];
    }
    if (value.find_first_not_of(" \t\r\n") == std::string::npos)
      refuse("flag_c2", fmt::format("the value of {} is empty: {}", name, meaning_of(*option)));
  }

  /// Returns whether a word is a flag and not a value. A value that begins with two dashes must be
  /// written --flag=VALUE.
  bool is_flag(const std::string& word) const {
    return word.starts_with("--") || find(*at_, word) != nullptr;
  }

  void plain(const std::string& word) {
    if (const std::vector<const CLI::App*> verbs = verbs_of(*at_); !verbs.empty()) {
      const auto verb = std::find_if(verbs.begin(), verbs.end(),
                                     [&](const CLI::App* one) { return one->get_name() == word; });
      if (verb == verbs.end())
        refuse("verb_c2", fmt::format("{} has no verb '{}'{} (legal: {})", title_of(*at_),
                                      shown(word), did_you_mean(word, verb_names(*at_)),
                                      fmt::join(verb_names(*at_), ", ")));
      at_ = *verb;
      return;
    }
    for (const CLI::Option* option : at_->get_options()) {
      if (!option->get_positional() || given_.contains(option)) continue;
      if (word.find_first_not_of(" \t\r\n") == std::string::npos)
        refuse("flag_c2", fmt::format("{} is empty", option->get_name(true)));
      ++given_[option];
      return;
    }
    std::string hint;
    const auto equals = word.find('=');
    std::string as_flag = "--" + word.substr(0, equals);
    std::replace(as_flag.begin(), as_flag.end(), '_', '-');  // keys of case lines have underscores
    if (find(*at_, as_flag) != nullptr)
      hint = fmt::format(", did you mean {}{}?", as_flag,
                         equals == std::string::npos ? "" : " " + shown(word.substr(equals + 1)));
    refuse("flag_c5", fmt::format("{} takes no word '{}'{}", title_of(*at_), shown(word), hint));
  }

  /// Checks that everything required was given, and what a flag needs, and no two exclusive flags.
  void complete() const {
    if (!verbs_of(*at_).empty())
      refuse("verb_c1",
             fmt::format("{} needs a verb: {}", title_of(*at_), fmt::join(verb_names(*at_), ", ")));
    for (const CLI::Option* option : at_->get_options()) {
      if (option->get_required() && !given_.contains(option)) {
        refuse("flag_c7", fmt::format("{} needs {}: {}", title_of(*at_), name_of(*option),
                                      meaning_of(*option)));
      }
      if (!given_.contains(option)) continue;
      for (const CLI::Option* other : option->get_needs())
        if (!given_.contains(other))
          refuse("flag_c7", fmt::format("{} needs {}: {}", name_of(*option), name_of(*other),
                                        meaning_of(*other)));
      for (const CLI::Option* other : option->get_excludes())
        if (given_.contains(other))
          refuse("flag_c6",
                 fmt::format("{} and {} exclude each other", name_of(*option), name_of(*other)));
    }
  }

  const CLI::App* at_;
  const std::vector<std::string>& words_;
  std::size_t next_ = 0;
  std::map<const CLI::Option*, int> given_;
  bool help_ = false;
};

}  // namespace

void check_command_line(const CLI::App& app, const std::vector<std::string>& words) {
  Reader(app, words).read();
}

std::string help_of(const CLI::App& verb) { return fmt::format("see {} --help", path_of(verb)); }

std::int64_t whole_number(const CLI::App& verb, std::string_view flag, const std::string& text,
                          std::int64_t least, std::int64_t most) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc::result_out_of_range ||
      (error == std::errc() && at == end && (value < least || value > most)))
    throw Error("flag_c3", fmt::format("{} {}: from {} to {} ({})", flag, shown(text), least, most,
                                       help_of(verb)));
  if (error != std::errc() || at != end)
    throw Error("flag_c3", fmt::format("{} {}: an integer is expected ({})", flag, shown(text),
                                       help_of(verb)));
  return value;
}

double decimal_number(const CLI::App& verb, std::string_view flag, const std::string& text) {
  double value = 0.0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || at != end || !std::isfinite(value))
    throw Error("flag_c8", fmt::format("{} {}: a decimal number is expected ({})", flag,
                                       shown(text), help_of(verb)));
  return value;
}

}  // namespace shardproof::tools
