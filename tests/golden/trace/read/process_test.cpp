// The child that reads: what it may, and what becomes of one that dies, loops or lies.
#include "golden/trace/read/detail/process.h"

#include <gtest/gtest.h>
// gtest first
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "golden/trace/read/detail/stream.h"
#include "tests/sanitized.h"
#include "tests/weights/expect_error.h"

namespace shardproof::dump {
namespace {

constexpr Limits kSmall{.bytes = 64U << 20, .processor_seconds = 2, .silent_seconds = 1};

std::string fate(const Reader& reader, const Limits& limits = kSmall) {
  return message_of([&] { read_in_child(reader, limits); });
}

/// One array of bytes under its path.
void give(Sink& sink, std::string_view path, const Attributes& attributes = {}) {
  sink.array(path, attributes, NumberFormat::int8, {3});
  sink.bytes(std::vector<std::byte>(3, std::byte{7}));
}

bool no_child_is_left() { return ::waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD; }

TEST(Process, TellsWhatItsReaderFound) {
  const Dump dump = read_in_child(
      [](Sink& sink) {
        sink.attribute("case", "torus=1x1x1");
        give(sink, "b", {{"layout", "BLE"}});
        give(sink, "chips/0_1_2/a");
        give(sink, "chips/0_1_3/a");
        sink.ignored("expected");
      },
      kSmall);
  EXPECT_EQ(dump.attributes, (Attributes{{"case", "torus=1x1x1"}}));
  EXPECT_EQ(dump.order, (std::vector<std::string>{"b", "a"}));
  EXPECT_EQ(dump.ignored, (std::vector<std::string>{"expected"}));
  EXPECT_FALSE(dump.values.at("b").in_shards());
  EXPECT_EQ(dump.values.at("b").attributes, (Attributes{{"layout", "BLE"}}));
  EXPECT_EQ(dump.values.at("b").whole.at(2), 7.0);
  EXPECT_EQ(dump.values.at("a").chips.size(), 2U);
  EXPECT_EQ(dump.values.at("a").chips.at({0, 1, 3}).shape, Shape{3});
  EXPECT_TRUE(no_child_is_left());
}

// An array that lies in the file is lent, and no byte beyond the file is: a reader that a hostile
// file has taken over may say any place.
TEST(Process, LendsWhatLiesInTheFile) {
  std::vector<std::byte> file(64);
  for (std::size_t i = 0; i < file.size(); ++i) file[i] = static_cast<std::byte>(i);
  const auto read = [&](std::uint64_t first, std::int64_t count) {
    return read_in_child(
        [=](Sink& sink) {
          sink.array("a", {}, NumberFormat::int8, {count});
          sink.in_file(first);
          give(sink, "b");
        },
        kSmall, file);
  };
  for (const std::uint64_t first : {0U, 3U, 56U}) {
    const Dump dump = read(first, 8);
    const StoredArray& a = dump.values.at("a").whole;
    EXPECT_EQ(a.elements().data(), file.data() + first);
    EXPECT_EQ(a.size(), 8U);
    EXPECT_TRUE(a.bytes.empty());
    EXPECT_EQ(a.at(7), static_cast<double>(first + 7));
    EXPECT_EQ(dump.values.at("b").whole.at(2), 7.0);
  }
  for (const auto& [first, count] :
       {std::pair<std::uint64_t, std::int64_t>{57, 8}, {64, 1}, {0, 65}, {~std::uint64_t{0}, 8}})
    EXPECT_EQ(
        message_of([&] { read(first, count); }),
        fmt::format("dump_open: the reader sent {} bytes from {} of a file of 64", count, first));
  EXPECT_EQ(fate([](Sink& sink) {
              sink.array("a", {}, NumberFormat::int8, {1});
              sink.in_file(0);
            }),
            "dump_open: the reader sent 1 bytes from 0 of a file of 0");
  EXPECT_TRUE(no_child_is_left());
}

TEST(Process, PassesOnItsReadersError) {
  EXPECT_EQ(fate([](Sink&) { throw Error("dump_value", "\"a\" is\nodd"); }),
            "dump_value: \"a\" is odd");
  EXPECT_EQ(fate([](Sink& sink) {
              give(sink, "a");
              throw Error("dump_size", "too much");
            }),
            "dump_size: too much");
  EXPECT_EQ(fate([](Sink& sink) {  // within an array
              sink.array("a", {}, NumberFormat::int8, {3});
              sink.bytes(std::vector<std::byte>(2));
              throw Error("dump_value", "odd");
            }),
            "dump_value: odd");
  EXPECT_EQ(fate([](Sink&) { throw std::runtime_error("odd"); }), "dump_open: odd");
  EXPECT_EQ(fate([](Sink&) { throw Error("other_label", "x"); }),
            "dump_open: the reader ended with an unknown error");
}

// A sanitizer turns a signal into an exit code.
TEST(Process, SurvivesAReaderThatDies) {
  const auto dies = [](int number) {
    return fate([=](Sink& sink) {
      give(sink, "a");
      ::raise(number);
    });
  };
  EXPECT_EQ(dies(SIGKILL), "dump_open: the reader ended by signal 9");
  EXPECT_EQ(dies(SIGTERM), "dump_open: the reader ended by signal 15");
  for (const int number : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL}) {
    EXPECT_EQ(dies(number), fmt::format("dump_open: the reader ended by signal {}", number));
    EXPECT_TRUE(no_child_is_left());
  }
  EXPECT_EQ(fate([](Sink&) { std::abort(); }), "dump_open: the reader ended by signal 6");
  EXPECT_EQ(fate([](Sink&) { ::_exit(3); }), "dump_open: the reader ended with exit code 3");
  EXPECT_EQ(fate([](Sink&) { throw 1; }), "dump_open: the reader ended with exit code 1");
}

TEST(Process, EndsAReaderThatLoops) {
  EXPECT_EQ(fate(
                [](Sink&) {
                  volatile int turns = 0;  // else a compiler may take the loop for nothing
                  while (turns >= 0) turns = 1 - turns;
                },
                {.bytes = 1 << 20, .processor_seconds = 1, .silent_seconds = 60}),
            "dump_open: the reader took too long and was ended");
  EXPECT_EQ(fate([](Sink&) { ::sleep(600); }), "dump_open: the reader said nothing for 1 s");
  EXPECT_TRUE(no_child_is_left());
}

TEST(Process, LimitsMemory) {
  const auto takes = [](std::size_t bytes) {
    return fate([=](Sink&) {
      std::vector<std::vector<char>> all;
      for (std::size_t taken = 0; taken < bytes; taken += 1U << 20) all.emplace_back(1U << 20, 'x');
    });
  };
  EXPECT_EQ(takes(32U << 20), "");
  if (kSanitized)
    std::cout << "address space is not limited under a sanitizer\n";
  else
    EXPECT_EQ(takes(std::size_t{4} << 30), "dump_size: to read it takes more than 67108864 bytes");
}

TEST(Process, HasNothingOfItsParents) {
  const int open = ::open("/dev/null", O_RDONLY);
  ASSERT_GE(open, 3);
  static std::atomic<int> handled = 0;
  const auto before = ::signal(SIGUSR1, [](int) { ++handled; });
  EXPECT_EQ(fate([=](Sink&) {
              if (::fcntl(open, F_GETFD) != -1) throw Error("dump_value", "has a file");
              char c = 0;
              if (::read(0, &c, 1) != 0) throw Error("dump_value", "has a standard input");
              rlimit core{};
              ::getrlimit(RLIMIT_CORE, &core);
              if (core.rlim_cur != 0) throw Error("dump_value", "leaves a core");
              ::raise(SIGUSR1);
            }),
            fmt::format("dump_open: the reader ended by signal {}", SIGUSR1));
  ::signal(SIGUSR1, before);
  ::close(open);
}

// Whatever a child sends that its file has taken over: it ends in an Error.
TEST(Process, BelievesNoStream) {
  const auto sends = [](const std::string& bytes) {
    return fate([=](Sink&) {
      // The pipe is the only file that a child has besides its standard streams.
      for (int number = 3; number < 64; ++number)
        if (::fcntl(number, F_GETFD) != -1 &&
            ::write(number, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
          ::_exit(9);
      ::_exit(0);
    });
  };
  const auto number = [](std::uint64_t value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  const auto text = [&](const std::string& value) { return number(value.size()) + value; };
  const std::string array = "V" + text("a") + number(1) + number(0);
  EXPECT_EQ(sends("Z"), "");
  EXPECT_EQ(sends(array + number(1) + number(1) + "P" + number(4) + "abcdZ"), "");
  const std::string unread = "U" + text("a") + number(0) + text("has other elements");
  EXPECT_EQ(sends(unread + "Z"), "");
  EXPECT_EQ(sends(unread + unread + "Z").substr(0, 11), "dump_value:");
  EXPECT_EQ(sends("U" + text("a")), "dump_open: the reader ended with exit code 0");
  EXPECT_EQ(sends(""), "dump_open: the reader ended with exit code 0");
  EXPECT_EQ(sends(array), "dump_open: the reader ended with exit code 0");
  for (const std::string& broken :
       {std::string("?"), "A" + number(~std::uint64_t{0}), "A" + number(1 << 20),
        "V" + text("a") + number(99), array + number(1000),
        array + number(2) + number(std::uint64_t{1} << 62) + number(8),
        array + number(1) + number(~std::uint64_t{0}), array + number(1) + number(1) + "Z",
        array + number(1) + number(1) + "P" + number(0),
        array + number(1) + number(1) + "P" + number(5) + "abcde"}) {
    const std::string what = sends(broken);
    EXPECT_EQ(what.substr(0, 27), "dump_open: the reader sent ") << what;
  }
  // Within the 64 bits, but not within the allowance.
  EXPECT_EQ(sends(array + number(1) + number(std::uint64_t{1} << 30)).substr(0, 10), "dump_size:");
  // No end of names.
  std::string names = "V" + text("a") + number(1) + number(std::uint64_t{1} << 60);
  for (int i = 0; i < 3000; ++i)
    names += text(std::to_string(i)) + text(std::string(60 << 10, 'x'));
  EXPECT_EQ(sends(names).substr(0, 10), "dump_size:");
}

TEST(Process, RefusesWhatAreNoValues) {
  const auto paths = [](std::vector<std::pair<std::string, Attributes>> all) {
    return fate([=](Sink& sink) {
      for (const auto& [path, attributes] : all) give(sink, path, attributes);
    });
  };
  EXPECT_EQ(paths({{"a", {}}, {"b", {}}, {"chips/0_0_0/c", {}}}), "");
  for (const auto& bad : std::vector<std::vector<std::pair<std::string, Attributes>>>{
           {{"a", {}}, {"a", {}}},
           {{"a", {}}, {"chips/0_0_0/a", {}}},
           {{"chips/0_0_0/a", {}}, {"a", {}}},
           {{"chips/0_0_0/a", {}}, {"chips/0_0_0/a", {}}},
           {{"chips/0_0_0/a", {{"layout", "B"}}}, {"chips/0_0_1/a", {{"layout", "L"}}}},
           {{"chips/0_0_0/a", {{"layout", "B"}}}, {"chips/0_0_1/a", {}}},
           {{"chips/0_0_0/a", {}}, {"chips/0_0_1/a", {{"padded", "M"}}}},
           {{"", {}}},
           {{"a\nb", {}}},
           {{"a/b", {}}},
           {{"../b", {}}},
           {{"chips/0_0_0/", {}}},
           {{"chips/0_0_0", {}}},
           {{"chips/0_0/a", {}}},
           {{"chips/0_0_0_0/a", {}}},
           {{"chips/0_0_00/a", {}}},
           {{"chips/+0_0_0/a", {}}},
           {{"chips/0_0_-1/a", {}}},
           {{"chips/0_0_99999999999/a", {}}},
           {{"chips//a", {}}},
           {{"chips/x_y_z/a", {}}},
           {{"chips/0_0_0/b/a", {}}}})
    EXPECT_EQ(paths(bad).substr(0, 11), "dump_value:") << bad.back().first;
  // What a writer says of its own may differ, as a rank.
  EXPECT_EQ(paths({{"chips/0_0_0/a", {{"rank", "0"}}}, {"chips/0_0_1/a", {{"rank", "1"}}}}), "");
}

TEST(Process, WorksBesideOtherThreads) {
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i)  // which allocate all the time
    threads.emplace_back([&] {
      while (!stop) std::string(static_cast<std::size_t>(std::rand() % 100000), 'x').clear();
    });
  for (int i = 0; i < 2; ++i)
    threads.emplace_back([] {
      for (int j = 0; j < 20; ++j)
        EXPECT_EQ(fate([](Sink& sink) { give(sink, "a"); },
                       {.bytes = 64U << 20, .processor_seconds = 10, .silent_seconds = 30}),
                  "");
    });
  for (std::size_t i = 2; i < threads.size(); ++i) threads[i].join();
  stop = true;
  threads[0].join();
  threads[1].join();
  EXPECT_TRUE(no_child_is_left());
}

TEST(Process, ASignalDoesNotEndTheReading) {
  const auto before = ::signal(SIGUSR1, [](int) {});
  const pthread_t here = ::pthread_self();
  std::atomic<bool> stop = false;
  std::thread sender([&] {
    while (!stop) {
      ::pthread_kill(here, SIGUSR1);
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  });
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(fate([](Sink& sink) {
                for (int j = 0; j < 50; ++j) give(sink, std::to_string(j));
                ::usleep(2000);
              }),
              "");
  stop = true;
  sender.join();
  ::signal(SIGUSR1, before);
}

TEST(Process, WorksWhereChildrenAreNotWaitedFor) {
  const auto before = ::signal(SIGCHLD, SIG_IGN);
  EXPECT_EQ(fate([](Sink& sink) { give(sink, "a"); }), "");
  EXPECT_EQ(fate([](Sink&) { ::raise(SIGKILL); }), "dump_open: the reader ended too early");
  ::signal(SIGCHLD, before);
}

}  // namespace
}  // namespace shardproof::dump
