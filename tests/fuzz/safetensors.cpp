// A safetensors file: each tensor that its header describes can be read, or an error says why.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/fuzz/target.h"
#include "weights/safetensors/tensor_files.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shardproof;
  static const std::filesystem::path kFile =
      std::filesystem::temp_directory_path() / ("shardproof-fuzz-" + std::to_string(::getpid()));
  std::ofstream(kFile, std::ios::binary) << text_of(data, size);
  fuzzed([&] {
    const TensorFiles files = TensorFiles::open(kFile);
    for (const auto& [name, tensor] : files.all())
      must(files.read(name).data.size() <= size);  // each number has a byte of the file
  });
  return 0;
}
