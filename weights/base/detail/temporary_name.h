#pragma once

#include <filesystem>

namespace shardproof {

/// The name of a temporary file while one is being written: unpredictable, and known to
/// remove_temporaries. Made and used by one thread; several may have one each.
class TemporaryName {
 public:
  /// A new name in `folder`, of which there is no file yet. Throws std::system_error if the system
  /// gives no random bits.
  explicit TemporaryName(const std::filesystem::path& folder);
  TemporaryName(const TemporaryName&) = delete;
  TemporaryName& operator=(const TemporaryName&) = delete;
  /// Removes the file, unless it was taken.
  ~TemporaryName();

  const char* path() const;

  /// Calls `make(path)`, which is to create the file and to return a negative number if it could
  /// not, having set errno. Makes nothing, as if it were cancelled, once the process is ending.
  template <class Make>
  int create(Make&& make) {
    if (!begin()) return -1;
    const int made = make(path());
    created(made >= 0);
    return made;
  }

  /// The file has another name now.
  void taken() { created(false); }

 private:
  struct Slot;
  bool begin();
  void created(bool there);

  Slot* slot_;

  friend void remove_temporaries() noexcept;
};

/// Removes every temporary file of this process, and lets it make no more: for a process that is
/// about to end at a signal. May be called in a signal handler, and beside any other thread.
void remove_temporaries() noexcept;

}  // namespace shardproof
