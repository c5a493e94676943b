#pragma once

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

namespace shardproof {

struct Said {
  int code = -1;
  std::string text;  ///< standard output and standard error, as they came
};

/// What the program says to these words, which a shell reads.
inline Said said(const std::string& arguments) {
  Said result;
  const std::string command = "'" SHARDPROOF_CLI "' " + arguments + " 2>&1 </dev/null";
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return result;
  std::array<char, 4096> part{};
  for (std::size_t n; (n = std::fread(part.data(), 1, part.size(), pipe)) > 0;)
    result.text.append(part.data(), n);
  const int status = pclose(pipe);
  if (WIFEXITED(status)) result.code = WEXITSTATUS(status);
  return result;
}

}  // namespace shardproof
