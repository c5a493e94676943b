#include "golden/trace.h"

#include <fmt/format.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "engine/box.h"
#include "golden/judge.h"
#include "weights/error.h"
#include "weights/hdf5_attribute.h"
#include "weights/hdf5_image.h"
#include "weights/memory.h"
#include "weights/replace_file.h"

namespace shardproof {
namespace {

namespace fs = std::filesystem;

/// What HDF5 needs for a dataset, its link and its attributes, texts aside.
constexpr double kDatasetBytes = 700.0;

constexpr std::string_view kMap =
    "A layout is dim letters, each with a subscript: torus axes, major to minor. Over the axes of "
    "its subscript a dim is cut into equal contiguous blocks: of F_zyx on XxYxZ chips, chip "
    "(x,y,z) "
    "holds block (z*Y+y)*X+x of X*Y*Z. Chips along an axis that a layout does not name hold "
    "replicas; along the axes of partialsum they hold summands.";

double count(const Shape& shape) {
  double n = 1.0;
  for (std::int64_t extent : shape) n *= static_cast<double>(extent);
  return n;
}

// ---- how large it gets ----

/// Bytes of what the ops of one program yield in one pass over L positions with M cached before.
double bytes_of(const Program& program, const Case& c, std::int64_t L, std::int64_t M) {
  // Which strategies the case names plays no part in a program's types.
  const auto types = check(program, c.inference(), L, M);
  const auto chips = static_cast<double>(c.torus.chips());
  double bytes = 0.0;
  for (const Op& op : program.ops)
    for (const Result& r : op.results) {
      const Type& type = types.at(r.name);
      const bool f64 = type.layout.is_partial() && c.numerics.regime == Regime::exact;
      const double texts = 2.0 * static_cast<double>(op.to_string().size() + r.name.size());
      bytes += 4.0 * count(type.shape) +
               (f64 ? 8.0 : 4.0) * chips * count(local_shape(type.layout, type.shape, c.torus)) +
               (chips + 1.0) * (kDatasetBytes + texts);
    }
  return bytes;
}

double bytes_of(const PhasePrograms& phase, const Case& c, std::int64_t L, std::int64_t M) {
  return static_cast<double>(c.model.layers) * bytes_of(phase.layer, c, L, M) +
         bytes_of(phase.embed, c, L, M) + bytes_of(phase.head, c, L, M) +
         bytes_of(phase.sample, c, L, M);
}

/// Of `passes` passes of L positions each, the first with M cached: a pass grows linearly in M.
double bytes_of(const PhasePrograms& phase, const Case& c, std::int64_t L, std::int64_t M,
                std::int64_t passes) {
  if (passes < 1) return 0.0;
  const double first = bytes_of(phase, c, L, M);
  const double last = passes == 1 ? first : bytes_of(phase, c, L, M + (passes - 1) * L);
  return static_cast<double>(passes) * (first + last) / 2.0;
}

void require_room(const Case& c, const GivenLayers& layers, const fs::path& folder) {
  const double bytes = estimated_trace_bytes(c, layers);
  const double run = estimated_bytes(c.inference(layers), build_programs(c.inference(layers)));
  try {
    require_memory(bytes + run, "both need about");
  } catch (const Error& error) {
    const std::string why = std::string(error.what()).substr(error.label().size() + 2);
    throw Error("trace_c2",
                fmt::format("the trace takes about {}, built in memory beside the run: {}",
                            show_bytes(bytes), why));
  }
  struct statvfs disk {};
  if (::statvfs(folder.c_str(), &disk) != 0) return;  // the writing will tell
  const double free = static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize);
  if (bytes > free)
    throw Error("trace_c2", fmt::format("the trace takes about {}, the disk under {:?} has {} left",
                                        show_bytes(bytes), folder.string(), show_bytes(free)));
}

// ---- what a value is in the file ----

/// How a kind of element is stored.
template <class T>
struct Stored;
template <>
struct Stored<float> {
  static hid_t in_file() { return H5T_IEEE_F32LE; }
  static hid_t in_memory() { return H5T_NATIVE_FLOAT; }
};
template <>
struct Stored<double> {
  static hid_t in_file() { return H5T_IEEE_F64LE; }
  static hid_t in_memory() { return H5T_NATIVE_DOUBLE; }
};
template <>
struct Stored<std::int32_t> {
  static hid_t in_file() { return H5T_STD_I32LE; }
  static hid_t in_memory() { return H5T_NATIVE_INT32; }
};

/// Whether st() has rounded the value: a stored checkpoint, in any layout.
bool is_stored(const Meaning& m) {
  return m.kind == Meaning::Kind::checkpoint && m.name != "score" && m.name != "max" &&
         m.name != "exp" && m.name != "denom" && m.name != "logits";
}

std::string dtype_of(const Result& declared, ActType act) {
  if (declared.layout.is_partial()) return "f32 partial";
  return act == ActType::bf16 && is_stored(declared.meaning) ? "bf16" : "f32";
}

/// Where each chip's shard lies in the logical tensor, by the judge's reading of the declared
/// layout, which is not the engine's; nothing if the shards are not of the size it says.
class Placement {
 public:
  template <class T>
  Placement(const Layout& layout, const Sharded& value, const ChipArrays<T>& chips)
      : layout_(layout), shape_(value.shape()), torus_(value.torus()) {
    if (layout.rank() != value.shape().size()) return;
    local_ = value.shape();
    for (std::size_t d = 0; d < local_.size(); ++d) {
      const std::int64_t blocks = torus_.size(layout.dims()[d].axes);
      fits_ = fits_ && local_[d] % blocks == 0;
      local_[d] /= blocks;
    }
    const auto size = static_cast<std::size_t>(element_count(local_));
    for (const Buffer<T>& chip : chips) fits_ = fits_ && chip.size() == size;
  }

  bool fits() const { return fits_ && !local_.empty(); }
  const Shape& local() const { return local_; }

  /// The logical tensor from each chip's shard, of replicas the lowest-numbered chip's.
  template <class T, class ShardOf>
  std::vector<T> assemble(ShardOf&& shard_of) const {
    std::vector<T> whole(static_cast<std::size_t>(element_count(shape_)));
    const Shape zero(local_.size(), 0);
    for (int chip = torus_.chips(); chip-- > 0;) {
      const auto& shard = shard_of(chip);
      if (shard.empty()) continue;
      for_each_run(local_, local_, zero, shape_, judged_offset(layout_, shape_, torus_, chip),
                   [&](std::int64_t from, std::int64_t to, std::int64_t n) {
                     std::copy_n(shard.begin() + from, n, whole.begin() + to);
                   });
    }
    return whole;
  }

 private:
  const Layout& layout_;
  const Shape& shape_;
  const Torus& torus_;
  Shape local_;
  bool fits_ = true;
};

/// The sum over the partial axes as f32, for the first chip of each group; none for the others.
std::vector<float> sum_of_group(const Partial& partial, const std::vector<int>& group, int chip) {
  if (group.front() != chip) return {};
  std::vector<Element> elements;
  for (int member : group) elements.push_back({member, 0});
  std::vector<float> sums(partial.values[static_cast<std::size_t>(chip)].size());
  for (std::size_t i = 0; i < sums.size(); ++i) {
    for (Element& e : elements) e.index = static_cast<std::int64_t>(i);
    sums[i] = partial.rounded_sum(elements);
  }
  return sums;
}

}  // namespace

double estimated_trace_bytes(const Case& c, const GivenLayers& layers) {
  const InferencePrograms programs = build_programs(c.inference(layers));
  const std::int64_t chunk = c.chunk > 0 ? c.chunk : c.prompt;
  const std::int64_t rest = c.prompt % chunk;
  const auto depth = static_cast<double>(c.model.layers);
  constexpr double kFile = 1 << 20;
  double bytes = kFile + 2000.0 * c.torus.chips();
  bytes += 4.0 * static_cast<double>(c.batch) * static_cast<double>(c.prompt + c.gen);
  bytes += bytes_of(programs.prefill, c, chunk, 0, c.prompt / chunk);
  if (rest > 0) bytes += bytes_of(programs.prefill, c, rest, c.prompt - rest);
  if (c.gen > 1) bytes += bytes_of(programs.decode, c, 1, c.prompt, c.gen - 1);
  if (c.gen > 1) bytes += depth * bytes_of(programs.hand_over, c, c.prompt, c.prompt);
  return bytes;
}

/// The user's layer programs, if the run has any.
bool put_programs(hid_t root, const GivenLayers& layers) {
  if (layers.prefill == layers.decode)
    return !layers.any() || put_attribute(root, "program", print_program(*layers.prefill));
  return (layers.prefill == nullptr ||
          put_attribute(root, "prefill_program", print_program(*layers.prefill))) &&
         (layers.decode == nullptr ||
          put_attribute(root, "decode_program", print_program(*layers.decode)));
}

/// The user's tables of layouts, if the case names any.
bool put_tables(hid_t root, const Case& c) {
  std::string text;
  for (const Strategy* strategy : {&c.prefill, &c.decode})
    if (!strategy->table().source.file.empty() &&
        (strategy == &c.prefill || !(c.decode == c.prefill)))
      text += print_layouts(strategy->table());
  return text.empty() || put_attribute(root, "layouts", text);
}

/// The file being built.
class Trace::File {
 public:
  File(const Case& c, const IntTensor& prompt, fs::path target, const Source& source)
      : act_(c.numerics.act),
        target_(std::move(target)),
        untimed_(H5Pcreate(H5P_DATASET_CREATE), H5Pclose) {
    const Hdf5Silence silence;
    const hid_t root = image_.file();
    need(root >= 0 && H5Pset_obj_track_times(untimed_.get(), false) >= 0 &&
         put_attribute(root, "format", "shardproof trace") &&
         put_attribute(root, "version", kTraceFormat) &&
         put_attribute(root, "case", print_case(c, source.layers)) &&
         put_attribute(root, "model", print_model(c.model)) &&
         put_attribute(root, "torus", c.torus.to_string()) &&
         put_attribute(root, "regime", to_string(c.numerics.regime)) &&
         put_attribute(root, "act", to_string(c.numerics.act)) &&
         put_attribute(root, "weights", source.weights_given ? "file" : "seed") &&
         put_attribute(root, "map", kMap) && put_programs(root, source.layers) &&
         put_tables(root, c));
    const Hdf5Handle plain(H5Pcreate(H5P_GROUP_CREATE), H5Pclose);
    need(plain && H5Pset_obj_track_times(plain.get(), false) >= 0);
    const Hdf5Handle chips(H5Gcreate2(root, "chips", H5P_DEFAULT, plain.get(), H5P_DEFAULT),
                           H5Gclose);
    need(static_cast<bool>(chips));
    for (int chip = 0; chip < c.torus.chips(); ++chip) {
      const int x = c.torus.coordinate(chip, Axis::x);
      const int y = c.torus.coordinate(chip, Axis::y);
      const int z = c.torus.coordinate(chip, Axis::z);
      groups_.emplace_back(H5Gcreate2(chips.get(), fmt::format("{}_{}_{}", x, y, z).c_str(),
                                      H5P_DEFAULT, plain.get(), H5P_DEFAULT),
                           H5Gclose);
      const hid_t group = groups_.back().get();
      need(group >= 0 && put_attribute(group, "x", x) && put_attribute(group, "y", y) &&
           put_attribute(group, "z", z));
    }
    need(static_cast<bool>(dataset(root, "prompt", prompt.shape, prompt.data)));
  }

  void add(const Scope& scope, const Program& program, const Op& op, const Result& declared,
           const Sharded& value) {
    const Hdf5Silence silence;
    const Entry entry{scope.step(program, declared.name), declared, op.to_string(), value.shape()};
    if (const auto* f32 = std::get_if<ChipArrays<float>>(&value.data())) {
      add(entry, value, *f32, dtype_of(declared, act_));
    } else if (const auto* i32 = std::get_if<ChipArrays<std::int32_t>>(&value.data())) {
      const std::vector<std::int32_t> whole = add(entry, value, *i32, "int32");
      if (declared.meaning.to_string() == "token") add_token(scope.pass, whole);
    } else {
      add_partial(entry, value);
    }
    ++order_;
  }

  void write(std::string_view ended) {
    const Hdf5Silence silence;
    need(put_attribute(image_.file(), "ended", ended));
    add_generated();
    groups_.clear();
    const std::span<const char> image = image_.close();
    need(!image.empty());
    replace_file(target_, image, "trace_c1");
  }

 private:
  struct Entry {
    std::string id;
    const Result& declared;
    std::string op;
    const Shape& shape;
  };

  void need(bool held) const {
    if (!held)
      throw Error("trace_c1",
                  fmt::format("{:?}: {}", target_.string(), last_hdf5_failure().reason));
  }

  template <class Values>
  Hdf5Handle dataset(hid_t parent, const std::string& name, const Shape& shape,
                     const Values& data) const {
    using T = typename Values::value_type;
    const std::vector<hsize_t> dims(shape.begin(), shape.end());
    const Hdf5Handle space(H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr),
                           H5Sclose);
    Hdf5Handle made(H5Dcreate2(parent, name.c_str(), Stored<T>::in_file(), space.get(), H5P_DEFAULT,
                               untimed_.get(), H5P_DEFAULT),
                    H5Dclose);
    need(made && (data.empty() || H5Dwrite(made.get(), Stored<T>::in_memory(), H5S_ALL, H5S_ALL,
                                           H5P_DEFAULT, data.data()) >= 0));
    return made;
  }

  template <class Values>
  Hdf5Handle value(hid_t parent, const Entry& entry, const Shape& shape, const Values& data,
                   std::string_view dtype) const {
    Hdf5Handle made = dataset(parent, entry.id, shape, data);
    need(put_attribute(made.get(), "layout", entry.declared.layout.to_string()) &&
         put_attribute(made.get(), "dtype", dtype) &&
         put_attribute(made.get(), "meaning", entry.declared.meaning.to_string()) &&
         put_attribute(made.get(), "op", entry.op) &&
         put_attribute(made.get(), "shape", entry.shape) &&
         put_attribute(made.get(), "order", order_));
    return made;
  }

  /// The shards of every chip; flat, where they are not what the layout says.
  template <class T>
  std::vector<Hdf5Handle> shards(const Entry& entry, const Placement& placement,
                                 const ChipArrays<T>& chips, std::string_view dtype) const {
    std::vector<Hdf5Handle> made;
    for (std::size_t chip = 0; chip < chips.size(); ++chip) {
      const Shape flat{static_cast<std::int64_t>(chips[chip].size())};
      made.push_back(value(groups_[chip].get(), entry, placement.fits() ? placement.local() : flat,
                           chips[chip], dtype));
    }
    return made;
  }

  /// The logical tensor; empty if the value has none.
  template <class T>
  std::vector<T> add(const Entry& entry, const Sharded& from, const ChipArrays<T>& chips,
                     std::string_view dtype) const {
    const Placement placement(entry.declared.layout, from, chips);
    shards(entry, placement, chips, dtype);
    // In the f32 regime the sum of partials depends on the schedule; the program has yet to sum
    // them.
    if (!placement.fits() || entry.declared.layout.is_partial()) return {};
    std::vector<T> whole = placement.template assemble<T>(
        [&](int chip) -> const Buffer<T>& { return chips[static_cast<std::size_t>(chip)]; });
    value(image_.file(), entry, entry.shape, whole, dtype);
    return whole;
  }

  void add_partial(const Entry& entry, const Sharded& from) const {
    const Partial& partial = from.partial();
    const Layout& layout = entry.declared.layout;
    const Placement placement(layout, from, partial.values);
    const auto made = shards(entry, placement, partial.values, "f64 partial");
    for (std::size_t chip = 0; chip < made.size(); ++chip) {
      const Buffer<float>& bounds = partial.bounds[chip];
      const double most =
          bounds.empty() ? 0.0
                         : static_cast<double>(*std::max_element(bounds.begin(), bounds.end()));
      need(put_attribute(made[chip].get(), "bound", most));
    }
    if (!placement.fits() || !layout.is_partial()) return;
    const auto whole = placement.assemble<float>([&](int chip) {
      return sum_of_group(partial, from.torus().group(chip, layout.partial()), chip);
    });
    value(image_.file(), entry, entry.shape, whole, "f32");
  }

  void add_token(const std::string& pass, const std::vector<std::int32_t>& ids) {
    if (tokens_.empty() || tokens_.back().first != pass) tokens_.emplace_back(pass, ids);
    tokens_.back().second = ids;
  }

  /// The tokens of the passes that had any, int32 [B, passes].
  void add_generated() const {
    if (tokens_.empty()) return;
    const std::size_t rows = tokens_[0].second.size();
    std::vector<std::int32_t> table;
    for (std::size_t b = 0; b < rows; ++b)
      for (const auto& [pass, ids] : tokens_) table.push_back(b < ids.size() ? ids[b] : -1);
    const Shape shape{static_cast<std::int64_t>(rows), static_cast<std::int64_t>(tokens_.size())};
    dataset(image_.file(), "generated", shape, table);
  }

  ActType act_;
  fs::path target_;
  Hdf5Handle untimed_;  // datasets without times, so that equal traces are equal bytes
  Hdf5Image image_;
  std::vector<Hdf5Handle> groups_;  // of the chips
  int order_ = 0;
  std::vector<std::pair<std::string, std::vector<std::int32_t>>> tokens_;  // by pass
};

Trace::Trace(const Case& c, const IntTensor& prompt, fs::path target, const Source& source) {
  const fs::path resolved = require_replaceable(target, "trace_c1");
  require_room(c, source.layers,
               resolved.has_parent_path() ? resolved.parent_path() : fs::path("."));
  file_ = std::make_unique<File>(c, prompt, std::move(target), source);
}

Trace::~Trace() = default;

void Trace::observe(const Scope& scope, const Program& program, const Op* op,
                    const Result& declared, const Sharded& value) {
  if (op != nullptr) file_->add(scope, program, *op, declared, value);
}

void Trace::write(std::string_view ended) { file_->write(ended); }

}  // namespace shardproof
