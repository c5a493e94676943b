// What the header of an .npy file may say.
#include "golden/trace/read/detail/npy_header.h"

#include <gtest/gtest.h>
// gtest first
#include <fmt/format.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "tests/golden/trace/read/npz_file.h"
#include "tests/weights/expect_error.h"

namespace shardproof::dump {
namespace {

NpyHeader parsed(const std::string& text) { return parse_npy_header(text, "a"); }
std::string refused_header(const std::string& text) {
  return label_of([&] { parsed(text); });
}

TEST(NpyHeader, IsRead) {
  const NpyHeader h = parsed("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n");
  EXPECT_EQ(h.kind, 'f');
  EXPECT_EQ(h.element_bytes(), 4U);
  EXPECT_FALSE(h.big_endian);
  EXPECT_FALSE(h.fortran_order);
  EXPECT_EQ(h.shape, (Shape{2, 3}));
  // As others write it.
  const NpyHeader other = parsed("{\"shape\":(7L,),\"fortran_order\":True,\"descr\":\">u2\"}");
  EXPECT_EQ(other.kind, 'u');
  EXPECT_TRUE(other.big_endian);
  EXPECT_TRUE(other.fortran_order);
  EXPECT_EQ(other.shape, (Shape{7}));
  EXPECT_EQ(parsed(npy_header("|V2", "()")).shape, Shape());
  EXPECT_EQ(parsed(npy_header("<U5", "()")).element_bytes(), 20U);
  EXPECT_EQ(parsed(npy_header("|S0", "()")).element_bytes(), 0U);
}

RC_GTEST_PROP(NpyHeader, EveryShapeOfNumPyIsReadBack, ()) {
  const auto extents = *rc::gen::container<std::vector<std::int64_t>>(
      rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << 40));
  RC_PRE(extents.size() <= 32U);
  std::string shape = "(";
  for (const std::int64_t e : extents) shape += fmt::format("{}, ", e);
  if (extents.size() > 1) shape.resize(shape.size() - 2);
  RC_ASSERT(parsed(npy_header("<f8", shape + ")")).shape == extents);
}

TEST(NpyHeader, IsRefused) {
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
  EXPECT_EQ(refused_header(good), "");
  for (const char* bad :
       {"",
        "{",
        "{}",
        "[]",
        "{'descr': '<f4'}",
        "{'descr': '<f4', 'fortran_order': False}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'more': 1}",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}",
        "{'descr': '<f4' 'fortran_order': False, 'shape': (2,)}",
        "{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': [2]}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2 3)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x",
        "{'descr': '', 'fortran_order': False, 'shape': (2,)}",
        "{'descr': '<', 'fortran_order': False, 'shape': (2,)}",
        "{'descr': '<f', 'fortran_order': False, 'shape': (2,)}",
        "{'descr': '<f0', 'fortran_order': False, 'shape': (2,)}",
        "{'descr': '<f4x', 'fortran_order': False, 'shape': (2,)}",
        "{'descr': '<c8', 'fortran_order': False, 'shape': (2,)}",
        "{'descr': '<M8[ns]', 'fortran_order': False, 'shape': (2,)}",
        "{'descr': '<f\\x34', 'fortran_order': False, 'shape': (2,)}"})
    EXPECT_EQ(refused_header(bad), "dump_value") << bad;
  EXPECT_EQ(refused_header(good + std::string(1, '\0')), "dump_value");
  std::string dims = "(";
  for (int i = 0; i < 65; ++i) dims += "1, ";
  EXPECT_EQ(refused_header(npy_header("<f4", dims + ")")), "dump_value");
  const auto why = [](const std::string& text) { return message_of([&] { parsed(text); }); };
  EXPECT_NE(why(npy_header("|O", "(1,)")).find("pickle"), std::string::npos);
  EXPECT_NE(
      why("{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (1,)}").find("structured"),
      std::string::npos);
}

TEST(NpyHeader, EveryCutAndEveryByteIsReadOrRefused) {
  const std::string good = npy_header("<f4", "(2, 3)");
  for (std::size_t i = 0; i < good.size() - 1; ++i)
    if (good[i] != ' ') {
      EXPECT_EQ(refused_header(good.substr(0, i)), "dump_value") << i;
    }
  for (std::size_t i = 0; i < good.size(); ++i)
    for (int c = 0; c < 256; ++c) {
      std::string text = good;
      text[i] = static_cast<char>(c);
      const std::string label = refused_header(text);
      EXPECT_TRUE(label.empty() || label == "dump_value") << label;
    }
}

TEST(NpyHeader, SaysHowLongItIs) {
  const auto bytes_of = [](const std::string& npy) {
    std::array<std::byte, kNpyPrefix> prefix{};
    std::transform(npy.begin(), npy.begin() + kNpyPrefix, prefix.begin(),
                   [](char c) { return static_cast<std::byte>(c); });
    return npy_header_bytes(prefix, "a");
  };
  const std::string header(300, ' ');
  EXPECT_EQ(bytes_of(npy_with_header(header, "", 1)), 310U);
  EXPECT_EQ(bytes_of(npy_with_header(header, "", 2)), 312U);
  EXPECT_EQ(bytes_of(npy_with_header(header, "", 3)), 312U);
  EXPECT_EQ(label_of([&] { bytes_of(npy_with_header(header, "", 4)); }), "dump_value");
  EXPECT_EQ(label_of([&] { bytes_of(npy_with_header(header, "", 0)); }), "dump_value");
  EXPECT_EQ(label_of([&] { bytes_of("\x93NUMPZ\1        "); }), "dump_value");
  EXPECT_EQ(label_of([&] { bytes_of(npy_with_header(std::string(65537, ' '), "", 2)); }),
            "dump_value");
}

}  // namespace
}  // namespace shardproof::dump
