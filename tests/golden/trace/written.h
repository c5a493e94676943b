#pragma once

// Traces as somebody might write them: of the oracle's own values, in any form.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "golden/compare/block_map.h"
#include "golden/compare/reach_meter.h"
#include "golden/memo/oracle_memo.h"
#include "golden/trace/verdict/verdict.h"
#include "weights/base/bf16.h"
#include "weights/model/registry.h"

namespace shardproof::dump {

/// The bits of the nearest f16.
inline std::uint16_t half(double v) {
  const int sign = std::signbit(v) ? 0x8000 : 0;
  const double a = std::abs(v);
  const int e = std::max(a > 0 ? std::ilogb(a) : -14, -14);
  if (e > 15) return static_cast<std::uint16_t>(sign | 0x7c00);
  // Below 2^10 of a subnormal; 2^11 is the next power's first.
  const auto m = static_cast<int>(std::nearbyint(std::ldexp(a, 10 - e)));
  return static_cast<std::uint16_t>(sign | ((e + 14) * 1024 + m));
}

/// Numbers as a file stores them.
inline dump::StoredArray stored(Shape shape, const std::vector<double>& numbers,
                                NumberFormat encoding = NumberFormat::f64) {
  dump::StoredArray s{std::move(shape), encoding, {}};
  for (const double v : numbers) {
    const auto put = [&](auto x) {
      const auto* const from = reinterpret_cast<const std::byte*>(&x);
      s.bytes.insert(s.bytes.end(), from, from + sizeof x);
    };
    if (encoding == NumberFormat::bf16)
      put(static_cast<std::uint16_t>(
          std::bit_cast<std::uint32_t>(round_to_bf16(static_cast<float>(v))) >> 16));
    else if (encoding == NumberFormat::f16)
      put(half(v));
    else if (encoding == NumberFormat::f32)
      put(static_cast<float>(v));
    else if (encoding == NumberFormat::int32)
      put(static_cast<std::int32_t>(v));
    else
      put(v);
  }
  return s;
}

/// One value on its way into a trace.
struct Written {
  std::string name;
  std::string dims;             ///< of the numbers
  Shape shape;                  ///< global
  std::vector<double> numbers;  ///< row-major in `dims`
  dump::Attributes attributes;
};

inline Written written(const std::string& name, const std::string& dims, const Tensor& t,
                       const dump::Attributes& attributes = {}) {
  return {name, dims, t.shape, {t.data.begin(), t.data.end()}, attributes};
}

/// "gate" of "decode.1.layer0.gate".
inline std::string last_word(const std::string& name) { return name.substr(name.rfind('.') + 1); }
inline double f32(double v) { return static_cast<double>(static_cast<float>(v)); }
inline double as_bf16(double v) {
  return static_cast<double>(round_to_bf16(static_cast<float>(v)));
}

/// The value, or the row of a verdict, of that name.
template <class Of>
auto& named(Of& all, const std::string& name) {
  for (auto& one : all)
    if (one.name == name) return one;
  throw std::runtime_error(name);
}
inline const Row& row_of(const Verdict& v, const std::string& name) { return named(v.rows, name); }
/// The title of the first divergence; "" if there is none.
inline std::string first_of(const Verdict& v) { return v.first ? v.rows[*v.first].title : ""; }

/// The bytes of an array, which may be changed: copied where they lie in a file.
inline std::vector<std::byte>& own_bytes(dump::StoredArray& s) {
  if (!s.lent.empty()) s.bytes.assign(s.lent.begin(), s.lent.end()), s.lent = {};
  return s.bytes;
}

/// Writes an f64, whatever stood there.
inline void poke(dump::StoredArray& s, std::size_t i, double v) {
  own_bytes(s);
  std::memcpy(s.bytes.data() + i * sizeof v, &v, sizeof v);
}

/// The numbers with dims in another order.
inline Written transposed(const Written& w, const std::string& dims) {
  Written out{w.name, dims, {}, std::vector<double>(w.numbers.size()), w.attributes};
  std::vector<std::size_t> from;
  for (const char letter : dims) from.push_back(w.dims.find(letter));
  for (const std::size_t d : from) out.shape.push_back(w.shape[d]);
  for (std::size_t i = 0; i < w.numbers.size(); ++i) {
    const Shape index = global_index(w.shape, static_cast<std::int64_t>(i));
    std::int64_t at = 0;
    for (std::size_t d = 0; d < from.size(); ++d) at = at * out.shape[d] + index[from[d]];
    out.numbers[static_cast<std::size_t>(at)] = w.numbers[i];
  }
  return out;
}

/// A model's exact run, and traces of it.
class ExactRun {
 public:
  explicit ExactRun(const std::string& line)
      : source_case(parse_case(line)),
        known_(memo_.get(source_case)),
        passes(source_case.passes()) {}

  Tensor value(const std::string& id) const { return known_->answer.checkpoints.at(id); }
  const oracle::Answer& answer() const { return known_->answer; }
  const Weights& weights() const { return known_->stored; }

  /// All checkpoints, tokens and ids.
  std::vector<Written> values() const {
    std::vector<Written> all;
    for (std::int64_t i = 0; i < passes.size(); ++i) {
      const std::string pass = passes.at(i).name;
      const auto add = [&](const std::string& id, const std::string& dims, const auto& tensor) {
        all.push_back({id, dims, tensor.shape, {tensor.data.begin(), tensor.data.end()}, {}});
      };
      add(pass + ".ids", "BL", answer().inputs.at(pass + ".ids"));
      for (std::int64_t layer = -1; layer < source_case.model.layers; ++layer)
        for (const CheckpointSpec& spec : checkpoint_specs(source_case.model)) {
          if (spec.per_layer != (layer >= 0)) continue;
          const std::string id = checkpoint_id(pass, layer, spec.name);
          if (!spec.integer)
            add(id, spec.dims, value(id));
          else if (passes.at(i).sample)
            add(id, spec.dims, answer().tokens.at(id));
        }
    }
    return all;
  }

  /// A trace of them. `random`: each in a layout and a form of its own; else all whole.
  dump::Dump trace(const std::vector<Written>& values, const std::string& arithmetic,
                   std::mt19937_64* random = nullptr) const {
    dump::Dump d;
    d.attributes = {{"format", "shardproof trace"},
                    {"version", "1"},
                    {"case", print_case(source_case)},
                    {"arithmetic", arithmetic}};
    static const char* const kMeshes[] = {"x y z", "z y x", "y z x", "data=z model=x seq=y"};
    std::string mesh = kMeshes[0];
    if (random != nullptr) mesh = kMeshes[(*random)() % 4];
    d.attributes["mesh"] = mesh;
    for (const Written& w : values) add(d, w, Mesh::parse(mesh, source_case.torus), random);
    return d;
  }

  /// Adds a value that stands whole, or in a random layout and form.
  void add(dump::Dump& d, Written w, const Mesh& mesh, std::mt19937_64* random) const {
    dump::Value value;
    value.attributes = w.attributes;
    if (random == nullptr || w.attributes.contains("layout")) {
      value.whole = stored(w.shape, w.numbers);
    } else {
      std::string dims = w.dims;
      std::shuffle(dims.begin(), dims.end(), *random);
      w = transposed(w, dims);
      const Layout layout = any_layout(w, *random);
      value.attributes["layout"] = layout.to_string();
      put(value, w, layout, mesh, (*random)() % 3);
    }
    insert(d, w.name, std::move(value));
  }

  static dump::Value& insert(dump::Dump& d, const std::string& name, dump::Value value) {
    d.order.push_back(name);
    return d.values.insert_or_assign(name, std::move(value)).first->second;
  }

  /// Adds a value in a layout that it declares, besides what it says.
  dump::Value& add(dump::Dump& d, const Written& w, const std::string& layout,
                   std::uint64_t form) const {
    dump::Value value;
    value.attributes = w.attributes;
    value.attributes["layout"] = layout;
    put(value, w, Layout::parse(layout), Mesh::parse("x y z", source_case.torus), form);
    return insert(d, w.name, std::move(value));
  }

  /// Shards by the layout: 0 whole, 1 stacked, 2 by chip.
  void put(dump::Value& value, const Written& w, const Layout& layout, const Mesh& mesh,
           std::uint64_t form) const {
    if (form == 0) {
      value.whole = stored(w.shape, w.numbers);
      return;
    }
    const Torus& torus = source_case.torus;
    const Shape block = judged_block(layout, w.shape, torus);
    Shape stacked = mesh.shape(torus);
    std::vector<double> all;
    for (std::int64_t place = 0; place < torus.chips(); ++place) {
      const int chip = form == 1 ? mesh.chip(torus, place) : static_cast<int>(place);
      std::vector<double> shard(static_cast<std::size_t>(element_count(block)));
      judged_elements(layout, w.shape, torus, chip, [&](std::int64_t local, std::int64_t global) {
        shard[static_cast<std::size_t>(local)] = w.numbers[static_cast<std::size_t>(global)];
        return false;
      });
      if (form == 2)
        value.chips[judged_coordinates(torus, chip)] = stored(block, shard);
      else
        all.insert(all.end(), shard.begin(), shard.end());
    }
    stacked.insert(stacked.end(), block.begin(), block.end());
    if (form == 1) value.whole = stored(stacked, all);
  }

  /// A trace, and what it is judged by.
  struct Read {
    Read(const ExactRun& run, const dump::Dump& d)
        : claim(read_claim(d.attributes, std::nullopt)),
          values(read_values(d, claim, run.weights())),
          reference(values, claim, run.weights()) {}
    Claim claim;
    Values values;
    Reference reference;
  };

  Verdict judged(const dump::Dump& d) const {
    Read read(*this, d);
    return judge(read.values, read.claim, read.reference);
  }
  Verdict judged(const std::vector<Written>& of, const std::string& arithmetic) const {
    return judged(trace(of, arithmetic));
  }

  Written whole(const std::string& id) const {
    std::vector<Written> all = values();
    return named(all, id);
  }

  Case source_case;

 private:
  Layout any_layout(const Written& w, std::mt19937_64& random) const {
    std::vector<Layout::Dim> dims;
    for (const char letter : w.dims) dims.push_back({letter, Axes()});
    std::string axes = "xyz";
    std::shuffle(axes.begin(), axes.end(), random);
    for (const char axis : axes) {
      const std::size_t d = random() % (dims.size() + 1);
      if (d == dims.size()) continue;  // copies along it
      const Axes more = dims[d].axes.with(Axes::parse(std::string(1, axis)));
      if (w.shape[d] % source_case.torus.size(more) == 0) dims[d].axes = more;
    }
    return Layout(std::move(dims), Axes());
  }

  mutable OracleMemo memo_;
  std::shared_ptr<const OracleMemo::Known> known_;

 public:
  Passes passes;
};

inline const std::string kLine =
    "torus=3x1x2 model=palm-tiny,layers=2,E=24,F=36,H=6,K=2,Q=4,V=30 batch=6 prompt=5 chunk=3 "
    "gen=3 seed=5";

}  // namespace shardproof::dump
