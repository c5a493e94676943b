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
  /// Adds a flag for each key not in `except`. The object must outlive the parsing. `instead`
  /// replaces the help text of keys whose defaults differ for this verb.
  void add_to(CLI::App& verb, const std::vector<std::string>& except = {},
              const std::map<std::string, std::string>& instead = {});

  bool given() const { return !values_.empty() || !weights_flag_.empty(); }
  bool has(const std::string& key) const { return values_.contains(key); }
  /// Returns the flag of a key: "--top-p" for top_p.
  static std::string flag_of(std::string key);
  /// Returns whether any flag except --weights FILE was given.
  bool names_a_case() const { return !values_.empty(); }
  /// Returns whether a flag or the case line sets the key.
  bool has(const std::string& key, const std::string& line) const;
  /// Returns whether any flag except `--KEY` was given.
  bool given_besides(const std::string& key) const {
    return weights_file_ || values_.size() > values_.count(key);
  }
  void set_default(const std::string& key, const std::string& value);
  /// Registers the user's strategies, which a case may name besides the shipped ones.
  void know(std::vector<Strategy> own) { own_ = std::move(own); }

  /// Returns the case that `line` (may be empty) and the flags describe together. Throws if both
  /// set a key, or if the model differs from the weights file's. A file of int8 weights implies
  /// weights=int8: Error("weights_int8", ...) for another type.
  Case parse(const std::string& line = "") const;

  /// Returns the content of the --weights file, or null. load() reads it once and throws what
  /// load_weights throws, and Error("weights_flag", ...) if --weights names two files or types.
  const Weights* weights() const { return weights_ ? &*weights_ : nullptr; }
  void load();
  /// Returns the path of the --weights file, or "".
  std::string weights_file() const { return weights_file_.value_or(""); }

 private:
  std::map<std::string, std::string> values_;
  std::vector<std::string> weights_flag_;
  std::optional<std::string> weights_file_;
  std::optional<Weights> weights_;
  std::vector<Strategy> own_;
};

/// Lists all shipped strategies for a verb's help: "Strategies: ws1d:heads, ...".
std::string strategies_text();

/// Returns the number of threads for --threads: `asked`, or the machine's if it is 0. Throws
/// Error("threads_c1", ...) on a negative or absurd number.
int thread_count(int asked);

}  // namespace shardproof::tools
