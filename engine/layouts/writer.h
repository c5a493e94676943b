#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/layouts/way.h"
#include "engine/program/program.h"
#include "weights/model_config.h"
#include "weights/numerics.h"

namespace shardproof {

/// What the dims of a phase's values must be divisible by their subscripts with: of L, which
/// differs from pass to pass, the greatest common divisor.
using Extents = std::map<char, std::int64_t>;
Extents extents_of(const ModelConfig& config, std::int64_t batch, std::int64_t L);

/// A program being written op by op. A step's name is that of the value it moves, with a letter for
/// what was done: `xg` gathered, `qr` reduce-scattered, `sa` all-reduced, `qt` by all_to_all, `kp`
/// permuted, `xs` sliced; a number behind it where the name is taken.
class ProgramWriter {
 public:
  ProgramWriter(std::string name, ActType act, Extents extents, const Torus& torus)
      : extents_(std::move(extents)), torus_(torus), bf16_(act == ActType::bf16) {
    program_.name = std::move(name);
  }

  /// Goes on with a program that there is.
  ProgramWriter(Program program, ActType act, Extents extents, const Torus& torus);

  /// An input. `base` begins the names of what it is moved to, the name itself if it is empty.
  Result input(const std::string& name, const Layout& layout, std::string_view meaning,
               const std::string& base = "");
  /// The results of an op on `args`; names that are taken get a number. `base` as of an input.
  std::vector<Result> steps(Op op, std::vector<std::string> args, std::vector<Result> results,
                            const std::string& base = "");
  /// The same of an op with one result.
  Result step(Op op, const std::vector<std::string>& args, const std::string& name,
              const Layout& layout, std::string_view meaning, const std::string& base = "");
  Result step(OpKind kind, const std::vector<std::string>& args, const std::string& name,
              const Layout& layout, std::string_view meaning, const std::string& base = "");
  Result move(const Result& value, const Move& move);
  /// The value at the end of the cheapest way to `to`.
  Result lead(Result value, const Layout& to);
  Way way(const Layout& from, const Layout& to) const;

  /// What a contraction yields before bias and st: the checkpoint itself when neither follows.
  std::string raw(const std::string& checkpoint, bool biased) const {
    return (bf16_ || biased ? "raw " : "") + checkpoint;
  }
  /// What an elementwise op yields before st.
  std::string unstored(const std::string& checkpoint) const {
    return (bf16_ ? "unstored " : "") + checkpoint;
  }
  /// The stored checkpoint: a step of its own in bf16, the value itself in f32.
  Result stored(const Result& value, std::string_view checkpoint);

  const Torus& torus() const { return torus_; }
  std::int64_t extent(char letter) const { return extents_.at(letter); }
  std::size_t length() const { return program_.ops.size(); }
  Program finish(std::vector<std::string> outputs);
  /// The same with its inputs in the order residual stream, weights, the rest.
  Program finish(std::vector<std::string> outputs, const ModelConfig& config);

 private:
  std::string free_name(const std::string& name, const std::string& base);

  Program program_;
  Extents extents_;
  Torus torus_;
  bool bf16_;
  std::map<std::string, std::string> bases_;  // by the names that are taken
};

/// Which of a model's norms is written.
struct NormNames {
  std::string before = "", behind = "";  ///< "final_" and ""; "" and "2"
  bool last = false;                     ///< of every row the last position only
};

/// The norm of x, stored: statistics summed over E's axes, gain and bias sliced by them.
Result write_norm(ProgramWriter& writer, const ModelConfig& config, const Result& x,
                  const NormNames& names);

}  // namespace shardproof
