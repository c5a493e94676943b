#include "tools/runner/report.h"

#include <fmt/format.h>

#include <csignal>

namespace shardproof::tools {

std::string signal_name(int signal) {
  switch (signal) {
    case SIGINT:
      return "SIGINT";
    case SIGTERM:
      return "SIGTERM";
    case SIGHUP:
      return "SIGHUP";
    default:
      return fmt::format("signal {}", signal);
  }
}

}  // namespace shardproof::tools
