#pragma once

#include <filesystem>

namespace shardproof {

/// Unpredictable name of a temporary file that is being written, known to remove_temporaries. An
/// object belongs to one thread; several threads may have one each.
class TemporaryName {
 public:
  /// Chooses a name in `folder` without creating the file. Throws std::system_error if the system
  /// provides no random bits.
  explicit TemporaryName(const std::filesystem::path& folder);
  TemporaryName(const TemporaryName&) = delete;
  TemporaryName& operator=(const TemporaryName&) = delete;
  /// Removes the file unless taken() was called.
  ~TemporaryName();

  const char* path() const;

  /// Calls `make(path)`, which creates the file or sets errno and returns a negative number. Once
  /// the process is ending, returns -1 with errno ECANCELED without calling it.
  template <class Make>
  int create(Make&& make) {
    if (!begin()) return -1;
    const int made = make(path());
    created(made >= 0);
    return made;
  }

  /// Marks the file as renamed, so that it is no longer removed.
  void taken() { created(false); }

 private:
  struct Slot;
  bool begin();
  void created(bool there);

  Slot* slot_;

  friend void remove_temporaries() noexcept;
};

/// Removes every temporary file of this process and prevents new ones: for a process about to end
/// at a signal. Safe in a signal handler and concurrently with other threads.
void remove_temporaries() noexcept;

}  // namespace shardproof
