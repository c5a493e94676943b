#include "oracle/request/detail/row_alone.h"

#include <algorithm>
#include <set>
#include <string>
#include <type_traits>
#include <utility>

#include "oracle/numeric/field_number.h"
#include "weights/model/registry.h"

namespace shardproof::oracle {

namespace {

using std::size_t;

/// Copies a row's value [1, ...] into row b of the batch's value, element [0, ...] to [b, 0, ...].
template <class T>
void put(T& whole, const T& row, size_t b) {
  const Shape& to = whole.shape;
  const Shape& from = row.shape;
  const size_t dims = to.size();
  // Trailing dims of equal extent, and the next dim in the row's extent, are contiguous in both.
  size_t run = 1;
  for (size_t d = dims; d-- > 1;) {
    run *= static_cast<size_t>(from[d]);
    if (from[d] != to[d]) break;
  }
  for (size_t n = 0; n < row.data.size(); n += run) {
    size_t rest = n, at = 0, stride = 1;
    for (size_t d = dims; d-- > 1;) {
      const auto extent = static_cast<size_t>(from[d]);
      at += rest % extent * stride;
      rest /= extent;
      stride *= static_cast<size_t>(to[d]);
    }
    std::copy_n(row.data.begin() + static_cast<std::ptrdiff_t>(n), run,
                whole.data.begin() + static_cast<std::ptrdiff_t>(b * stride + at));
  }
}

/// Returns a row's cache [1, M, K, Q] without its first `slots`, those of its prefix.
template <class T>
T behind(T cache, std::int64_t slots) {
  cache.shape[1] -= slots;
  const std::int64_t kept = element_count(cache.shape);
  cache.data.erase(cache.data.begin(), cache.data.end() - static_cast<std::ptrdiff_t>(kept));
  return cache;
}

/// Splits "decode.1.layer0.gate" into "decode.1.layer0." and "gate".
std::pair<std::string, std::string> split_name(const std::string& id) {
  const size_t dot = id.rfind('.') + 1;
  return {id.substr(0, dot), id.substr(dot)};
}

/// Combines one kind of values of one pass. found(row, id) returns a row's value, or null.
template <class T>
class Together {
 public:
  Together(const PassPlan& pass, const ModelConfig& config) : pass_(pass), config_(config) {}

  template <class Found>
  T value(const std::string& id, size_t rows, Found&& found) const {
    const ValueRow* const row = value_row(split_name(id).second);
    T whole(shape_of(row->dims, config_, extents_of(pass_, *row)));
    for (size_t b = 0; b < rows; ++b)
      if (const T* const own = found(b, id)) {
        if (row->cache && pass_.prefix.given())
          put(whole, behind(*own, pass_.prefix.length), b);
        else
          put(whole, *own, b);
      }
    return whole;
  }

 private:
  const PassPlan& pass_;
  const ModelConfig& config_;
};

/// Returns the rows of a pass: those of the batch, or the first row of each prefix.
template <class T>
std::vector<const ModelValues<T>*> rows_of(const PassPlan& pass,
                                           const std::vector<ModelValues<T>>& rows,
                                           const SharedPrefix& prefix) {
  std::vector<const ModelValues<T>*> of_pass;
  if (pass.phase == Phase::prefix) {
    for (const std::int64_t b : first_rows(prefix, std::ssize(rows)))
      of_pass.push_back(&rows[static_cast<size_t>(b)]);
  } else {
    for (const ModelValues<T>& row : rows) of_pass.push_back(&row);
  }
  return of_pass;
}

/// Calls body(id) once for each id of a pass that any row has in the map, in order.
template <class T, class Map, class Body>
void each_id(const std::vector<const ModelValues<T>*>& rows, Map ModelValues<T>::*map,
             const std::string& pass, Body&& body) {
  std::set<std::string> ids;
  for (const ModelValues<T>* const row : rows) {
    const auto end = (row->*map).lower_bound(pass + "/");  // '/' follows '.'
    for (auto at = (row->*map).lower_bound(pass + "."); at != end; ++at) {
      if constexpr (std::is_same_v<Map, std::set<std::string>>)
        ids.insert(*at);
      else
        ids.insert(at->first);
    }
  }
  for (const std::string& id : ids) body(id);
}

}  // namespace

bool is_one_batch(const Passes& passes) { return passes.full() && !passes.prefix().given(); }

std::vector<std::int64_t> first_rows(const SharedPrefix& prefix, std::int64_t rows) {
  std::vector<std::int64_t> first;
  for (std::int64_t b = 0; b < rows; ++b)
    if (b * prefix.rows >= std::ssize(first) * rows) first.push_back(b);
  return first;
}

Passes passes_alone(const Passes& passes, size_t row) {
  std::vector<PassPlan> own;
  std::int64_t cached = 0;
  for (std::int64_t i = 0; i < passes.size(); ++i) {
    PassPlan pass = passes.at(i);
    const bool over_prefixes = pass.phase == Phase::prefix;
    // All prefixes have the same positions.
    std::int64_t before = over_prefixes ? 0 : static_cast<std::int64_t>(row);
    auto group = pass.rows.begin();
    for (; before >= group->rows; ++group) before -= group->rows;
    if (group->tokens == 0) continue;
    pass.sample = pass.samples(*group);
    if (over_prefixes) pass.phase = Phase::prefill;
    pass.prefix = {};
    pass.L = group->tokens;
    pass.previous = own.empty() ? "" : own.back().name;
    pass.cached = cached;
    pass.rows = {{1, group->start, group->tokens, true}};
    cached += pass.L;
    own.push_back(std::move(pass));
  }
  return Passes(std::move(own));
}

IntTensor ids_alone(const IntTensor& ids, size_t row) {
  IntTensor own({1, ids.shape[1]});
  const auto width = static_cast<std::ptrdiff_t>(ids.shape[1]);
  const auto begin = ids.data.begin() + static_cast<std::ptrdiff_t>(row) * width;
  std::copy(begin, begin + width, own.data.begin());
  return own;
}

template <class T>
void put_together(ModelValues<T>& whole, const std::vector<ModelValues<T>>& all_rows,
                  const ModelConfig& config, const Passes& passes) {
  for (std::int64_t i = 0; i < passes.size(); ++i) {
    const PassPlan pass = passes.at(i);
    const std::vector<const ModelValues<T>*> rows = rows_of(pass, all_rows, passes.prefix());
    IntTensor ids({pass.batch(), pass.L});
    for (size_t b = 0; b < rows.size(); ++b)
      if (const auto own = rows[b]->inputs.find(pass.name + ".ids"); own != rows[b]->inputs.end())
        put(ids, own->second, b);
    whole.open(pass, Places(pass), ids);
    const Together<T> together(pass, config);
    const auto in = [&](const auto map) {
      return [&rows, map](size_t b, const std::string& id) {
        const auto found = (rows[b]->*map).find(id);
        return found == (rows[b]->*map).end() ? nullptr : &found->second;
      };
    };
    const auto has_pass = [&](size_t b, const std::string& id) {
      return rows[b]->checkpoints.contains(id);
    };
    each_id(rows, &ModelValues<T>::checkpoints, pass.name, [&](const std::string& id) {
      T value = together.value(id, rows.size(), in(&ModelValues<T>::checkpoints));
      const auto [before, name] = split_name(id);
      if (const ValueRow* const row = value_row(name); row->cache && !pass.previous.empty()) {
        // Rows without a token in this pass keep their cache.
        const T& held =
            whole.checkpoints.at(pass.previous + before.substr(pass.name.size()) + name);
        const auto size_of = [](const T& t) {
          return t.data.size() / static_cast<size_t>(t.shape[0]);
        };
        for (size_t b = 0; b < rows.size(); ++b)
          if (!has_pass(b, id))
            std::copy_n(held.data.begin() + static_cast<std::ptrdiff_t>(b * size_of(held)),
                        size_of(held),
                        value.data.begin() + static_cast<std::ptrdiff_t>(b * size_of(value)));
      }
      whole.checkpoints[id] = std::move(value);
    });
    each_id(rows, &ModelValues<T>::stats, pass.name, [&](const std::string& id) {
      whole.stats[id] = together.value(id, rows.size(), in(&ModelValues<T>::stats));
    });
    each_id(rows, &ModelValues<T>::with_scale, pass.name,
            [&](const std::string& id) { whole.with_scale.insert(id); });
    // If one row's value differs from its checkpoint, so does the batch's; other rows contribute
    // their checkpoints.
    each_id(rows, &ModelValues<T>::raw, pass.name, [&](const std::string& id) {
      whole.raw[id] = together.value(id, rows.size(), [&](size_t b, const std::string& of) {
        return has_pass(b, of) ? &rows[b]->raw_of(of) : nullptr;
      });
    });
    each_id(rows, &ModelValues<T>::scaled, pass.name, [&](const std::string& id) {
      whole.scaled[id] = together.value(id, rows.size(), in(&ModelValues<T>::scaled));
    });
    each_id(rows, &ModelValues<T>::unstored, pass.name, [&](const std::string& id) {
      whole.unstored[id] = together.value(id, rows.size(), [&](size_t b, const std::string& of) {
        return has_pass(b, of) ? &rows[b]->unstored_of(of) : nullptr;
      });
    });
  }
}

template void put_together(ModelValues<Tensor>&, const std::vector<ModelValues<Tensor>>&,
                           const ModelConfig&, const Passes&);
template void put_together(ModelValues<field::Tensor>&,
                           const std::vector<ModelValues<field::Tensor>>&, const ModelConfig&,
                           const Passes&);

}  // namespace shardproof::oracle
