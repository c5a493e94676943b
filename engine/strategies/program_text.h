#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/program/program.h"
#include "weights/numerics.h"

namespace shardproof {

/// A program being written line by line, in the notation a user reads it in.
class ProgramText {
 public:
  ProgramText(std::string_view name, ActType act) : name_(name), bf16_(act == ActType::bf16) {}

  template <class... T>
  void line(fmt::format_string<T...> form, T&&... values) {
    text_ += fmt::format(form, std::forward<T>(values)...) + "\n";
  }

  /// What a contraction yields before bias and st: the checkpoint itself when neither follows.
  std::string raw(std::string_view checkpoint, bool biased = false) const {
    return (bf16_ || biased ? "raw " : "") + std::string(checkpoint);
  }
  /// What an elementwise op yields before st.
  std::string unstored(std::string_view checkpoint) const {
    return (bf16_ ? "unstored " : "") + std::string(checkpoint);
  }
  /// The name of the checkpoint whose contraction is `value`, biases added: a line of its own if
  /// there are any, and another in bf16.
  std::string stored(std::string value, std::string_view layout, std::string_view checkpoint,
                     const std::vector<std::string>& biases) {
    if (!biases.empty()) {
      line("{}_b : {} = bias({}, {}) is {}", value, layout, value, fmt::join(biases, ", "),
           unstored(checkpoint));
      value += "_b";
    }
    return stored(std::move(value), layout, checkpoint);
  }
  /// The name of the stored checkpoint whose unstored value is `value`: a line of its own in bf16,
  /// `value` itself in f32.
  std::string stored(std::string value, std::string_view layout, std::string_view checkpoint) {
    if (!bf16_) return value;
    line("{}_st : {} = store({}) is {}", value, layout, value, checkpoint);
    return value + "_st";
  }

  Program program() const { return parse_program(name_, text_); }

 private:
  std::string name_, text_;
  bool bf16_;
};

/// "H_zyx", or "H" where there are no axes.
inline std::string dim(char letter, const Axes& axes) {
  return axes.empty() ? std::string(1, letter) : fmt::format("{}_{}", letter, axes.to_string());
}

}  // namespace shardproof
