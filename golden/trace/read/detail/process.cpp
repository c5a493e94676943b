#include "golden/trace/read/detail/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <string>

#include "golden/trace/read/detail/stream.h"
#include "weights/base/detail/descriptor.h"

#ifdef __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SHARDPROOF_DUMP_SANITIZED
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SHARDPROOF_DUMP_SANITIZED
#endif

namespace shardproof::dump {
namespace {

#ifdef SHARDPROOF_DUMP_SANITIZED
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

/// Blocks all signals while it lives: none of this process's handlers runs in a fresh child.
class SignalsHeld {
 public:
  SignalsHeld() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;
  ~SignalsHeld() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

/// A child process that is always killed and reaped at the end.
class Child {
 public:
  explicit Child(pid_t id) : id_(id) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (id_ > 0) {
      ::kill(id_, SIGKILL);
      waited(nullptr, 0);
    }
  }

  /// Says how the child ended after its pipe was closed. Handles a process that ignores SIGCHLD,
  /// where that is unknown, and does not wait for a child that keeps running.
  std::string end() {
    constexpr int kMostWaits = 5000;
    int status = 0;
    pid_t done = 0;
    for (int i = 0; i < kMostWaits && done == 0; ++i) {
      if (i > 0) ::usleep(1000);
      done = waited(&status, WNOHANG);
    }
    if (done == 0) return "closed its pipe too early";
    id_ = -1;
    if (done < 0) return "ended too early";
    if (WIFSIGNALED(status)) {
      if (WTERMSIG(status) == SIGXCPU) return "took too long and was ended";
      return fmt::format("ended by signal {}", WTERMSIG(status));
    }
    return fmt::format("ended with exit code {}", WEXITSTATUS(status));
  }

 private:
  pid_t waited(int* status, int options) const {
    while (true) {
      const pid_t done = ::waitpid(id_, status, options);
      if (done >= 0 || errno != EINTR) return done;
    }
  }

  pid_t id_;
};

// ---- in the child ----

void limit(__rlimit_resource resource, rlim_t most) {
  rlimit now{};
  if (::getrlimit(resource, &now) != 0) return;
  now.rlim_cur = std::min(now.rlim_cur, most);
  now.rlim_max = std::min(now.rlim_max, resource == RLIMIT_CPU ? most + 1 : most);
  ::setrlimit(resource, &now);
}

/// Returns the address space of this process in bytes; 0 if unknown.
rlim_t address_space() {
  std::FILE* const file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr) return 0;
  unsigned long pages = 0;
  const bool read = std::fscanf(file, "%lu", &pages) == 1;
  std::fclose(file);
  return read ? rlim_t{pages} * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) : 0;
}

void limit_all(const Limits& limits) {
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_CPU, static_cast<rlim_t>(limits.processor_seconds));
  const rlim_t now = kSanitized ? 0 : address_space();
  if (now > 0) limit(RLIMIT_AS, now + limits.bytes);
}

void close_all_but(int kept) {
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int standard = 0; standard <= (kSanitized ? 1 : 2); ++standard)
    if (nothing >= 0 && standard != kept) ::dup2(nothing, standard);
  const auto file = static_cast<unsigned>(kept);
  if ((kept == 3 || ::close_range(3, file - 1, 0) == 0) && ::close_range(file + 1, ~0U, 0) == 0)
    return;
  // On Linux before 5.9. File numbers above 65536 may stay open; a reader does not use them.
  const int highest = static_cast<int>(std::min<long>(::sysconf(_SC_OPEN_MAX), 1 << 16));
  for (int number = 3; number < highest; ++number)
    if (number != kept) ::close(number);
}

void default_signals() {
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
}

[[noreturn]] void run(const Reader& reader, const Limits& limits, int pipe) {
  default_signals();
  close_all_but(pipe);
  limit_all(limits);
  int code = 0;
  try {
    StreamWriter stream(pipe);
    try {
      reader(stream);
      stream.end();
    } catch (const Error& error) {
      stream.end(error);
    } catch (const std::bad_alloc&) {
      stream.end(
          Error("dump_size", fmt::format("to read it takes more than {} bytes", limits.bytes)));
    } catch (const std::exception& error) {
      stream.end(Error("dump_open", error.what()));
    }
  } catch (...) {
    code = 1;
  }
  ::_exit(code);
}

}  // namespace

Limits limits_of(std::uint64_t file_bytes) {
  constexpr std::uint64_t kLeast = std::uint64_t{64} << 20;
  constexpr std::uint64_t kMost = std::uint64_t{1} << 60;
  const std::uint64_t bytes = std::max(kLeast, 8 * std::min(file_bytes, kMost));
  const auto minutes = static_cast<int>(std::min<std::uint64_t>(1 + (file_bytes >> 27), 1 << 20));
  return {.bytes = bytes, .processor_seconds = 60 * minutes};
}

Dump read_in_child(const Reader& reader, const Limits& limits, std::span<const std::byte> file) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0)
    throw Error("dump_open", fmt::format("no pipe to a reader: {}", std::strerror(errno)));
  Descriptor reading(ends[0]), writing(ends[1]);
#ifdef F_SETPIPE_SZ
  ::fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);  // fewer switches, if the system allows it
#endif
  pid_t id = 0;
  {
    const SignalsHeld dumped;
    id = ::fork();
    if (id == 0) run(reader, limits, writing.get());
  }
  if (id < 0)
    throw Error("dump_open", fmt::format("no process for a reader: {}", std::strerror(errno)));
  Child child(id);
  writing.close();
  StreamReader stream(reading.get(), limits.bytes, limits.silent_seconds, file);
  try {
    return stream.read();
  } catch (const EndOfStream&) {
    throw Error("dump_open", fmt::format("the reader {}", child.end()));
  } catch (const BrokenStream& broken) {
    throw Error("dump_open", fmt::format("the reader {}", broken.what()));
  }
}

}  // namespace shardproof::dump
