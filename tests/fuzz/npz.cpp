// A whole NumPy archive, in this process: libzip's listing, its members and their headers.
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "golden/trace/read/detail/npz_trace.h"
#include "tests/fuzz/sinks.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shardproof;
  static const int file = ::memfd_create("npz", 0);
  must(file >= 0 && ::ftruncate(file, 0) == 0);
  must(::pwrite(file, data, size, 0) == static_cast<ssize_t>(size));
  fuzzed([&] {
    dump::CountingSink sink;
    dump::read_npz(fmt::format("/proc/self/fd/{}", file), dump::CountingSink::kAllowance, sink);
    sink.complete();
  });
  return 0;
}
