// Every type of element that is read, in both containers.
#include <gtest/gtest.h>
// gtest first
#include <hdf5.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "golden/trace/read/detail/hdf5_trace.h"
#include "golden/trace/read/detail/npz_trace.h"
#include "golden/trace/read/dump.h"
#include "tests/golden/trace/read/hdf5_file.h"
#include "tests/golden/trace/read/npz_file.h"
#include "tests/weights/expect_error.h"

namespace shardproof::dump {
namespace {

/// Reads three elements from an HDF5 file, or from an npz.
template <class T>
StoredArray read(hid_t type, const char* descr, const std::vector<T>& elements,
                 const char* declared, bool hdf5) {
  const Folder folder;
  if (hdf5) {
    const Hdf5File file(folder / "a");
    file.dataset("v", type, {3}, elements.data());
    if (declared != nullptr) file.text("v", "encoding", declared);
  } else {
    const std::string json = declared == nullptr ? kLeastJson : declaring(declared);
    write_text(
        folder / "a",
        described(json).add("v.npy", npy(descr, "(3,)", bytes_of_numbers(elements))).bytes());
  }
  return read_dump(folder / "a").values.at("v").whole;
}

template <class T>
void expect(hid_t type, const char* descr, NumberFormat encoding, const std::vector<T>& elements,
            std::vector<double> right = {}, const char* declared = nullptr) {
  if (right.empty()) right.assign(elements.begin(), elements.end());
  for (const bool hdf5 : {true, false}) {
    const StoredArray v = read(type, descr, elements, declared, hdf5);
    EXPECT_EQ(v.encoding, encoding) << descr;
    EXPECT_EQ(v.shape, Shape{3}) << descr;
    EXPECT_EQ(numbers(v), right) << descr;
  }
}

TEST(Elements, OfEveryTypeAreRead) {
  using E = NumberFormat;
  expect<double>(H5T_IEEE_F64LE, "<f8", E::f64, {1, -2.5, 1e300});
  expect<float>(H5T_IEEE_F32LE, "<f4", E::f32, {1, -2.5, 0.1F});
  expect<float>(H5T_IEEE_F32LE, "<f4", E::f32, {1, 2, 3}, {}, "f32");
  using U16 = std::uint16_t;
  expect<U16>(f16_type().get(), "<f2", E::f16, {0x3C00, 0xC100, 1}, {1, -2.5, 0x1p-24});
  expect<std::int8_t>(H5T_STD_I8LE, "|i1", E::int8, {1, -2, -128});
  expect<std::int32_t>(H5T_STD_I32LE, "<i4", E::int32, {1, -2, 1 << 30});
  expect<std::int64_t>(H5T_STD_I64LE, "<i8", E::int64, {1, -2, std::int64_t{1} << 40});
  for (const char* descr : {"<u2", "|V2", "<V2"})
    expect<U16>(H5T_STD_U16LE, descr, E::bf16, {0x3F80, 0xC020, 0x7F00}, {1, -2.5, 0x1p127},
                "bf16");
  // Other integers are widened, big-endian ones turned.
  expect<std::uint8_t>(H5T_STD_U8LE, "|u1", E::int32, {1, 2, 255});
  expect<std::int16_t>(H5T_STD_I16LE, "<i2", E::int32, {1, -2, -32768});
  expect<std::uint32_t>(H5T_STD_U32LE, "<u4", E::int64, {1, 2, ~0U});
  expect<std::uint64_t>(H5T_STD_U64LE, "<u8", E::int64, {1, 2, 3});
  expect<std::uint8_t>(bool_type().get(), "|b1", E::int8, {0, 1, 1});
  using U32 = std::uint32_t;
  expect<U32>(H5T_IEEE_F32BE, ">f4", E::f32, {0x803FU, 0xC0U, 0}, {1, -2, 0});
  expect<U16>(f16_type(H5T_IEEE_F32BE).get(), ">f2", E::f16, {0x3C, 0xC0, 0}, {1, -2, 0});
  expect<U32>(H5T_STD_I32BE, ">i4", E::int32, {0x01000000U, 0xFEFFFFFFU, 0}, {1, -2, 0});
  expect<U16>(H5T_STD_I16BE, ">i2", E::int32, {0x0100, 0xFEFF, 0}, {1, -2, 0});
  const std::vector<std::uint64_t> beyond{1, std::uint64_t{1} << 63, 3};
  for (const bool hdf5 : {true, false})
    EXPECT_EQ(label_of([&] { read(H5T_STD_U64LE, "<u8", beyond, nullptr, hdf5); }), "dump_value");
}

/// Forgets what it receives.
class NoSink : public Sink {
  void attribute(std::string_view, std::string_view) override {}
  void array(std::string_view, const Attributes&, NumberFormat, const Shape&) override {}
  void bytes(std::span<const std::byte>) override {}
  void in_file(std::uint64_t) override {}
  void unread(std::string_view, const Attributes&, std::string_view) override {}
  void ignored(std::string_view) override {}
};

// A bound on what is read is one on what it becomes: widened numbers take more than the file has.
TEST(Elements, CountAsWideAsTheyAreRead) {
  constexpr std::uint64_t kCount = 100'000, kBound = 300'000;
  const Folder folder;
  const std::vector<std::uint8_t> zeros(kCount, 0);
  NoSink sink;
  for (const auto& [type, descr, legal] :
       {std::tuple{H5T_STD_I8LE, "|i1", true}, std::tuple{H5T_STD_U8LE, "|u1", false}}) {
    {
      const Hdf5File file(folder / "a.h5");
      file.dataset("v", type, {kCount}, zeros.data());
    }
    write_text(folder / "a.npz",
               described().add("v.npy", npy(descr, "(100000,)", bytes_of_numbers(zeros))).bytes());
    const std::string expected = legal ? "" : "dump_size";
    EXPECT_EQ(label_of([&] { read_hdf5(folder / "a.h5", kBound, sink); }), expected);
    EXPECT_EQ(label_of([&] { read_npz(folder / "a.npz", kBound, sink); }), expected);
  }
}

}  // namespace
}  // namespace shardproof::dump
