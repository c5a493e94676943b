#include "tools/text_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "weights/error.h"

namespace shardproof::tools {

void write_text_file(const std::string& path, std::string_view text) {
  namespace fs = std::filesystem;
  const auto refuse = [&](std::string_view reason) {
    throw Error("file_write", fmt::format("{:?}: {}", path, reason));
  };
  // A rename over a device or a link would replace the thing itself.
  std::error_code failed;
  const fs::path resolved = fs::weakly_canonical(path, failed);
  const fs::path target = failed ? fs::path(path) : resolved;
  const fs::file_status status = fs::status(target, failed);
  if (fs::exists(status) && !fs::is_regular_file(status)) refuse("not a regular file");
  const fs::path temporary = target.string() + fmt::format(".{}.tmp", ::getpid());
  errno = 0;
  std::ofstream file(temporary, std::ios::binary);
  file << text;
  file.close();
  std::error_code ignored;
  if (!file) {
    const std::error_code reason(errno != 0 ? errno : EIO, std::generic_category());
    fs::remove(temporary, ignored);
    refuse(reason.message());
  }
  fs::rename(temporary, target, failed);
  if (!failed) return;
  fs::remove(temporary, ignored);
  refuse(failed.message());
}

}  // namespace shardproof::tools
