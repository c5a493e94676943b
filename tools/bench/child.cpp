#include "tools/bench/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <thread>

namespace shardproof::bench {
namespace {

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

File temporary_file() {
  File file(std::tmpfile(), std::fclose);
  if (file == nullptr) throw std::runtime_error("no temporary file can be made");
  return file;
}

std::string content(std::FILE* file) {
  std::rewind(file);
  std::string text;
  std::array<char, 4096> part{};
  for (std::size_t n; (n = std::fread(part.data(), 1, part.size(), file)) > 0;)
    text.append(part.data(), n);
  return text;
}

std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.empty() ? "it said nothing" : text.substr(text.rfind('\n') + 1);
}

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

/// Starts a program with standard output and error redirected to these files.
pid_t spawned(const std::vector<std::string>& words, std::FILE* out, std::FILE* err) {
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, fileno(out), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, fileno(err), STDERR_FILENO);
  pid_t id = 0;
  const int error = posix_spawn(&id, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    throw std::runtime_error(fmt::format("cannot start {}: {}", words[0], std::strerror(error)));
  return id;
}

/// Returns the resident bytes of a process that are not of files; 0 if it has ended.
std::int64_t own_bytes(pid_t id) {
  std::ifstream status(fmt::format("/proc/{}/status", id));
  std::int64_t kilobytes = 0;
  for (std::string name; status >> name;)
    if (std::int64_t count = 0; (name == "RssAnon:" || name == "RssShmem:") && status >> count)
      kilobytes += count;
  return kilobytes * 1024;
}

std::int64_t own_peak() {
  rusage own{};
  getrusage(RUSAGE_SELF, &own);
  return own.ru_maxrss * 1024;
}

}  // namespace

Child run_child(const std::string& program, const std::vector<std::string>& arguments, int code) {
  std::vector<std::string> words{program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const File out = temporary_file(), err = temporary_file();
  const Cost began = clocks(Whose::process);
  const pid_t id = spawned(words, out.get(), err.get());
  int status = 0;
  rusage usage{};
  std::int64_t most = 0;
  std::jthread watching([&](const std::stop_token& stop) {
    for (; !stop.stop_requested(); std::this_thread::sleep_for(std::chrono::milliseconds(5)))
      most = std::max(most, own_bytes(id));
  });
  if (wait4(id, &status, 0, &usage) != id) throw std::runtime_error("a child was lost");
  watching.request_stop();
  watching.join();
  const double wall = (clocks(Whose::process) - began).wall;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != code) {
    const std::string how = WIFEXITED(status) ? fmt::format("exit code {}", WEXITSTATUS(status))
                                              : fmt::format("signal {}", WTERMSIG(status));
    throw std::runtime_error(
        fmt::format("{}: {}: {}", fmt::join(words, " "), how, last_line(content(err.get()))));
  }
  Child child{
      {seconds(usage.ru_utime) + seconds(usage.ru_stime), wall}, {}, most, content(out.get())};
  if (const std::int64_t peak = usage.ru_maxrss * 1024; peak > own_peak()) child.peak_bytes = peak;
  return child;
}

}  // namespace shardproof::bench
