#pragma once

#include <unistd.h>

#include <utility>

namespace shardproof {

/// Owns a file descriptor, or none if the number is negative.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { close(); }

  explicit operator bool() const { return number_ >= 0; }
  int get() const { return number_; }
  /// Returns false if close(2) failed; true if it succeeded or no descriptor was open.
  bool close() { return number_ < 0 || ::close(std::exchange(number_, -1)) == 0; }

 private:
  int number_;
};

}  // namespace shardproof
