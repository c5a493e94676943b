#include "tools/command/output_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "weights/base/error.h"

namespace shardproof::tools {

void require_not_input(const NamedFile& output, std::initializer_list<NamedFile> inputs) {
  if (output.file.empty()) return;
  for (const NamedFile& input : inputs) {
    std::error_code missing;
    if (input.file.empty() || !std::filesystem::equivalent(output.file, input.file, missing))
      continue;
    throw Error("output_c2", fmt::format("{} {} is the file that {} {} reads; an output does not "
                                         "replace its input",
                                         output.flag, output.file, input.flag, input.file));
  }
}

}  // namespace shardproof::tools
