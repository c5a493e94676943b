#include "golden/corpus/detail/sha256.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <stdexcept>

namespace shardproof::corpus {
namespace {

class Digest {
 public:
  Digest() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    need(context_ && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
  }
  void add(std::string_view bytes) {
    need(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
  }
  std::string hex() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned size = 0;
    need(EVP_DigestFinal_ex(context_.get(), digest.data(), &size) == 1);
    std::string text;
    for (unsigned i = 0; i < size; ++i) text += fmt::format("{:02x}", digest.at(i));
    return text;
  }

 private:
  static void need(bool dumped) {
    if (!dumped) throw std::runtime_error("libcrypto has no SHA-256");
  }

  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

}  // namespace

std::string sha256(std::string_view bytes) {
  Digest digest;
  digest.add(bytes);
  return digest.hex();
}

std::string sha256_of(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    throw Error("corpus_open", fmt::format("{:?} is not a regular file", path.string()));
  std::ifstream file(path, std::ios::binary);
  Digest digest;
  std::array<char, std::size_t{1} << 16> block{};
  while (file) {
    file.read(block.data(), block.size());
    digest.add({block.data(), static_cast<std::size_t>(file.gcount())});
  }
  if (!file.eof())
    throw Error("corpus_open", fmt::format("{:?}: {}", path.string(), std::strerror(errno)));
  return digest.hex();
}

}  // namespace shardproof::corpus
