#include "golden/corpus/detail/sha256.h"

#include <gtest/gtest.h>

#include "tests/weights/folder.h"

namespace shardproof::corpus {
namespace {

/// FIPS 180-4's own examples.
TEST(Sha256, KnownVectors) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/// It is read in blocks of 64 KiB.
TEST(Sha256, OfAFile) {
  const Folder folder;
  for (const std::size_t size : {0U, 1U, 65535U, 65536U, 65537U, 300000U}) {
    std::vector<char> bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * i + i / 251);
    write_bytes(folder / "file", bytes);
    const std::string sum = sha256_of(folder / "file");
    EXPECT_EQ(sum, sha256({bytes.data(), bytes.size()})) << size;
    if (size == 0) continue;
    bytes.back() = static_cast<char>(bytes.back() + 1);
    write_bytes(folder / "file", bytes);
    EXPECT_NE(sha256_of(folder / "file"), sum) << size;
  }
}

std::string refusal(const fs::path& path) {
  try {
    sha256_of(path);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Sha256, RefusesWhatIsNoFile) {
  const Folder folder;
  EXPECT_EQ(refusal(folder / "none").find("corpus_open"), 0U);
  EXPECT_EQ(refusal(folder.path()).find("corpus_open"), 0U);
}

}  // namespace
}  // namespace shardproof::corpus
