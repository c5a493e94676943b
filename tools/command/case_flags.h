#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/run/case.h"
#include "weights/storage/weights.h"

namespace shardproof::tools {

/// The flags of a verb that runs a case: every key of a case line, and `--weights FILE`.
class CaseFlags {
 public:
  /// Adds a flag for each key but those in `except`. The object must outlive the parsing.
  /// `instead` replaces the help text of some keys, where the verb's defaults differ.
  void add_to(CLI::App& verb, const std::vector<std::string>& except = {},
              const std::map<std::string, std::string>& instead = {});

  bool given() const { return !values_.empty() || !weights_flag_.empty(); }
  bool has(const std::string& key) const { return values_.contains(key); }
  /// "--top-p" of the key top_p.
  static std::string flag_of(std::string key);
  /// Whether any flag but a weights file was given.
  bool names_a_case() const { return !values_.empty(); }
  /// Whether a flag or the case line names the key.
  bool has(const std::string& key, const std::string& line) const;
  /// Whether any flag but `--KEY` was given.
  bool given_besides(const std::string& key) const {
    return weights_file_ || values_.size() > values_.count(key);
  }
  void set_default(const std::string& key, const std::string& value);
  /// Strategies of the user's own, which a case may name beside those that ship.
  void know(std::vector<Strategy> own) { own_ = std::move(own); }

  /// The case that `line` (may be empty) and the flags describe together; a key in both is an
  /// error, as is a model other than that of the weights file. A file of int8 weights fixes
  /// weights=int8: Error("weights_int8", ...) on another.
  Case parse(const std::string& line = "") const;

  /// The weights file's content, if --weights names one; read once, by load(), which throws what
  /// load_weights throws, and Error("weights_flag", ...) if --weights names two files or types.
  const Weights* weights() const { return weights_ ? &*weights_ : nullptr; }
  void load();
  /// Its path, or "".
  std::string weights_file() const { return weights_file_.value_or(""); }

 private:
  std::map<std::string, std::string> values_;
  std::vector<std::string> weights_flag_;
  std::optional<std::string> weights_file_;
  std::optional<Weights> weights_;
  std::vector<Strategy> own_;
};

/// "Strategies: ws1d:heads, ..." of all that ship, for the help of a verb.
std::string strategies_text();

/// How many threads --threads stands for: `asked`, or the machine's where it is 0.
/// Throws Error("threads_c1", ...) on a negative or absurd number.
int thread_count(int asked);

}  // namespace shardproof::tools
