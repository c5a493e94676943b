// Compressed weights files: what is read, and what would take far more memory than it declares.
#include "weights/hdf5/detail/inflation.h"

#include <gtest/gtest.h>
#include <hdf5.h>
#include <zlib.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/weights/changed_file.h"
#include "tests/weights/limited.h"
#include "weights/model/registry.h"

namespace shardproof {
namespace {

// A file of this model, every dataset zeros in deflated chunks.
void write_deflated(const fs::path& path, const std::string& model, hsize_t chunk_elements,
                    NumberFormat kept = NumberFormat::f32) {
  const ModelConfig config = parse_model(model);
  const Hdf5Handle file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose);
  ASSERT_TRUE(file);
  put_text(file.get(), "format", "shardproof-weights");
  put_text(file.get(), "model", print_model(config));
  put_version(file.get(), weights_format(kept), H5T_STD_I32LE);
  for (const WeightSpec& spec : weight_specs(config, kept)) {
    const bool codes = kept == NumberFormat::int8 && spec.int8;
    const std::vector<hsize_t> dims(spec.shape.begin(), spec.shape.end());
    std::vector<hsize_t> chunk(dims.size(), 1);
    hsize_t left = chunk_elements;
    for (std::size_t i = dims.size(); i-- > 0; left /= chunk[i]) chunk[i] = std::min(dims[i], left);
    const Hdf5Handle options = dataset_options();
    H5Pset_chunk(options.get(), static_cast<int>(dims.size()), chunk.data());
    H5Pset_deflate(options.get(), 9);
    H5Pset_alloc_time(options.get(), H5D_ALLOC_TIME_EARLY);  // all chunks, of the fill value 0
    put_empty(file.get(), spec.name.c_str(), codes ? H5T_STD_I8LE : H5T_IEEE_F32LE, dims,
              spec.dims.c_str(), options);
  }
}

TEST(Inflation, RefusesWhatInflatesFarBeyondTheFile) {
  const Folder folder;
  const fs::path path = folder / "w.h5";
  // 3 GiB, and 65 MiB that are a little too many for their file.
  write_deflated(path, "palm-tiny,layers=1,E=4096,F=196608,H=1,Q=2,V=8,positions=4", 1 << 20);
  ASSERT_LT(fs::file_size(path), std::uintmax_t{16} << 20);
  std::string message = message_of([&] { load_weights(path); });
  EXPECT_TRUE(message.starts_with("weights_open: ")) << message;
  EXPECT_NE(message.find("more than 64 times that"), std::string::npos) << message;
  // The same ratio in a small file is read, as zeros.
  write_deflated(path, "palm-tiny,layers=1,E=1024,F=4096,H=1,Q=2,V=8,positions=4", 1 << 18);
  const Weights read = load_weights(path);
  EXPECT_LT(fs::file_size(path), std::uintmax_t{1} << 20);
  EXPECT_EQ(read.at("layer0.w_gate")->shape, (Shape{1024, 4096}));
  // Within the ratio, but not within this process: refused before anything is taken.
  if (!kMemoryCanBeLimited) GTEST_SKIP();
  {
    const Limited less(RLIMIT_DATA, rlim_t{40} << 20);
    message = message_of([&] { load_weights(path); });
  }
  EXPECT_TRUE(message.starts_with("memory_c1: ")) << message;
  EXPECT_NE(message.find("w.h5\" declares weights that need about 52.1 MiB, the limit on data"),
            std::string::npos)
      << message;
}

// final_norm in one chunk, to be written through filters.
Hdf5Handle put_filtered(hid_t file, const std::vector<H5Z_filter_t>& filters) {
  const hsize_t chunk[] = {6};
  const Hdf5Handle options = dataset_options();
  H5Pset_chunk(options.get(), 1, chunk);
  const unsigned level[] = {9};
  for (H5Z_filter_t filter : filters) {
    const std::size_t values = filter == H5Z_FILTER_DEFLATE ? 1 : 0;
    EXPECT_GE(H5Pset_filter(options.get(), filter, H5Z_FLAG_OPTIONAL, values, level), 0);
  }
  return put_empty(file, "final_norm", H5T_IEEE_F32LE, {6}, "E", options);
}

// A chunk of final_norm that is stored as these bytes.
void put_chunk(const Hdf5Handle& data, const std::vector<unsigned char>& bytes,
               std::uint32_t left_out = 0) {
  const std::vector<hsize_t> first(3, 0);
  EXPECT_GE(
      H5Dwrite_chunk(data.get(), H5P_DEFAULT, left_out, first.data(), bytes.size(), bytes.data()),
      0);
}

std::string load_filtered(const std::vector<H5Z_filter_t>& filters) {
  return load_changed([&](hid_t f) {
    put_filtered(f, filters).close();
    change_numbers(f, "final_norm", [](auto& all) { all.assign(all.size(), 1.0); });
  });
}

// final_norm in one chunk that is stored as `bytes`, as one of `filters` would have made them.
std::string load_with_chunk(const std::vector<H5Z_filter_t>& filters,
                            const std::vector<unsigned char>& bytes, std::uint32_t left_out = 0) {
  return load_changed([&](hid_t f) { put_chunk(put_filtered(f, filters), bytes, left_out); });
}

std::vector<unsigned char> deflated(std::vector<unsigned char> bytes) {
  std::vector<unsigned char> out(::compressBound(bytes.size()));
  uLongf size = out.size();
  EXPECT_EQ(::compress2(out.data(), &size, bytes.data(), bytes.size(), 9), Z_OK);
  out.resize(size);
  return out;
}

TEST(Inflation, ReadsDeflateShuffleAndChecksums) {
  EXPECT_EQ(load_with_chunk({H5Z_FILTER_DEFLATE}, deflated(std::vector<unsigned char>(24))), "");
  EXPECT_EQ(load_with_chunk({H5Z_FILTER_SHUFFLE, H5Z_FILTER_DEFLATE},
                            deflated(std::vector<unsigned char>(24))),
            "");
  EXPECT_EQ(load_with_chunk({H5Z_FILTER_DEFLATE}, std::vector<unsigned char>(24), 1), "");
  for (const auto& filters : std::vector<std::vector<H5Z_filter_t>>{
           {H5Z_FILTER_SHUFFLE, H5Z_FILTER_DEFLATE, H5Z_FILTER_FLETCHER32},
           {H5Z_FILTER_FLETCHER32, H5Z_FILTER_DEFLATE}})
    EXPECT_EQ(load_filtered(filters), "");
}

TEST(Inflation, RefusesAChunkThatInflatesBeyondItsSize) {
  for (std::size_t bytes : {std::size_t{200}, std::size_t{100000}, std::size_t{1} << 21}) {
    const std::string message =
        load_with_chunk({H5Z_FILTER_DEFLATE}, deflated(std::vector<unsigned char>(bytes)));
    EXPECT_TRUE(message.starts_with("weights_open: ")) << message;
    EXPECT_NE(message.find("final_norm has a chunk of 24 bytes that inflates to more"),
              std::string::npos)
        << message;
  }
  // In a chunk that is already stored far larger than what it stands for.
  EXPECT_NE(load_with_chunk({H5Z_FILTER_DEFLATE},
                            deflated(std::vector<unsigned char>(std::size_t{1} << 25)))
                .find("stores a chunk of 24 bytes in 3"),
            std::string::npos);
}

TEST(Inflation, CountsCodesAsTheMemoryThatTheyTake) {
  // 24 Mi codes, of a byte each in the file, are f32 in memory.
  const Folder folder;
  const fs::path path = folder / "w.h5";
  write_deflated(path, "palm-tiny,layers=1,E=1024,F=8192,H=1,Q=2,V=8,positions=4", 1 << 20,
                 NumberFormat::int8);
  ASSERT_LT(fs::file_size(path), std::uintmax_t{400} << 10);
  const std::string message = message_of([&] { load_weights(path); });
  EXPECT_TRUE(message.starts_with("weights_open: ")) << message;
  EXPECT_NE(message.find("more than 64 times that"), std::string::npos) << message;
}

TEST(Inflation, AChunkOfCodesHoldsAByteForEach) {
  const Folder folder;
  const auto refused = [&](std::size_t bytes) {
    const fs::path path = folder / "w.h5";
    write_deflated(path, kModel, 1 << 10, NumberFormat::int8);
    {
      const Hdf5Handle file(H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose);
      const Hdf5Handle data(H5Dopen2(file.get(), "layer0.wk", H5P_DEFAULT), H5Dclose);
      put_chunk(data, deflated(std::vector<unsigned char>(bytes)));
    }
    return message_of([&] { load_weights(path); });
  };
  // Of 12 codes; 100 bytes would be few enough for 12 floats. The scales of this file are zeros.
  EXPECT_NE(refused(100).find("layer0.wk has a chunk of 12 bytes that inflates to more"),
            std::string::npos);
  EXPECT_NE(refused(12).find("a scale is above 0"), std::string::npos);
}

TEST(Inflation, RefusesMoreChunksThanCanBeKept) {
  // HDF5 keeps some KiB for each chunk, though it holds one number here. 65,532 and 65,538 of them.
  const Folder folder;
  const fs::path path = folder / "w.h5";
  const auto model = [](int V) {
    return "palm-tiny,layers=1,E=6,F=5,H=2,Q=2,positions=4,V=" + std::to_string(V);
  };
  write_deflated(path, model(10922), 1);
  EXPECT_EQ(message_of([&] { load_weights(path); }), "");
  fs::remove(path);
  write_deflated(path, model(10923), 1);
  const std::string message = message_of([&] { load_weights(path); });
  EXPECT_TRUE(message.starts_with("weights_open: ")) << message;
  EXPECT_NE(message.find("stores embed in 65538 chunks; at most 65536 are read"), std::string::npos)
      << message;
}

TEST(Inflation, RefusesChunksFarLargerThanTheirData) {
  const std::string message = load_changed([](hid_t f) {
    const hsize_t most[] = {H5S_UNLIMITED}, chunk[] = {1 << 28};
    const Hdf5Handle options = dataset_options();
    H5Pset_chunk(options.get(), 1, chunk);
    H5Pset_deflate(options.get(), 9);
    put_chunk(put_empty(f, "final_norm", H5T_IEEE_F32LE, {6}, "E", options, most),
              deflated(std::vector<unsigned char>(1000)));
  });
  EXPECT_NE(message.find("more than 64 times that"), std::string::npos) << message;
}

TEST(Inflation, RefusesFiltersWhoseOutputHasNoKnownBound) {
  for (const auto& filters : std::vector<std::vector<H5Z_filter_t>>{
           {H5Z_FILTER_DEFLATE, H5Z_FILTER_DEFLATE}, {H5Z_FILTER_DEFLATE, H5Z_FILTER_SHUFFLE}})
    EXPECT_NE(load_with_chunk(filters, deflated(std::vector<unsigned char>(24)))
                  .find("another filter than a checksum after deflate"),
              std::string::npos);
  EXPECT_NE(load_filtered({H5Z_FILTER_NBIT}).find("has the filter 5"), std::string::npos);
}

}  // namespace
}  // namespace shardproof
