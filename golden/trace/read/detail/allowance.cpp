#include "golden/trace/read/detail/allowance.h"

#include <fmt/format.h>

namespace shardproof::dump {

void Allowance::take(std::uint64_t bytes, std::string_view what) {
  if (bytes > left_)
    throw Error("dump_size",
                fmt::format("{} takes {} bytes where {} are left of {}: more than 64 MiB and 8 "
                            "times the file are not read, leave the compression out",
                            what, bytes, left_, whole_));
  left_ -= bytes;
}

}  // namespace shardproof::dump
