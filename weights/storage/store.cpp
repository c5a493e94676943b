#include "weights/storage/store.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <hdf5.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "weights/base/error.h"
#include "weights/base/memory.h"
#include "weights/hdf5/detail/reader.h"
#include "weights/hdf5/detail/writer.h"
#include "weights/maps/load_model.h"
#include "weights/model/registry.h"
#include "weights/text/text_model.h"

namespace shardproof {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFormatName = "shardproof-weights";
// A file may declare kCompression times its own size plus kSpare bytes: weights with one bit of
// information in 32 compress by half of kCompression.
constexpr std::uint64_t kCompression = 64;
constexpr std::uint64_t kSpare = std::uint64_t{64} << 20;
constexpr std::uint64_t kMostChunks = std::uint64_t{1} << 16;
// Deflate's best ratio: a smaller stored share cannot hold the declared bytes.
constexpr std::uint64_t kBestCompression = 1032;

/// Returns whether weights stored as `type` hold this weight as codes.
bool is_codes(const WeightSpec& spec, NumberFormat type) {
  return spec.int8 && type == NumberFormat::int8;
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
  /// Checks the whole file; of weights that are read on demand each is read again.
  static Weights read(const std::shared_ptr<const WeightsFile>& file, std::size_t room) {
    std::map<std::string, Shape> shapes;
    for (const auto& [name, spec] : file->specs_) shapes.emplace(name, spec.shape);
    const auto read = [file](const std::string& name) { return file->checked(name); };
    Weights weights(*file->config_, std::move(shapes), read, file->type_, room);
    if (weights.on_demand())
      for (const auto& [name, spec] : file->specs_) file->checked(name);
    return weights;
  }

  explicit WeightsFile(const fs::path& path) : path_(path.string()), root_(open()) {
    if (text(root_, "format") != kFormatName)
      refuse("weights_open", "is not a Shardproof weights file");
    type_ = stored_type();
    config_ = model();
    const std::vector<WeightSpec> specs = weight_specs(*config_, type_);
    check_names(specs);
    check_sizes(specs);
    for (const WeightSpec& spec : specs) check_inflation(spec);
    for (const WeightSpec& spec : specs) specs_.emplace(spec.name, spec);
  }

 private:
  [[noreturn]] void refuse(std::string_view label, std::string_view reason) const {
    throw Error(label, fmt::format("{:?} {}", path_, reason));
  }

  Hdf5Object open() {
    std::error_code failed;
    const fs::file_status status = fs::status(path_, failed);
    if (!fs::exists(status)) refuse("weights_open", failed ? failed.message() : "does not exist");
    if (!fs::is_regular_file(status))
      refuse("weights_open", "is not a regular file: HDF5 does not read a stream");
    size_ = fs::file_size(path_, failed);
    if (failed) refuse("weights_open", failed.message());
    if (::access(path_.c_str(), R_OK) != 0)
      refuse("weights_open", "cannot be read: permission denied");
    Hdf5Handle file(H5Fopen(path_.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
    if (!file)
      refuse("weights_open", "is not an HDF5 file, or is truncated: " + last_hdf5_failure().reason);
    return {std::move(file), "weights_open", fmt::format("{:?}", path_)};
  }

  /// Returns nullopt unless the attribute is one text (of fixed or variable length).
  std::optional<std::string> text(const Hdf5Object& object, const char* name) const {
    constexpr std::size_t kLongest = 4096;
    if (!object.has(name)) return std::nullopt;
    const Hdf5Attribute attribute = object.attribute(name, object.what());
    if (attribute.kind() != H5T_STRING || attribute.count() != 1) return std::nullopt;
    const auto texts = attribute.texts(kLongest);
    if (!texts)
      refuse("weights_open", fmt::format("has a {} of more than {} bytes", name, kLongest));
    return texts->front();
  }

  /// Returns nullopt unless the attribute is one integer.
  static std::optional<std::int64_t> integer(const Hdf5Object& object, const char* name) {
    const Hdf5Attribute attribute = object.attribute(name, object.what());
    if (attribute.kind() != H5T_INTEGER || attribute.count() != 1) return std::nullopt;
    const auto values = attribute.numbers<std::int64_t>(H5T_NATIVE_INT64);
    return values ? std::optional(values->front()) : std::nullopt;
  }

  /// Returns the weight type of the file's version.
  NumberFormat stored_type() const {
    if (!root_.has("version")) refuse("weights_version", "states no version");
    const std::optional<std::int64_t> version = integer(root_, "version");
    if (!version) refuse("weights_version", "states a version that is not an integer");
    for (const NumberFormat type : {NumberFormat::f32, NumberFormat::int8})
      if (*version == weights_format(type)) return type;
    refuse("weights_version",
           fmt::format("is version {}; legal: {} (f32 weights), {} (int8 weights)", *version,
                       weights_format(NumberFormat::f32), weights_format(NumberFormat::int8)));
  }

  ModelConfig model() const {
    const std::optional<std::string> line = text(root_, "model");
    if (!line) refuse("weights_model", "names no model");
    try {
      return read_model(*line);
    } catch (const Error& error) {
      refuse("weights_model", fmt::format("has a bad model line: {}", error.what()));
    }
  }

  // Checks that the root's links are exactly the model's datasets, stored in this file.
  void check_names(const std::vector<WeightSpec>& specs) const {
    std::set<std::string, std::less<>> missing;
    for (const WeightSpec& spec : specs) missing.insert(spec.name);
    for (const Hdf5Object::Link& link : root_.links()) {
      if (missing.erase(link.name) == 0)
        refuse("weights_name",
               fmt::format("holds {:?}, which is not a weight of its model in version {}",
                           link.name, weights_format(type_)));
      if (!link.hard)
        refuse("weights_name", fmt::format("holds {} as a link, not as a dataset", link.name));
    }
    if (!missing.empty())
      refuse("weights_name", fmt::format("lacks {} of its model's {} weights, {} first",
                                         missing.size(), specs.size(), *missing.begin()));
  }

  // Checks the sizes of all datasets before any is read.
  void check_sizes(const std::vector<WeightSpec>& specs) const {
    std::uint64_t declared = 0;
    std::uint64_t chunk = 0;
    std::uint64_t chunks = 0;
    for (const WeightSpec& spec : specs) {
      const Hdf5Dataset data = dataset(spec);
      check_type(spec, data);
      check_shape(spec, data);
      const Hdf5Dataset::Chunks stored = check_storage(spec, data);
      chunk = std::max(chunk, stored.bytes);
      chunks = std::max(chunks, stored.count);
      // In memory, codes are f32, too.
      declared += static_cast<std::uint64_t>(element_count(spec.shape)) * sizeof(float);
    }
    declared += chunk;
    if (declared > kSpare && (declared - kSpare) / kCompression > size_)
      refuse("weights_open",
             fmt::format("declares {} bytes of weights and a chunk in a file of {}: more than {} "
                         "times that and "
                         "{}; no weights compress so far, leave the compression out",
                         declared, size_, kCompression, show_bytes(static_cast<double>(kSpare))));
    // HDF5 doubles its buffer for inflated data, and holds it beside the stored data.
    require_memory(
        bytes_in_memory(specs) + 4.0 * static_cast<double>(chunk) +
            static_cast<double>(Hdf5Dataset::kChunkKeeping) * static_cast<double>(chunks),
        fmt::format("{:?} declares weights that need about", path_),
        "a file of a smaller model fits");
  }

  // Checks, after check_sizes, that every chunk inflates to its declared size at most.
  void check_inflation(const WeightSpec& spec) const {
    const std::string fault = dataset(spec).inflation_fault();
    if (!fault.empty())
      refuse("weights_open", fmt::format("cannot be read: {} {}", spec.name, fault));
  }

  /// Returns whether the file holds this weight as a matrix of codes.
  bool is_int8(const WeightSpec& spec) const { return is_codes(spec, type_); }

  std::uint64_t element_bytes(const WeightSpec& spec) const {
    return is_int8(spec) ? sizeof(std::int8_t) : sizeof(float);
  }

  Hdf5Dataset dataset(const WeightSpec& spec) const {
    Hdf5Object object = root_.object(spec.name, root_.what());
    if (!object.is(H5I_DATASET))
      refuse("weights_name", fmt::format("holds {}, but not as a dataset", spec.name));
    return Hdf5Dataset(std::move(object));
  }

  Tensor checked(const std::string& name) const {
    const WeightSpec& spec = specs_.at(name);
    const std::lock_guard lock(reading_);  // HDF5 may be built for one thread
    const Hdf5Silence silence;
    Tensor read = tensor(spec);
    try {
      validate(spec, read, type_);
    } catch (const Error& error) {
      refuse(error.label(), error.message());
    }
    return read;
  }

  Tensor tensor(const WeightSpec& spec) const {
    const Hdf5Dataset data = dataset(spec);
    try {
      Tensor tensor(spec.shape);
      if (const std::optional<Hdf5Failure> failure =
              data.read_rows(0, data.extents().front(), H5T_NATIVE_FLOAT, tensor.data.data()))
        refuse(failure->filter ? "weights_checksum" : "weights_open",
               fmt::format("has corrupt data in {}: {}", spec.name, failure->reason));
      return tensor;
    } catch (const std::bad_alloc&) {
      refuse("weights_open", fmt::format("does not fit in memory: {} has {} elements", spec.name,
                                         element_count(spec.shape)));
    }
  }

  /// Requires equality with a known type: HDF5 would read beyond the element of a type that states
  /// its bits elsewhere. A single byte may state either byte order.
  static bool holds_f32(const Hdf5Dataset& data) {
    return H5Tequal(data.type(), H5T_IEEE_F32LE) > 0;
  }
  static bool holds_int8(const Hdf5Dataset& data) {
    return H5Tequal(data.type(), H5T_STD_I8LE) > 0 || H5Tequal(data.type(), H5T_STD_I8BE) > 0;
  }

  void check_type(const WeightSpec& spec, const Hdf5Dataset& data) const {
    if (is_int8(spec) ? holds_int8(data) : holds_f32(data)) return;
    constexpr std::string_view kF32 = "32-bit little-endian IEEE floats";
    constexpr std::string_view kInt8 = "signed 8-bit integers";
    const std::string found = holds_f32(data) ? std::string(kF32)
                              : holds_int8(data)
                                  ? std::string(kInt8)
                                  : fmt::format("another type of {} bytes", data.element_bytes());
    refuse("weights_type",
           fmt::format("is version {} and must hold {} as {}, it is {}", weights_format(type_),
                       spec.name, is_int8(spec) ? kInt8 : kF32, found));
  }

  void check_shape(const WeightSpec& spec, const Hdf5Dataset& data) const {
    const std::vector<hsize_t>& found = data.extents();
    const std::optional<std::string> dims = text(data, "dims");
    if (!std::equal(found.begin(), found.end(), spec.shape.begin(), spec.shape.end(),
                    [](hsize_t a, std::int64_t b) { return std::cmp_equal(a, b); }) ||
        dims != spec.dims)
      refuse("weights_shape",
             fmt::format("must hold {} as {} [{}], it is {:?} [{}]", spec.name, spec.dims,
                         fmt::join(spec.shape, ", "), dims.value_or(""), fmt::join(found, ", ")));
  }

  // Checks, before memory is allocated, that the data are in this file and that enough are stored.
  // Returns the chunks, none for a contiguous dataset.
  Hdf5Dataset::Chunks check_storage(const WeightSpec& spec, const Hdf5Dataset& data) const {
    if (!data.is_inside())
      refuse("weights_open", fmt::format("stores {} outside of itself", spec.name));
    const std::uint64_t stored = data.stored_bytes();
    const std::uint64_t declared =
        static_cast<std::uint64_t>(element_count(spec.shape)) * element_bytes(spec);
    if (stored > size_ || declared / kBestCompression > stored || stored == 0)
      refuse("weights_open", fmt::format("declares {} bytes of {} but stores {} in a file of {}",
                                         declared, spec.name, stored, size_));
    Hdf5Dataset::Chunks chunks = data.chunks();
    if (chunks.count > kMostChunks)
      refuse("weights_open",
             fmt::format("stores {} in {} chunks; at most {} are read, so use larger ones",
                         spec.name, chunks.count, kMostChunks));
    return chunks;
  }

  std::string path_;
  std::uint64_t size_ = 0;
  Hdf5Silence silence_;  // precedes root_, so that closing the file is silent, too
  Hdf5Object root_;
  NumberFormat type_ = NumberFormat::f32;
  std::optional<ModelConfig> config_;
  std::map<std::string, WeightSpec> specs_;
  mutable std::mutex reading_;
};

}  // namespace

int weights_format(NumberFormat type) { return type == NumberFormat::int8 ? 2 : 1; }

void save_weights(const Weights& weights, const fs::path& path) {
  validate(weights);
  Hdf5Writer file(path, "weights_write");
  {
    const Hdf5Writer::Object root = file.root();
    root.put("format", kFormatName);
    root.put("version", weights_format(weights.stored_type()));
    root.put("model", print_model(weights.config()));
    for (const WeightSpec& spec : weight_specs(weights.config(), weights.stored_type())) {
      const std::shared_ptr<const Tensor> weight = weights.at(spec.name);
      constexpr auto kHow = Hdf5Writer::Storage::checked;
      Hdf5Writer::Object data =
          is_codes(spec, weights.stored_type())
              ? file.dataset(root, spec.name, weight->shape, int8_of(*weight), kHow)
              : file.dataset(root, spec.name, weight->shape, weight->data, kHow);
      data.put("dims", spec.dims);
      data.close();
    }
  }
  file.write();
}

Weights load_weights(const fs::path& path, std::size_t room) {
  return WeightsFile::read(std::make_shared<const WeightsFile>(path), room);
}

}  // namespace shardproof
