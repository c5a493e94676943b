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
  const auto same = [](const auto& one, const auto& other) {
    const auto &x = one.second.data, &y = other.second.data;
    return one.first == other.first && one.second.shape == other.second.shape &&
           std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
  };
  const auto in_a = a.tensors(), in_b = b.tensors();
  return a.config() == b.config() && a.stored_type() == b.stored_type() &&
         std::equal(in_a.begin(), in_a.end(), in_b.begin(), in_b.end(), same);
}

RC_GTEST_PROP(Store, LoadsWhatItSaved, ()) {
  const Folder folder;
  const ModelConfig config = draw_model(12);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  for (const Weights& weights : {generate_weights(config, seed), int8_of(config, seed)}) {
    save_weights(weights, folder / "w.h5");
    RC_ASSERT(equal(load_weights(folder / "w.h5"), weights));
    RC_ASSERT(folder.entries() == 1);
  }
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
  std::map<std::string, Tensor> tensors = whole.tensors();
  tensors["embed"].data[0] = std::numeric_limits<float>::infinity();
  const Weights broken(whole.config(), tensors);
  EXPECT_EQ(label_of([&] { save_weights(broken, folder / "w.h5"); }), "weights_value");
  EXPECT_EQ(folder.entries(), 0);
}

TEST(Store, RefusesWhatIsNoWeightsFile) {
  const Folder folder;
  write_bytes(folder / "text.h5", {'t', 'e', 'x', 't'});
  write_bytes(folder / "empty.h5", {});
  for (const fs::path& path : {folder / "missing.h5", folder / ".", fs::path("/dev/null"),
                               fs::path(), folder / "text.h5", folder / "empty.h5"})
    EXPECT_EQ(label_of([&] { load_weights(path); }), "weights_open") << path;
  EXPECT_NE(load_changed([](hid_t f) {
              H5Adelete(f, "format");
            }).find("is not a Shardproof weights file"),
            std::string::npos);
}

TEST(Store, ReadsStringsAndIntegersAsOthersWriteThem) {
  EXPECT_EQ(load_changed([](hid_t f) {
              put_text(f, "format", "shardproof-weights", true);
              put_text(f, "model", print_model(parse_model(kModel)), true);
              put_version(f, 1);
            }),
            "");
}

Change without(const char* name) {
  return [=](hid_t f) { H5Ldelete(f, name, H5P_DEFAULT); };
}
Change ones(const std::string& name, hid_t type, const std::vector<hsize_t>& dims,
            const char* letters) {
  return [=](hid_t f) { put_ones(f, name.c_str(), type, dims, letters); };
}
Change text(const char* name, const std::string& value, bool variable = false) {
  return [=](hid_t f) { put_text(f, name, value, variable); };
}

TEST(Store, RefusesEachBrokenPartByItsLabel) {
  const auto f32 = H5T_IEEE_F32LE;
  const std::vector<std::pair<const char*, Change>> broken{
      {"weights_open", text("format", "golden")},
      {"weights_version", [](hid_t f) { put_version(f, 3); }},
      {"weights_name", [](hid_t f) { put_version(f, 2); }},  // f32 that claims to be the other
      {"weights_version", text("version", "1")},
      {"weights_version", [](hid_t f) { H5Adelete(f, "version"); }},
      {"weights_model", [](hid_t f) { H5Adelete(f, "model"); }},
      {"weights_model", text("model", "")},
      {"weights_model", text("model", "palm")},
      {"weights_model", text("model", "palm-tiny,\n")},
      {"weights_model", text("model", "palm-tiny,E=0")},
      {"weights_model", text("model", "palm-tiny,E=6\nF=5")},
      {"weights_open", text("model", std::string(60000, 'x'))},
      {"weights_open", text("model", std::string(5000000, 'x'), true)},
      {"weights_name", without("layer0.wq")},
      {"weights_name", ones("layer0.extra\n", f32, {6}, "E")},
      {"weights_name", ones(std::string(300, 'n'), f32, {6}, "E")},
      {"weights_name",
       [](hid_t f) {
         H5Ldelete(f, "final_norm", H5P_DEFAULT);
         H5Gclose(H5Gcreate2(f, "final_norm", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
       }},
      {"weights_name",
       [](hid_t f) {
         H5Ldelete(f, "final_norm", H5P_DEFAULT);
         H5Lcreate_soft("/layer0.norm", f, "final_norm", H5P_DEFAULT, H5P_DEFAULT);
       }},
      {"weights_type", ones("final_norm", H5T_IEEE_F64LE, {6}, "E")},
      {"weights_type", ones("final_norm", H5T_IEEE_F32BE, {6}, "E")},
      {"weights_shape", ones("final_norm", f32, {7}, "E")},
      {"weights_shape", ones("final_norm", f32, {6, 1}, "E")},
      {"weights_shape", ones("final_norm", f32, {6}, "F")},
      {"", ones("final_norm", f32, {6}, "E")},
  };
  for (std::size_t i = 0; i < broken.size(); ++i)
    EXPECT_EQ(label_of_changed(broken[i].second), broken[i].first) << i;
}

TEST(Store, RefusesMissingOrMisshapenSlopesAndBiasOfTheLogits) {
  const Weights weights =
      generate_weights(parse_model(std::string(kModel) + ",rope=alibi,unembed_bias=true"), 1);
  const auto label = [&](const Change& change) { return label_of_changed(change, weights); };
  EXPECT_EQ(label([](hid_t) {}), "");
  for (const char* name : {"alibi_slopes", "unembed_bias"}) {
    const hsize_t count = std::string(name) == "alibi_slopes" ? 2 : 7;  // H, V
    const char* const dims = count == 2 ? "H" : "V";
    const auto f32 = H5T_IEEE_F32LE;
    EXPECT_EQ(label(without(name)), "weights_name") << name;
    for (const std::vector<hsize_t>& other :
         {std::vector{count - 1}, std::vector{count + 1}, std::vector<hsize_t>{count, 1}})
      EXPECT_EQ(label(ones(name, f32, other, dims)), "weights_shape") << name;
    EXPECT_EQ(label(ones(name, f32, {count}, "E")), "weights_shape");
    for (const hid_t type : {H5T_IEEE_F64LE, H5T_STD_I8LE})
      EXPECT_EQ(label(ones(name, type, {count}, dims)), "weights_type");
    EXPECT_EQ(
        label([&](hid_t f) { change_numbers(f, name, [](auto& all) { all.back() = HUGE_VAL; }); }),
        "weights_value");
    // A model without has none.
    EXPECT_EQ(label_of_changed(ones(name, f32, {count}, dims)), "weights_name");
  }
  EXPECT_EQ(label(text("model", std::string(kModel) + ",rope=alibi")), "weights_name");
}

TEST(Store, RefusesNonFiniteValues) {
  const std::string message = load_changed(
      [](hid_t f) { change_numbers(f, "final_norm", [](auto& all) { all[4] = NAN; }); });
  EXPECT_EQ(message.rfind("weights_value: ", 0), 0U) << message;
  EXPECT_NE(message.find("final_norm[4] is nan"), std::string::npos) << message;
}

TEST(Store, RefusesAbsurdSizesBeforeTakingMemory) {
  const auto unwritten = [](hid_t f, const char* name, const std::vector<hsize_t>& dims,
                            const char* letters) {
    const Hdf5Handle options = dataset_options();
    const std::vector<hsize_t> chunk(dims.size(), 1);
    H5Pset_chunk(options.get(), static_cast<int>(dims.size()), chunk.data());
    put_empty(f, name, H5T_IEEE_F32LE, dims, letters, options);
  };
  EXPECT_EQ(label_of_changed([&](hid_t f) { unwritten(f, "final_norm", {1000000000000}, "E"); }),
            "weights_shape");
  // A model line that agrees with the absurd shape, and no data after it.
  const std::string message = load_changed([&](hid_t f) {
    put_text(f, "model", "palm-tiny,layers=1,E=6,F=5,H=2,Q=2,V=2000000000,positions=4");
    unwritten(f, "embed", {2000000000, 6}, "VE");
  });
  EXPECT_NE(message.find("declares 48000000000 bytes of embed but stores 0"), std::string::npos)
      << message;
}

TEST(Store, RefusesDataThatLieElsewhere) {
  const Folder folder;
  write_bytes(folder / "raw", std::vector<char>(24, 0));
  EXPECT_EQ(label_of_changed([&](hid_t f) {
              const Hdf5Handle options = dataset_options();
              H5Pset_external(options.get(), (folder / "raw").c_str(), 0, 24);
              put_empty(f, "final_norm", H5T_IEEE_F32LE, {6}, "E", options);
            }),
            "weights_open");
}

TEST(Store, AnyTruncationIsRefused) {
  const Folder folder;
  for (const Weights& weights : {small(), small_int8()}) {
    save_weights(weights, folder / "w.h5");
    const std::vector<char> whole = bytes_of(folder / "w.h5");
    const std::size_t cuts = weights.stored_type() == NumberFormat::f32 ? 200 : 50;
    for (std::size_t k = 0; k < cuts; ++k) {
      const auto length = static_cast<std::ptrdiff_t>(whole.size() * k / cuts);
      write_bytes(folder / "cut.h5", {whole.begin(), whole.begin() + length});
      ASSERT_EQ(label_of([&] { load_weights(folder / "cut.h5"); }), "weights_open") << length;
    }
  }
}

TEST(Store, AFlippedByteIsDetectedOrHarmless) {
  const Folder folder;
  for (const Weights& weights : {small(), small_int8()}) {
    save_weights(weights, folder / "w.h5");
    const std::vector<char> whole = bytes_of(folder / "w.h5");
    int detected = 0;
    const bool f32 = weights.stored_type() == NumberFormat::f32;
    for (std::uint64_t k = 0; k < (f32 ? 300U : 200U); ++k) {
      const auto words = counter_random(f32 ? 17 : 19, "flip", k);
      std::vector<char> bytes = whole;
      bytes[words[0] % bytes.size()] ^= static_cast<char>(1 + words[1] % 255);
      write_bytes(folder / "bad.h5", bytes);
      const std::string label = label_of([&] {
        ASSERT_TRUE(equal(load_weights(folder / "bad.h5"), weights)) << words[0] % bytes.size();
      });
      detected += label.empty() ? 0 : 1;
    }
    EXPECT_GT(detected, f32 ? 30 : 0);
  }
  EXPECT_EQ(H5Fget_obj_count(hid_t{H5F_OBJ_ALL}, H5F_OBJ_ALL), 0);
}

TEST(Store, CorruptDataAreNamed) {
  const Folder folder;
  const Weights weights = small();
  save_weights(weights, folder / "w.h5");
  std::vector<char> bytes = bytes_of(folder / "w.h5");
  const auto& table = weights.at("embed")->data;
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
