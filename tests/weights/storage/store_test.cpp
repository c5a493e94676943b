#include "weights/storage/store.h"

#include <gtest/gtest.h>
#include <hdf5.h>
#include <rapidcheck/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <ctime>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "tests/weights/changed_file.h"
#include "tests/weights/expect_error.h"
#include "tests/weights/folder.h"
#include "tests/weights/random_model.h"
#include "weights/hdf5/detail/handle.h"
#include "weights/model/registry.h"
#include "weights/storage/generator.h"

// HDF5 1.10 itself leaks when it refuses corrupt metadata; that ours are closed is counted below.
extern "C" const char* __lsan_default_suppressions() { return "leak:libhdf5"; }

namespace shardproof {
namespace {

bool equal(const Weights& a, const Weights& b) {
  if (!(a.config() == b.config()) || a.all().size() != b.all().size()) return false;
  for (const auto& [name, tensor] : a.all()) {
    const Tensor& other = b.at(name);
    if (tensor.shape != other.shape) return false;
    if (std::memcmp(tensor.data.data(), other.data.data(), tensor.data.size() * sizeof(float)) !=
        0) {
      return false;
    }
  }
  return true;
}

template <class Change>
std::string label_of_changed(Change&& change) {
  const std::string message = load_changed(change);
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  return message.substr(0, message.find(':'));
}

void put_version(hid_t file, int version) {
  H5Adelete(file, "version");
  Hdf5Handle space(H5Screate(H5S_SCALAR), H5Sclose);
  Hdf5Handle attribute(
      H5Acreate2(file, "version", H5T_STD_I64BE, space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  ASSERT_GE(H5Awrite(attribute.get(), H5T_NATIVE_INT, &version), 0);
}

// Replaces (or adds) a dataset of zeros, chunked if `chunk` > 0; nothing is written if `empty`.
void put_dataset(hid_t file, const char* name, hid_t type, std::vector<hsize_t> dims,
                 const char* letters, bool empty = false) {
  if (H5Lexists(file, name, H5P_DEFAULT) > 0) H5Ldelete(file, name, H5P_DEFAULT);
  Hdf5Handle space(H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr), H5Sclose);
  Hdf5Handle options(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  if (empty) {
    std::vector<hsize_t> chunk(dims.size(), 1);
    H5Pset_chunk(options.get(), static_cast<int>(dims.size()), chunk.data());
  }
  Hdf5Handle data(
      H5Dcreate2(file, name, type, space.get(), H5P_DEFAULT, options.get(), H5P_DEFAULT), H5Dclose);
  ASSERT_TRUE(data);
  if (!empty) {
    hsize_t count = 1;
    for (hsize_t d : dims) count *= d;
    const std::vector<double> zeros(count, 0.0);
    ASSERT_GE(H5Dwrite(data.get(), H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, zeros.data()),
              0);
  }
  put_text(data.get(), "dims", letters);
}

RC_GTEST_PROP(Store, LoadsWhatItSaved, ()) {
  const Folder folder;
  const ModelConfig config = draw_model(12);
  const Weights weights = generate_weights(config, *rc::gen::arbitrary<std::uint64_t>());
  save_weights(weights, folder / "w.h5");
  RC_ASSERT(equal(load_weights(folder / "w.h5"), weights));
  RC_ASSERT(folder.entries() == 1);
}

TEST(Store, EqualWeightsAreEqualBytes) {
  const Folder folder;
  save_weights(small(), folder / "a.h5");
  // The clock that HDF5 would note has full seconds.
  const std::time_t begin = std::time(nullptr);
  while (std::time(nullptr) < begin + 2) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  save_weights(small(), folder / "b.h5");
  EXPECT_EQ(bytes_of(folder / "a.h5"), bytes_of(folder / "b.h5"));
}

TEST(Store, SplitsLargeTensorsIntoChunks) {
  const Folder folder;
  const Weights weights = generate_weights(parse_model("palm-tiny,E=520,F=1030,layers=1"), 2);
  save_weights(weights, folder / "w.h5");
  EXPECT_TRUE(equal(load_weights(folder / "w.h5"), weights));
  Hdf5Handle file(H5Fopen((folder / "w.h5").c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
  Hdf5Handle data(H5Dopen2(file.get(), "layer0.w_gate", H5P_DEFAULT), H5Dclose);
  Hdf5Handle options(H5Dget_create_plist(data.get()), H5Pclose);
  hsize_t chunk[2] = {};
  ASSERT_EQ(H5Pget_chunk(options.get(), 2, chunk), 2);
  EXPECT_EQ(chunk[1], 1030U);
  EXPECT_LE(chunk[0] * chunk[1] * sizeof(float), 1U << 20);
  EXPECT_LT(chunk[0], 520U);
}

TEST(Store, ReplacesAnExistingFile) {
  const Folder folder;
  write_bytes(folder / "w.h5", {'o', 'l', 'd'});
  save_weights(small(), folder / "w.h5");
  EXPECT_TRUE(equal(load_weights(folder / "w.h5"), small()));
  EXPECT_EQ(folder.entries(), 1);
}

TEST(Store, LeavesNothingBehindWhenItCannotWrite) {
  const Folder folder;
  const auto label = [](const fs::path& path) {
    return label_of([&] { save_weights(small(), path); });
  };
  EXPECT_EQ(label(folder / "none/w.h5"), "weights_write");
  fs::create_directory(folder / "taken");
  EXPECT_EQ(label(folder / "taken"), "weights_write");
  EXPECT_EQ(label("/proc/shardproof.h5"), "weights_write");
  EXPECT_EQ(label(""), "weights_write");
  EXPECT_EQ(folder.entries(), 1);
  EXPECT_TRUE(fs::is_empty(folder / "taken"));
}

TEST(Store, LeavesNothingBehindWhenTheDiskIsFull) {
  const Folder folder;
  write_bytes(folder / "w.h5", {'o', 'l', 'd'});
  rlimit whole{};
  ::getrlimit(RLIMIT_FSIZE, &whole);
  const auto previous = std::signal(SIGXFSZ, SIG_IGN);
  for (rlim_t most : {0U, 100U, 3000U, 20000U, 900000U}) {
    rlimit limit = whole;
    limit.rlim_cur = most;
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const std::string label = label_of(
        [&] { save_weights(generate_weights(parse_model("palm-tiny"), 1), folder / "w.h5"); });
    ::setrlimit(RLIMIT_FSIZE, &whole);
    EXPECT_EQ(label, "weights_write") << most;
    EXPECT_EQ(bytes_of(folder / "w.h5"), (std::vector<char>{'o', 'l', 'd'}));
    EXPECT_EQ(folder.entries(), 1) << most;
  }
  std::signal(SIGXFSZ, previous);
}

TEST(Store, RefusesToSaveWhatItCouldNotLoad) {
  const Folder folder;
  const Weights whole = small();
  std::map<std::string, Tensor> tensors(whole.all().begin(), whole.all().end());
  tensors["embed"].data[0] = std::numeric_limits<float>::infinity();
  const Weights broken(whole.config(), tensors);
  EXPECT_EQ(label_of([&] { save_weights(broken, folder / "w.h5"); }), "weights_value");
  EXPECT_EQ(folder.entries(), 0);
}

TEST(Store, RefusesWhatIsNoWeightsFile) {
  const Folder folder;
  const auto label = [](const fs::path& path) { return label_of([&] { load_weights(path); }); };
  EXPECT_EQ(label(folder / "missing.h5"), "weights_open");
  EXPECT_EQ(label(folder / "."), "weights_open");
  EXPECT_EQ(label("/dev/null"), "weights_open");
  EXPECT_EQ(label(""), "weights_open");
  write_bytes(folder / "text.h5", {'t', 'e', 'x', 't'});
  EXPECT_EQ(label(folder / "text.h5"), "weights_open");
  write_bytes(folder / "empty.h5", {});
  EXPECT_EQ(label(folder / "empty.h5"), "weights_open");
  EXPECT_NE(load_changed([](hid_t f) {
              H5Adelete(f, "format");
            }).find("is not a Shardproof weights file"),
            std::string::npos);
  EXPECT_EQ(label_of_changed([](hid_t f) { put_text(f, "format", "golden"); }), "weights_open");
}

TEST(Store, ReadsStringsAndIntegersAsOthersWriteThem) {
  EXPECT_EQ(load_changed([](hid_t f) {
              put_text(f, "format", "shardproof-weights", true);
              put_text(f, "model", print_model(parse_model(kModel)), true);
              put_version(f, 1);
            }),
            "");
}

TEST(Store, RefusesEachBrokenPartByItsLabel) {
  EXPECT_EQ(label_of_changed([](hid_t f) { put_version(f, 3); }), "weights_version");
  // An f32 file that claims to be the other version.
  EXPECT_EQ(label_of_changed([](hid_t f) { put_version(f, 2); }), "weights_name");
  EXPECT_EQ(label_of_changed([](hid_t f) { put_text(f, "version", "1"); }), "weights_version");
  EXPECT_EQ(label_of_changed([](hid_t f) { H5Adelete(f, "version"); }), "weights_version");
  EXPECT_EQ(label_of_changed([](hid_t f) { H5Adelete(f, "model"); }), "weights_model");
  for (const char* line : {"", "palm", "palm-tiny,\n", "palm-tiny,E=0", "palm-tiny,E=6\nF=5"}) {
    EXPECT_EQ(label_of_changed([&](hid_t f) { put_text(f, "model", line); }), "weights_model");
  }
  EXPECT_EQ(label_of_changed([](hid_t f) { put_text(f, "model", std::string(60000, 'x')); }),
            "weights_open");
  EXPECT_EQ(
      label_of_changed([](hid_t f) { put_text(f, "model", std::string(5000000, 'x'), true); }),
      "weights_open");
  EXPECT_EQ(label_of_changed([](hid_t f) { H5Ldelete(f, "layer0.wq", H5P_DEFAULT); }),
            "weights_name");
  EXPECT_EQ(
      label_of_changed([](hid_t f) { put_dataset(f, "layer0.extra\n", H5T_IEEE_F32LE, {6}, "E"); }),
      "weights_name");
  EXPECT_EQ(label_of_changed([](hid_t f) {
              put_dataset(f, std::string(300, 'n').c_str(), H5T_IEEE_F32LE, {6}, "E");
            }),
            "weights_name");
  EXPECT_EQ(label_of_changed([](hid_t f) {
              H5Ldelete(f, "final_norm", H5P_DEFAULT);
              H5Gclose(H5Gcreate2(f, "final_norm", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
            }),
            "weights_name");
  EXPECT_EQ(label_of_changed([](hid_t f) {
              H5Ldelete(f, "final_norm", H5P_DEFAULT);
              H5Lcreate_soft("/layer0.norm", f, "final_norm", H5P_DEFAULT, H5P_DEFAULT);
            }),
            "weights_name");
  EXPECT_EQ(
      label_of_changed([](hid_t f) { put_dataset(f, "final_norm", H5T_IEEE_F64LE, {6}, "E"); }),
      "weights_type");
  EXPECT_EQ(
      label_of_changed([](hid_t f) { put_dataset(f, "final_norm", H5T_IEEE_F32BE, {6}, "E"); }),
      "weights_type");
  EXPECT_EQ(
      label_of_changed([](hid_t f) { put_dataset(f, "final_norm", H5T_IEEE_F32LE, {7}, "E"); }),
      "weights_shape");
  EXPECT_EQ(label_of_changed([](hid_t f) {
              put_dataset(f, "final_norm", H5T_IEEE_F32LE, {6, 1}, "E");
            }),
            "weights_shape");
  EXPECT_EQ(
      label_of_changed([](hid_t f) { put_dataset(f, "final_norm", H5T_IEEE_F32LE, {6}, "F"); }),
      "weights_shape");
  EXPECT_EQ(load_changed([](hid_t f) { put_dataset(f, "final_norm", H5T_IEEE_F32LE, {6}, "E"); }),
            "");
}

TEST(Store, RefusesMissingOrMisshapenSlopesAndBiasOfTheLogits) {
  const Weights weights =
      generate_weights(parse_model(std::string(kModel) + ",rope=alibi,unembed_bias=true"), 1);
  const auto label = [&](auto&& change) {
    const std::string message = load_changed(change, weights);
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    return message.substr(0, message.find(':'));
  };
  EXPECT_EQ(label([](hid_t) {}), "");
  for (const char* name : {"alibi_slopes", "unembed_bias"}) {
    const hsize_t count = std::string(name) == "alibi_slopes" ? 2 : 7;  // H, V
    const char* const dims = count == 2 ? "H" : "V";
    EXPECT_EQ(label([&](hid_t f) { H5Ldelete(f, name, H5P_DEFAULT); }), "weights_name") << name;
    for (const hsize_t other : {count - 1, count + 1})
      EXPECT_EQ(label([&](hid_t f) { put_dataset(f, name, H5T_IEEE_F32LE, {other}, dims); }),
                "weights_shape")
          << name;
    EXPECT_EQ(label([&](hid_t f) {
                put_dataset(f, name, H5T_IEEE_F32LE, {count, 1}, dims);
              }),
              "weights_shape");
    EXPECT_EQ(label([&](hid_t f) { put_dataset(f, name, H5T_IEEE_F32LE, {count}, "E"); }),
              "weights_shape");
    EXPECT_EQ(label([&](hid_t f) { put_dataset(f, name, H5T_IEEE_F64LE, {count}, dims); }),
              "weights_type");
    EXPECT_EQ(label([&](hid_t f) { put_dataset(f, name, H5T_STD_I8LE, {count}, dims); }),
              "weights_type");
    EXPECT_EQ(label([&](hid_t f) {
                Hdf5Handle data(H5Dopen2(f, name, H5P_DEFAULT), H5Dclose);
                const std::vector<float> values(count, std::numeric_limits<float>::infinity());
                H5Dwrite(data.get(), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT,
                         values.data());
              }),
              "weights_value");
    // A model without has none.
    EXPECT_EQ(
        label_of_changed([&](hid_t f) { put_dataset(f, name, H5T_IEEE_F32LE, {count}, dims); }),
        "weights_name");
  }
  EXPECT_EQ(label([](hid_t f) { put_text(f, "model", std::string(kModel) + ",rope=alibi"); }),
            "weights_name");
}

TEST(Store, RefusesNonFiniteValues) {
  const std::string message = load_changed([](hid_t f) {
    std::vector<float> values(6, 1.0F);
    values[4] = std::numeric_limits<float>::quiet_NaN();
    Hdf5Handle data(H5Dopen2(f, "final_norm", H5P_DEFAULT), H5Dclose);
    H5Dwrite(data.get(), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
  });
  EXPECT_EQ(message.rfind("weights_value: ", 0), 0U) << message;
  EXPECT_NE(message.find("final_norm[4] is nan"), std::string::npos) << message;
}

TEST(Store, RefusesAbsurdSizesBeforeTakingMemory) {
  EXPECT_EQ(label_of_changed([](hid_t f) {
              put_dataset(f, "final_norm", H5T_IEEE_F32LE, {1000000000000}, "E", true);
            }),
            "weights_shape");
  // A model line that agrees with the absurd shape, and no data after it.
  const std::string message = load_changed([](hid_t f) {
    put_text(f, "model", "palm-tiny,layers=1,E=6,F=5,H=2,Q=2,V=2000000000,positions=4");
    put_dataset(f, "embed", H5T_IEEE_F32LE, {2000000000, 6}, "VE", true);
  });
  EXPECT_NE(message.find("declares 48000000000 bytes of embed but stores 0"), std::string::npos)
      << message;
}

TEST(Store, RefusesDataThatLieElsewhere) {
  const Folder folder;
  write_bytes(folder / "raw", std::vector<char>(24, 0));
  EXPECT_EQ(label_of_changed([&](hid_t f) {
              H5Ldelete(f, "final_norm", H5P_DEFAULT);
              const hsize_t dims[] = {6};
              Hdf5Handle space(H5Screate_simple(1, dims, nullptr), H5Sclose);
              Hdf5Handle options(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
              H5Pset_external(options.get(), (folder / "raw").c_str(), 0, 24);
              Hdf5Handle data(H5Dcreate2(f, "final_norm", H5T_IEEE_F32LE, space.get(), H5P_DEFAULT,
                                         options.get(), H5P_DEFAULT),
                              H5Dclose);
              put_text(data.get(), "dims", "E");
            }),
            "weights_open");
}

TEST(Store, AnyTruncationIsRefused) {
  const Folder folder;
  save_weights(small(), folder / "w.h5");
  const std::vector<char> whole = bytes_of(folder / "w.h5");
  for (std::size_t k = 0; k < 200; ++k) {
    const std::size_t length = whole.size() * k / 200;
    write_bytes(folder / "cut.h5",
                {whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)});
    ASSERT_EQ(label_of([&] { load_weights(folder / "cut.h5"); }), "weights_open") << length;
  }
}

TEST(Store, AFlippedByteIsDetectedOrHarmless) {
  const Folder folder;
  const Weights weights = small();
  save_weights(weights, folder / "w.h5");
  const std::vector<char> whole = bytes_of(folder / "w.h5");
  std::size_t detected = 0;
  for (std::uint64_t k = 0; k < 300; ++k) {
    const auto words = counter_random(17, "flip", k);
    std::vector<char> bytes = whole;
    bytes[words[0] % bytes.size()] ^= static_cast<char>(1 + words[1] % 255);
    write_bytes(folder / "bad.h5", bytes);
    const std::string label = label_of([&] {
      ASSERT_TRUE(equal(load_weights(folder / "bad.h5"), weights)) << words[0] % bytes.size();
    });
    if (!label.empty()) ++detected;
  }
  EXPECT_GT(detected, 30U);
  EXPECT_EQ(H5Fget_obj_count(hid_t{H5F_OBJ_ALL}, H5F_OBJ_ALL), 0);
}

TEST(Store, CorruptDataAreNamed) {
  const Folder folder;
  const Weights weights = small();
  save_weights(weights, folder / "w.h5");
  std::vector<char> bytes = bytes_of(folder / "w.h5");
  const auto& table = weights.at("embed").data;
  const char* needle = reinterpret_cast<const char*>(table.data());
  const auto found =
      std::search(bytes.begin(), bytes.end(), needle, needle + table.size() * sizeof(float));
  ASSERT_NE(found, bytes.end());
  *found ^= 1;
  write_bytes(folder / "bad.h5", bytes);
  const std::string message = message_of([&] { load_weights(folder / "bad.h5"); });
  EXPECT_EQ(message.rfind("weights_checksum: ", 0), 0U) << message;
  EXPECT_NE(message.find("embed"), std::string::npos) << message;
}

}  // namespace
}  // namespace shardproof
