#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "oracle/request/detail/row_alone.h"
#include "oracle/walk/array.h"
#include "oracle/walk/passes.h"
#include "weights/base/tensor.h"
#include "weights/model/passes.h"
#include "weights/text/model_text.h"

namespace shardproof::oracle::graph {

/// The number of slots of a row's cache after each pass, those of its prefix included, by name.
using SlotsByPass = std::map<std::string, std::int64_t>;
SlotsByPass slots_of(const Passes& passes);

/// Returns a pass of a row that runs alone, with the slots of the batch's caches: those that none
/// of its tokens reaches hold 0.
Tokens tokens_alone(const PassPlan& of_row, const IntTensor& ids, const SlotsByPass& batch);

/// Combines the values of rows that ran alone, by id, into the batch's.
template <class T>
class RowsTogether {
 public:
  using Values = std::map<std::string, T>;

  /// `text`: the flat form, whose lines have the values.
  RowsTogether(const ModelText& text, const Passes& passes) : passes_(passes) {
    for (const TextSection section : kTextSections)
      for (const TextLine& line : text.section(section).lines) {
        letters_[line.name] = line.letters;
        if (line.expression.kind == Expression::Kind::call && line.expression.op == ModelOp::append)
          caches_.push_back(line.name);
      }
  }

  /// Returns each row's values at its tokens and +0 at padding; what has no row is the same in all.
  /// A pass over prefixes has the first row of each; later caches are without the slots of the
  /// prefix. A cache is unchanged by a pass with no token of its row.
  Values values(const std::vector<Values>& all_rows) const {
    Values whole;
    for (std::int64_t i = 0; i < passes_.size(); ++i) {
      const PassPlan pass = passes_.at(i);
      const std::vector<const Values*> rows = rows_of(pass, all_rows);
      for (size_t b = 0; b < rows.size(); ++b) {
        bool runs = false;
        const auto end = rows[b]->lower_bound(pass.name + "/");  // '/' follows '.'
        for (auto at = rows[b]->lower_bound(pass.name + "."); at != end; ++at) {
          put(whole, at->first, own_slots(at->first, at->second, pass), b, pass);
          runs = true;
        }
        if (!runs && !pass.previous.empty()) keep_caches(whole, b, pass);
      }
    }
    return whole;
  }

 private:
  std::vector<const Values*> rows_of(const PassPlan& pass, const std::vector<Values>& rows) const {
    std::vector<const Values*> of_pass;
    if (pass.phase == Phase::prefix)
      for (const std::int64_t b : first_rows(passes_.prefix(), std::ssize(rows)))
        of_pass.push_back(&rows[static_cast<size_t>(b)]);
    else
      for (const Values& row : rows) of_pass.push_back(&row);
    return of_pass;
  }

  bool is_cache(const std::string& name) const {
    return std::find(caches_.begin(), caches_.end(), name) != caches_.end();
  }

  /// Returns a row's value, a cache without the slots of its prefix.
  T own_slots(const std::string& id, const T& of_row, const PassPlan& pass) const {
    if (!pass.prefix.given() || !is_cache(name_of(id))) return of_row;
    const std::string& letters = letters_.at(name_of(id));
    const size_t slots = letters.find('M');
    T own = of_row;
    own.shape[slots] -= pass.prefix.length;
    const auto first =
        static_cast<size_t>(pass.prefix.length * step_of(letters, of_row.shape, 'M'));
    const auto places = places_in(letters, own.shape, letters, of_row.shape);
    own.data.clear();
    for (const size_t place : places) own.data.push_back(of_row.data[first + place]);
    return own;
  }

  static std::string name_of(const std::string& id) { return id.substr(id.rfind('.') + 1); }

  void put(Values& whole, const std::string& id, const T& of_row, size_t b,
           const PassPlan& pass) const {
    const std::string& letters = letters_.at(name_of(id));
    Shape shape = of_row.shape;
    for (size_t d = 0; d < shape.size(); ++d)
      shape[d] = letters[d] == 'B' ? pass.batch() : letters[d] == 'L' ? pass.L : shape[d];
    T& all = whole.try_emplace(id, shape).first->second;
    const size_t first = b * static_cast<size_t>(step_of(letters, all.shape, 'B'));
    const auto places = places_in(letters, of_row.shape, letters, all.shape);
    for (size_t n = 0; n < places.size(); ++n) all.data[first + places[n]] = of_row.data[n];
  }

  void keep_caches(Values& whole, size_t b, const PassPlan& pass) const {
    for (auto old = whole.lower_bound(pass.previous + ".");
         old != whole.end() && old->first.starts_with(pass.previous + "."); ++old) {
      const std::string name = name_of(old->first);
      if (!is_cache(name)) continue;
      const std::string& letters = letters_.at(name);
      T row = old->second;
      row.shape[letters.find('B')] = 1;
      row.data.clear();
      const size_t first = b * static_cast<size_t>(step_of(letters, old->second.shape, 'B'));
      for (const size_t place : places_in(letters, row.shape, letters, old->second.shape))
        row.data.push_back(old->second.data[first + place]);
      Shape shape = old->second.shape;
      shape[letters.find('B')] = pass.batch();
      shape[letters.find('M')] = pass.cached + pass.L;
      const std::string id = pass.name + old->first.substr(pass.previous.size());
      whole.try_emplace(id, shape);
      put(whole, id, row, b, pass);
    }
  }

  const Passes& passes_;
  std::map<std::string, std::string> letters_;
  std::vector<std::string> caches_;
};

}  // namespace shardproof::oracle::graph
