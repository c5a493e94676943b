#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "golden/trace/layout/arrays.h"
#include "golden/trace/value/dumped_value.h"

namespace shardproof::dump {

/// The context in which arrays of a trace are read; `weights` as stored for the run.
struct RunOfTrace {
  const Claim& claim;
  const Weights& weights;
  const Passes& passes;
};

/// One array of a trace, or one value's shards, and the values of the model in it. All arguments
/// outlive it.
class ArrayValues {
 public:
  ArrayValues(const std::string& name, const dump::Value& value, const RunOfTrace& run);

  /// One value, or those fused in the array; none if the model has no such value.
  const std::vector<Subject>& subjects() const { return subjects_; }
  /// Returns the text of one of its attributes; null if it has none of that name.
  const std::string* said(std::string_view attribute) const;
  /// Returns the layouts that it declares, one per subject; without axes if it declares none.
  /// Throws Error("dump_layout", ...).
  std::vector<Layout> layouts(const std::vector<Subject>& subjects) const;
  /// Returns the values, at least one; misfits if the array does not fit.
  Values read() const;

 private:
  std::vector<Subject> find_subjects() const;
  void add(Values& to) const;
  DumpedValue described(const Subject& subject, const Layout& layout, const Arrays& arrays) const;
  void set_blocks(Subject& subject, const Layout& layout, const Arrays& arrays) const;
  std::size_t along(const Layout& first) const;
  std::vector<Shape> local_shapes(const std::vector<Subject>& subjects,
                                  const std::vector<Layout>& layouts, const Arrays& arrays,
                                  std::size_t dim) const;
  Shape padded_shape(const Layout& layout, const Subject& subject, const Torus& torus,
                     const Shape& local) const;
  std::vector<bool> padding_of(const Subject& subject) const;
  bool is_plain(const Shape& padded, const Layout& layout, const Subject& subject) const;
  void require_rows(const Subject& subject) const;
  template <class... Args>
  [[noreturn]] void refuse(std::string_view label, fmt::format_string<Args...> why,
                           Args&&... args) const;

  const std::string& name_;
  const dump::Value& value_;
  const RunOfTrace& run_;
  std::vector<Subject> subjects_;
};

/// Returns a value that has only a name, and the reason.
DumpedValue misfit(const std::string& name, const Subject& subject, std::string_view why);

}  // namespace shardproof::dump
