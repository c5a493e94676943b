#include "weights/store.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <new>
#include <set>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "weights/error.h"
#include "weights/hdf5_attribute.h"
#include "weights/hdf5_handle.h"
#include "weights/hdf5_image.h"
#include "weights/inflation.h"
#include "weights/memory.h"
#include "weights/registry.h"
#include "weights/replace_file.h"

namespace shardproof {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFormatName = "shardproof-weights";
constexpr std::size_t kLongestText = 4096;
constexpr hsize_t kChunkElements = hsize_t{1} << 18;  // 1 MiB of f32
// What is declared may be this many times the file, and kSpare more: weights of one bit each, in
// 32, compress by half as much.
constexpr std::uint64_t kCompression = 64;
constexpr std::uint64_t kSpare = std::uint64_t{64} << 20;
// HDF5 keeps about this much for each chunk of a dataset that it reads, however small the chunk is.
constexpr double kChunkKeeping = 4096.0;
constexpr std::uint64_t kMostChunks = std::uint64_t{1} << 16;
// Deflate's best ratio: fewer stored bytes than this share cannot hold what a dataset declares.
constexpr std::uint64_t kBestCompression = 1032;

// ---- writing ----

class Writer {
 public:
  explicit Writer(const fs::path& target) : target_(target.string()) { need(image_.file() >= 0); }

  void root(const ModelConfig& config) {
    need(put_attribute(image_.file(), "format", kFormatName) &&
         put_attribute(image_.file(), "version", kWeightsFormat) &&
         put_attribute(image_.file(), "model", print_model(config)));
  }

  void dataset(const WeightSpec& spec, const Tensor& tensor) {
    const std::vector<hsize_t> dims(tensor.shape.begin(), tensor.shape.end());
    const std::vector<hsize_t> chunk = chunk_of(dims);
    const int rank = static_cast<int>(dims.size());
    Hdf5Handle space(H5Screate_simple(rank, dims.data(), nullptr), H5Sclose);
    Hdf5Handle options(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    // Without times: the same content gives the same bytes, whenever it is written.
    need(options && H5Pset_obj_track_times(options.get(), false) >= 0 &&
         H5Pset_chunk(options.get(), rank, chunk.data()) >= 0 &&
         H5Pset_fletcher32(options.get()) >= 0);
    Hdf5Handle data(H5Dcreate2(image_.file(), spec.name.c_str(), H5T_IEEE_F32LE, space.get(),
                               H5P_DEFAULT, options.get(), H5P_DEFAULT),
                    H5Dclose);
    need(data && H5Dwrite(data.get(), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT,
                          tensor.data.data()) >= 0);
    need(put_attribute(data.get(), "dims", spec.dims) && data.close());
  }

  void commit() {
    const std::span<const char> image = image_.close();
    need(!image.empty());
    replace_file(target_, image, "weights_write");
  }

 private:
  void need(bool held) const {
    if (!held)
      throw Error("weights_write", fmt::format("{:?}: {}", target_, last_hdf5_failure().reason));
  }

  // Whole minor dims while they fit, then a share of the next.
  static std::vector<hsize_t> chunk_of(const std::vector<hsize_t>& dims) {
    std::vector<hsize_t> chunk(dims.size(), 1);
    hsize_t left = kChunkElements;
    for (std::size_t i = dims.size(); i-- > 0;) {
      chunk[i] = std::min(dims[i], left);
      left /= chunk[i];
    }
    return chunk;
  }

  std::string target_;
  Hdf5Image image_;
};

// ---- reading ----

class Reader {
 public:
  explicit Reader(const fs::path& path) : path_(path.string()), file_(open()) {}

  Weights read() {
    std::string format;
    if (!text(file_.get(), "format", format) || format != kFormatName) {
      refuse("weights_open", "is not a Shardproof weights file");
    }
    check_version();
    const ModelConfig config = model();
    const std::vector<WeightSpec> specs = weight_specs(config);
    check_names(specs);
    check_sizes(specs);
    for (const WeightSpec& spec : specs) check_inflation(spec);
    std::map<std::string, Tensor> tensors;
    for (const WeightSpec& spec : specs) tensors.emplace(spec.name, dataset(spec));
    Weights weights(config, std::move(tensors));
    try {
      validate(weights);
    } catch (const Error& error) {
      refuse(error.label(), after_label(error));
    }
    return weights;
  }

 private:
  using Link = std::pair<std::string, H5L_type_t>;

  [[noreturn]] void refuse(std::string_view label, std::string_view reason) const {
    throw Error(label, fmt::format("{:?} {}", path_, reason));
  }

  void need(bool held) const {
    if (!held) refuse("weights_open", "cannot be read: " + last_hdf5_failure().reason);
  }

  static std::string after_label(const Error& error) {
    return std::string(error.what()).substr(error.label().size() + 2);
  }

  Hdf5Handle open() {
    std::error_code failed;
    const fs::file_status status = fs::status(path_, failed);
    if (!fs::exists(status)) {
      refuse("weights_open", failed ? failed.message() : "does not exist");
    }
    if (!fs::is_regular_file(status))
      refuse("weights_open", "is not a regular file: HDF5 does not read a stream");
    size_ = fs::file_size(path_, failed);
    if (failed) refuse("weights_open", failed.message());
    if (::access(path_.c_str(), R_OK) != 0) {
      refuse("weights_open", "cannot be read: permission denied");
    }
    Hdf5Handle file(H5Fopen(path_.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
    if (!file) {
      refuse("weights_open", "is no HDF5 file, or truncated: " + last_hdf5_failure().reason);
    }
    return file;
  }

  // A scalar string attribute, of fixed or variable length; false if there is none such.
  bool text(hid_t object, const char* name, std::string& out) const {
    if (H5Aexists(object, name) <= 0) return false;
    const Hdf5Handle attribute(H5Aopen(object, name, H5P_DEFAULT), H5Aclose);
    need(static_cast<bool>(attribute));
    const Hdf5Handle type(H5Aget_type(attribute.get()), H5Tclose);
    const Hdf5Handle space(H5Aget_space(attribute.get()), H5Sclose);
    need(type && space);
    if (H5Tget_class(type.get()) != H5T_STRING || H5Sget_simple_extent_npoints(space.get()) != 1) {
      return false;
    }
    if (H5Tis_variable_str(type.get()) > 0) {
      char* value = nullptr;
      need(H5Aread(attribute.get(), type.get(), &value) >= 0);
      if (value != nullptr) out.assign(value, ::strnlen(value, kLongestText + 1));
      H5Dvlen_reclaim(type.get(), space.get(), H5P_DEFAULT, &value);
    } else {
      const std::size_t size = H5Tget_size(type.get());
      if (size > kLongestText)
        refuse("weights_open", fmt::format("has a {} of {} bytes", name, size));
      std::string value(size, '\0');
      need(H5Aread(attribute.get(), type.get(), value.data()) >= 0);
      out = value.substr(0, value.find('\0'));
    }
    if (out.size() > kLongestText) {
      refuse("weights_open", fmt::format("has a {} of more than {} bytes", name, kLongestText));
    }
    return true;
  }

  void check_version() const {
    if (H5Aexists(file_.get(), "version") <= 0) refuse("weights_version", "states no version");
    const Hdf5Handle attribute(H5Aopen(file_.get(), "version", H5P_DEFAULT), H5Aclose);
    need(static_cast<bool>(attribute));
    const Hdf5Handle type(H5Aget_type(attribute.get()), H5Tclose);
    const Hdf5Handle space(H5Aget_space(attribute.get()), H5Sclose);
    need(type && space);
    if (H5Tget_class(type.get()) != H5T_INTEGER || H5Sget_simple_extent_npoints(space.get()) != 1) {
      refuse("weights_version", "states a version that is no integer");
    }
    long long version = 0;
    need(H5Aread(attribute.get(), H5T_NATIVE_LLONG, &version) >= 0);
    if (version != kWeightsFormat) {
      refuse("weights_version",
             fmt::format("is version {}; this build reads version {}", version, kWeightsFormat));
    }
  }

  ModelConfig model() const {
    std::string line;
    if (!text(file_.get(), "model", line)) refuse("weights_model", "names no model");
    try {
      return parse_model(line);
    } catch (const Error& error) {
      refuse("weights_model", fmt::format("has a bad model line: {}", error.what()));
    }
  }

  // Every link of the root is one of the model's datasets, stored in this file.
  void check_names(const std::vector<WeightSpec>& specs) const {
    std::set<std::string, std::less<>> missing;
    for (const WeightSpec& spec : specs) missing.insert(spec.name);
    for (const auto& [name, type] : links()) {
      if (missing.erase(name) == 0) {
        refuse("weights_name", fmt::format("holds {:?}, which is no weight of its model", name));
      }
      if (type != H5L_TYPE_HARD) {
        refuse("weights_name", fmt::format("holds {} as a link, not as a dataset", name));
      }
    }
    if (!missing.empty()) {
      refuse("weights_name", fmt::format("lacks {} of its model's {} weights, {} first",
                                         missing.size(), specs.size(), *missing.begin()));
    }
  }

  // The root's links, in the file's own order: HDF5 1.10 crashes on corrupt metadata when it sorts.
  std::vector<Link> links() const {
    std::vector<Link> found;
    const auto visit = [](hid_t, const char* name, const H5L_info_t* link, void* out) -> herr_t {
      static_cast<std::vector<Link>*>(out)->emplace_back(name, link->type);
      return 0;
    };
    need(H5Literate(file_.get(), H5_INDEX_NAME, H5_ITER_NATIVE, nullptr, visit, &found) >= 0);
    return found;
  }

  // Of everything that is going to be read, before any of it is.
  void check_sizes(const std::vector<WeightSpec>& specs) const {
    std::uint64_t declared = 0;
    std::uint64_t chunk = 0;
    std::uint64_t chunks = 0;
    for (const WeightSpec& spec : specs) {
      const Hdf5Handle data = open_dataset(spec);
      check_type(spec, data.get());
      check_shape(spec, data.get());
      const Chunks stored = check_storage(spec, data.get());
      chunk = std::max(chunk, stored.bytes);
      chunks = std::max(chunks, stored.count);
      declared += declared_bytes(spec);
    }
    declared += chunk;
    if (declared > kSpare && (declared - kSpare) / kCompression > size_)
      refuse("weights_open",
             fmt::format("declares {} bytes of weights and a chunk in a file of {}: more than {} "
                         "times that and "
                         "{}; no weights compress so far, leave the compression out",
                         declared, size_, kCompression, show_bytes(static_cast<double>(kSpare))));
    // HDF5 doubles its room for what is inflated, and keeps it beside what is stored.
    require_memory(static_cast<double>(declared) + 3.0 * static_cast<double>(chunk) +
                       kChunkKeeping * static_cast<double>(chunks),
                   fmt::format("{:?} declares weights that need about", path_),
                   "a file of a smaller model fits");
  }

  // Then of every chunk, whether it inflates to what it declares.
  void check_inflation(const WeightSpec& spec) const {
    const Hdf5Handle data = open_dataset(spec);
    const Hdf5Handle options(H5Dget_create_plist(data.get()), H5Pclose);
    need(static_cast<bool>(options));
    if (H5Pget_layout(options.get()) != H5D_CHUNKED) return;
    const std::string fault = unbounded_inflation(data.get(), options.get(), spec.shape);
    if (!fault.empty())
      refuse("weights_open", fmt::format("cannot be read: {} {}", spec.name, fault));
  }

  struct Chunks {
    std::uint64_t bytes = 0;  // of one
    std::uint64_t count = 0;
  };

  Chunks chunks_of(hid_t options, const WeightSpec& spec) const {
    std::vector<hsize_t> chunk(spec.shape.size());
    need(H5Pget_chunk(options, static_cast<int>(chunk.size()), chunk.data()) >= 0);
    Chunks chunks{sizeof(float), 1};  // HDF5 itself keeps a chunk below 4 GiB
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      chunks.bytes *= chunk[i];
      chunks.count *= (static_cast<std::uint64_t>(spec.shape[i]) + chunk[i] - 1) / chunk[i];
    }
    if (chunks.count > kMostChunks)
      refuse("weights_open",
             fmt::format("stores {} in {} chunks; at most {} are read, so larger ones are wanted",
                         spec.name, chunks.count, kMostChunks));
    return chunks;
  }

  static std::uint64_t declared_bytes(const WeightSpec& spec) {
    return static_cast<std::uint64_t>(element_count(spec.shape)) * sizeof(float);
  }

  Hdf5Handle open_dataset(const WeightSpec& spec) const {
    Hdf5Handle data(H5Oopen(file_.get(), spec.name.c_str(), H5P_DEFAULT), H5Oclose);
    need(static_cast<bool>(data));
    if (H5Iget_type(data.get()) != H5I_DATASET) {
      refuse("weights_name", fmt::format("holds {}, but not as a dataset", spec.name));
    }
    return data;
  }

  Tensor dataset(const WeightSpec& spec) const {
    const Hdf5Handle data = open_dataset(spec);
    try {
      Tensor tensor(spec.shape);
      if (H5Dread(data.get(), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, tensor.data.data()) <
          0) {
        const Hdf5Failure failure = last_hdf5_failure();
        refuse(failure.filter ? "weights_checksum" : "weights_open",
               fmt::format("has corrupt data in {}: {}", spec.name, failure.reason));
      }
      return tensor;
    } catch (const std::bad_alloc&) {
      refuse("weights_open", fmt::format("does not fit in memory: {} has {} elements", spec.name,
                                         element_count(spec.shape)));
    }
  }

  void check_type(const WeightSpec& spec, hid_t data) const {
    const Hdf5Handle type(H5Dget_type(data), H5Tclose);
    need(static_cast<bool>(type));
    if (H5Tequal(type.get(), H5T_IEEE_F32LE) <= 0) {
      refuse("weights_type", fmt::format("must hold {} as 32-bit little-endian IEEE floats, it is "
                                         "another type of {} bytes",
                                         spec.name, H5Tget_size(type.get())));
    }
  }

  void check_shape(const WeightSpec& spec, hid_t data) const {
    const Hdf5Handle space(H5Dget_space(data), H5Sclose);
    need(static_cast<bool>(space));
    std::vector<hsize_t> found;
    if (H5Sget_simple_extent_type(space.get()) == H5S_SIMPLE) {
      const int rank = H5Sget_simple_extent_ndims(space.get());
      need(rank >= 0);
      found.resize(static_cast<std::size_t>(rank));
      need(H5Sget_simple_extent_dims(space.get(), found.data(), nullptr) >= 0);
    }
    std::string dims;
    const bool has_dims = text(data, "dims", dims);
    if (!std::equal(found.begin(), found.end(), spec.shape.begin(), spec.shape.end(),
                    [](hsize_t a, std::int64_t b) { return std::cmp_equal(a, b); }) ||
        !has_dims || dims != spec.dims) {
      refuse("weights_shape",
             fmt::format("must hold {} as {} [{}], it is {:?} [{}]", spec.name, spec.dims,
                         fmt::join(spec.shape, ", "), dims, fmt::join(found, ", ")));
    }
  }

  // Before memory is taken: the data lie in this file, and there are enough of them. The chunks
  // they lie in, none where they lie in one piece.
  Chunks check_storage(const WeightSpec& spec, hid_t data) const {
    const Hdf5Handle options(H5Dget_create_plist(data), H5Pclose);
    need(static_cast<bool>(options));
    const H5D_layout_t layout = H5Pget_layout(options.get());
    const bool plain = layout == H5D_CHUNKED || layout == H5D_CONTIGUOUS || layout == H5D_COMPACT;
    if (!plain || H5Pget_external_count(options.get()) != 0) {
      refuse("weights_open", fmt::format("stores {} outside of itself", spec.name));
    }
    const std::uint64_t stored = H5Dget_storage_size(data);
    const std::uint64_t declared = declared_bytes(spec);
    if (stored > size_ || declared / kBestCompression > stored || stored == 0) {
      refuse("weights_open", fmt::format("declares {} bytes of {} but stores {} in a file of {}",
                                         declared, spec.name, stored, size_));
    }
    if (layout != H5D_CHUNKED) return {};
    return chunks_of(options.get(), spec);
  }

  std::string path_;
  std::uint64_t size_ = 0;
  Hdf5Handle file_;
};

}  // namespace

void save_weights(const Weights& weights, const fs::path& path) {
  validate(weights);
  const Hdf5Silence silence;
  Writer writer(path);
  writer.root(weights.config());
  for (const WeightSpec& spec : weight_specs(weights.config())) {
    writer.dataset(spec, weights.at(spec.name));
  }
  writer.commit();
}

Weights load_weights(const fs::path& path) {
  const Hdf5Silence silence;
  return Reader(path).read();
}

}  // namespace shardproof
