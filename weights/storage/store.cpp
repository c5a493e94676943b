#include "weights/storage/store.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <new>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "weights/base/error.h"
#include "weights/base/memory.h"
#include "weights/hdf5/detail/reader.h"
#include "weights/hdf5/detail/writer.h"
#include "weights/model/registry.h"

namespace shardproof {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFormatName = "shardproof-weights";
// A file may declare kCompression times its own size plus kSpare bytes: weights with one bit of
// information in 32 compress by half of kCompression.
constexpr std::uint64_t kCompression = 64;
constexpr std::uint64_t kSpare = std::uint64_t{64} << 20;
// Approximate bytes that HDF5 holds for each chunk of a dataset being read, of any size.
constexpr double kChunkKeeping = 4096.0;
constexpr std::uint64_t kMostChunks = std::uint64_t{1} << 16;
// Deflate's best ratio: a smaller stored share cannot hold the declared bytes.
constexpr std::uint64_t kBestCompression = 1032;

/// Returns whether weights stored as `type` hold this weight as codes.
bool is_codes(const WeightSpec& spec, WeightType type) {
  return spec.int8 && type == WeightType::int8;
}

std::vector<std::int8_t> int8_of(const Tensor& codes) {
  std::vector<std::int8_t> out(codes.data.size());
  std::transform(codes.data.begin(), codes.data.end(), out.begin(),
                 [](float code) { return static_cast<std::int8_t>(code); });
  return out;
}

/// Reads a weights file; nothing is read before all declared sizes were found acceptable.
class WeightsFile {
 public:
  explicit WeightsFile(const fs::path& path) : path_(path.string()), file_(path, "weights_open") {}

  Weights read() {
    if (file_.text("format") != kFormatName)
      file_.refuse("weights_open", "is not a Shardproof weights file");
    type_ = stored_type();
    const ModelConfig config = model();
    const std::vector<WeightSpec> specs = weight_specs(config, type_);
    check_names(specs);
    check_sizes(specs);
    for (const WeightSpec& spec : specs) check_inflation(spec);
    std::map<std::string, Tensor> tensors;
    for (const WeightSpec& spec : specs) tensors.emplace(spec.name, tensor(spec));
    Weights weights(config, std::move(tensors), type_);
    try {
      validate(weights);
    } catch (const Error& error) {
      file_.refuse(error.label(), after_label(error));
    }
    return weights;
  }

 private:
  using Dataset = Hdf5Reader::Dataset;

  static std::string after_label(const Error& error) {
    return std::string(error.what()).substr(error.label().size() + 2);
  }

  /// Returns the weight type of the file's version.
  WeightType stored_type() const {
    if (!file_.has("version")) file_.refuse("weights_version", "states no version");
    const std::optional<std::int64_t> version = file_.integer("version");
    if (!version) file_.refuse("weights_version", "states a version that is not an integer");
    for (const WeightType type : {WeightType::f32, WeightType::int8})
      if (*version == weights_format(type)) return type;
    file_.refuse("weights_version",
                 fmt::format("is version {}; legal: {} (f32 weights), {} (int8 weights)", *version,
                             weights_format(WeightType::f32), weights_format(WeightType::int8)));
  }

  ModelConfig model() const {
    const std::optional<std::string> line = file_.text("model");
    if (!line) file_.refuse("weights_model", "names no model");
    try {
      return parse_model(*line);
    } catch (const Error& error) {
      file_.refuse("weights_model", fmt::format("has a bad model line: {}", error.what()));
    }
  }

  // Checks that the root's links are exactly the model's datasets, stored in this file.
  void check_names(const std::vector<WeightSpec>& specs) const {
    std::set<std::string, std::less<>> missing;
    for (const WeightSpec& spec : specs) missing.insert(spec.name);
    for (const Hdf5Reader::Link& link : file_.links()) {
      if (missing.erase(link.name) == 0)
        file_.refuse("weights_name",
                     fmt::format("holds {:?}, which is not a weight of its model in version {}",
                                 link.name, weights_format(type_)));
      if (!link.hard)
        file_.refuse("weights_name",
                     fmt::format("holds {} as a link, not as a dataset", link.name));
    }
    if (!missing.empty())
      file_.refuse("weights_name", fmt::format("lacks {} of its model's {} weights, {} first",
                                               missing.size(), specs.size(), *missing.begin()));
  }

  // Checks the sizes of all datasets before any is read.
  void check_sizes(const std::vector<WeightSpec>& specs) const {
    std::uint64_t declared = 0;
    std::uint64_t chunk = 0;
    std::uint64_t chunks = 0;
    for (const WeightSpec& spec : specs) {
      const Dataset data = dataset(spec);
      check_type(spec, data);
      check_shape(spec, data);
      const Chunks stored = check_storage(spec, data);
      chunk = std::max(chunk, stored.bytes);
      chunks = std::max(chunks, stored.count);
      // In memory, codes are f32, too.
      declared += static_cast<std::uint64_t>(element_count(spec.shape)) * sizeof(float);
    }
    declared += chunk;
    if (declared > kSpare && (declared - kSpare) / kCompression > file_.size())
      file_.refuse(
          "weights_open",
          fmt::format("declares {} bytes of weights and a chunk in a file of {}: more than {} "
                      "times that and "
                      "{}; no weights compress so far, leave the compression out",
                      declared, file_.size(), kCompression,
                      show_bytes(static_cast<double>(kSpare))));
    // HDF5 doubles its buffer for inflated data, and holds it beside the stored data.
    require_memory(static_cast<double>(declared) + 3.0 * static_cast<double>(chunk) +
                       kChunkKeeping * static_cast<double>(chunks),
                   fmt::format("{:?} declares weights that need about", path_),
                   "a file of a smaller model fits");
  }

  // Checks, after check_sizes, that every chunk inflates to its declared size at most.
  void check_inflation(const WeightSpec& spec) const {
    const std::string fault = dataset(spec).inflation_fault(spec.shape);
    if (!fault.empty())
      file_.refuse("weights_open", fmt::format("cannot be read: {} {}", spec.name, fault));
  }

  struct Chunks {
    std::uint64_t bytes = 0;  // of one chunk
    std::uint64_t count = 0;
  };

  /// Returns whether the file holds this weight as a matrix of codes.
  bool is_int8(const WeightSpec& spec) const { return is_codes(spec, type_); }

  std::uint64_t element_bytes(const WeightSpec& spec) const {
    return is_int8(spec) ? sizeof(std::int8_t) : sizeof(float);
  }

  Dataset dataset(const WeightSpec& spec) const {
    std::optional<Dataset> data = file_.dataset(spec.name);
    if (!data)
      file_.refuse("weights_name", fmt::format("holds {}, but not as a dataset", spec.name));
    return std::move(*data);
  }

  Tensor tensor(const WeightSpec& spec) const {
    const Dataset data = dataset(spec);
    try {
      Tensor tensor(spec.shape);
      if (const std::optional<Hdf5Failure> failure = data.read(tensor.data))
        file_.refuse(failure->filter ? "weights_checksum" : "weights_open",
                     fmt::format("has corrupt data in {}: {}", spec.name, failure->reason));
      return tensor;
    } catch (const std::bad_alloc&) {
      file_.refuse("weights_open", fmt::format("does not fit in memory: {} has {} elements",
                                               spec.name, element_count(spec.shape)));
    }
  }

  void check_type(const WeightSpec& spec, const Dataset& data) const {
    if (is_int8(spec) ? data.is_int8() : data.is_f32()) return;
    constexpr std::string_view kF32 = "32-bit little-endian IEEE floats";
    constexpr std::string_view kInt8 = "signed 8-bit integers";
    const std::string found = data.is_f32() ? std::string(kF32)
                              : data.is_int8()
                                  ? std::string(kInt8)
                                  : fmt::format("another type of {} bytes", data.element_bytes());
    file_.refuse("weights_type", fmt::format("is version {} and must hold {} as {}, it is {}",
                                             weights_format(type_), spec.name,
                                             is_int8(spec) ? kInt8 : kF32, found));
  }

  void check_shape(const WeightSpec& spec, const Dataset& data) const {
    const std::vector<std::uint64_t> found = data.shape();
    const std::optional<std::string> dims = data.text("dims");
    if (!std::equal(found.begin(), found.end(), spec.shape.begin(), spec.shape.end(),
                    [](std::uint64_t a, std::int64_t b) { return std::cmp_equal(a, b); }) ||
        dims != spec.dims)
      file_.refuse("weights_shape", fmt::format("must hold {} as {} [{}], it is {:?} [{}]",
                                                spec.name, spec.dims, fmt::join(spec.shape, ", "),
                                                dims.value_or(""), fmt::join(found, ", ")));
  }

  // Checks, before memory is allocated, that the data are in this file and that enough are stored.
  // Returns the chunks, none for a contiguous dataset.
  Chunks check_storage(const WeightSpec& spec, const Dataset& data) const {
    if (!data.is_inside())
      file_.refuse("weights_open", fmt::format("stores {} outside of itself", spec.name));
    const std::uint64_t stored = data.stored_bytes();
    const std::uint64_t declared =
        static_cast<std::uint64_t>(element_count(spec.shape)) * element_bytes(spec);
    if (stored > file_.size() || declared / kBestCompression > stored || stored == 0)
      file_.refuse("weights_open",
                   fmt::format("declares {} bytes of {} but stores {} in a file of {}", declared,
                               spec.name, stored, file_.size()));
    const std::vector<std::uint64_t> chunk = data.chunk();
    if (chunk.empty()) return {};
    Chunks chunks{element_bytes(spec), 1};  // no overflow: HDF5 limits a chunk to below 4 GiB
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      chunks.bytes *= chunk[i];
      chunks.count *= (static_cast<std::uint64_t>(spec.shape[i]) + chunk[i] - 1) / chunk[i];
    }
    if (chunks.count > kMostChunks)
      file_.refuse("weights_open",
                   fmt::format("stores {} in {} chunks; at most {} are read, so use larger ones",
                               spec.name, chunks.count, kMostChunks));
    return chunks;
  }

  std::string path_;
  Hdf5Reader file_;
  WeightType type_ = WeightType::f32;
};

}  // namespace

int weights_format(WeightType type) { return type == WeightType::int8 ? 2 : 1; }

void save_weights(const Weights& weights, const fs::path& path) {
  validate(weights);
  Hdf5Writer file(path, "weights_write");
  {
    const Hdf5Writer::Object root = file.root();
    root.put("format", kFormatName);
    root.put("version", weights_format(weights.stored_type()));
    root.put("model", print_model(weights.config()));
    for (const WeightSpec& spec : weight_specs(weights.config(), weights.stored_type())) {
      const Tensor& tensor = weights.at(spec.name);
      constexpr auto kHow = Hdf5Writer::Storage::checked;
      Hdf5Writer::Object data =
          is_codes(spec, weights.stored_type())
              ? file.dataset(root, spec.name, tensor.shape, int8_of(tensor), kHow)
              : file.dataset(root, spec.name, tensor.shape, tensor.data, kHow);
      data.put("dims", spec.dims);
      data.close();
    }
  }
  file.write();
}

Weights load_weights(const fs::path& path) { return WeightsFile(path).read(); }

}  // namespace shardproof
