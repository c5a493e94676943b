#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/layouts/path.h"
#include "weights/model/model_config.h"
#include "weights/model/numerics.h"
#include "weights/model/prefix.h"

namespace shardproof {

/// The extents that the subscripts of a phase's values must divide. L differs from pass to pass:
/// its entry is the greatest common divisor.
using Extents = std::map<char, std::int64_t>;
/// The extents of a phase. N is present iff `prefix` is given; by this a layer is known to read the
/// prefixes' caches.
Extents extents_of(const ModelConfig& config, std::int64_t batch, std::int64_t L,
                   const SharedPrefix& prefix = {});

/// A value of a program being written.
struct WrittenValue {
  std::string name;
  Layout layout;
  std::string role;  ///< "raw q", "stat ss"
  std::string base;  ///< prefix of the names of its moves
};

/// A program being written line by line. A move is named by its value and a letter for its op: `xg`
/// gathered, `qr` reduce-scattered, `sa` all-reduced, `qt` by all_to_all, `ko` permuted, `xs`
/// sliced; a number is added if the name is taken.
class ProgramWriter {
 public:
  ProgramWriter(std::string name, NumberFormat act, Extents extents, const Torus& torus)
      : name_(std::move(name)),
        extents_(std::move(extents)),
        torus_(torus),
        bf16_(act == NumberFormat::bf16) {}

  /// Adds an input. An empty `base` means `name`.
  WrittenValue input(const std::string& name, const Layout& layout, const std::string& role,
                     const std::string& base = "");
  /// Adds a step. `call` is the op with its arguments: "norm(xg, sa, gs)".
  WrittenValue step(const std::string& name, const Layout& layout, const std::string& call,
                    const std::string& role, const std::string& base = "");
  /// Adds a whole line, for an op with several results; their names are not reserved.
  void line(const std::string& text);
  WrittenValue move(const WrittenValue& value, const Move& move);
  /// Moves the value to `to` by the cheapest path.
  WrittenValue lead(WrittenValue value, const Layout& to);
  Path path(const Layout& from, const Layout& to) const;

  /// Role of a contraction's result before scale, bias and st; the checkpoint if none follows.
  std::string raw(const std::string& checkpoint, bool changed) const {
    return (bf16_ || changed ? "raw " : "") + checkpoint;
  }
  /// Role of an elementwise op's result before st.
  std::string unstored(const std::string& checkpoint) const {
    return (bf16_ ? "unstored " : "") + checkpoint;
  }
  /// The stored checkpoint: a step of its own in bf16, the value itself in f32.
  WrittenValue stored(const WrittenValue& value, const std::string& checkpoint);

  /// Sets the rows of a text's model, which the program then has.
  void set_rows(std::shared_ptr<const ModelRows> rows) { rows_ = std::move(rows); }

  std::size_t length() const { return length_; }  ///< steps so far
  Program finish(const std::vector<std::string>& outputs) const;

 private:
  std::string name_, steps_;
  std::array<std::string, 3> inputs_;  // the stream; weights; tables, positions, caches
  Extents extents_;
  Torus torus_;
  bool bf16_;
  std::size_t length_ = 0;
  std::map<std::string, int> taken_;
  std::shared_ptr<const ModelRows> rows_;
};

/// Selects one of a model's norms.
struct NormNames {
  std::string prefix = "", suffix = "";  ///< "final_" and ""; "" and "2"
  bool last = false;                     ///< the norm of each row's last position only
};

/// Writes the norm of x, stored: statistics summed over E's axes, gain and bias sliced by them.
WrittenValue write_norm(ProgramWriter& w, const ModelConfig& config, const WrittenValue& x,
                        const NormNames& names);

}  // namespace shardproof
