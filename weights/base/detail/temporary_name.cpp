#include "weights/base/detail/temporary_name.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/random.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <string>
#include <system_error>
#include <utility>

namespace shardproof {
namespace {

enum class State { free, taken, creating, there };
static_assert(std::atomic<State>::is_always_lock_free);  // required in a signal handler

std::atomic<bool> ending{false};

std::uint64_t random_bits() {
  std::uint64_t bits = 0;
  ssize_t count = 0;
  do count = ::getrandom(&bits, sizeof bits, 0);
  while (count < 0 && errno == EINTR);
  if (count != sizeof bits)
    throw std::system_error(count < 0 ? errno : EIO, std::generic_category(), "random bits");
  return bits;
}

}  // namespace

/// Entry of a list that only grows, so that a signal handler may walk it at any time.
struct TemporaryName::Slot {
  std::atomic<State> state{State::taken};
  std::string path;  // changes only while the state is taken
  Slot* next = nullptr;

  static inline std::atomic<Slot*> first{nullptr};
};

TemporaryName::TemporaryName(const std::filesystem::path& folder) : slot_(nullptr) {
  // Short, independent of the length of the final name.
  std::string name = folder / fmt::format(".shardproof-{:016x}.tmp", random_bits());
  for (Slot* slot = Slot::first; slot != nullptr && slot_ == nullptr; slot = slot->next) {
    State expected = State::free;
    if (slot->state.compare_exchange_strong(expected, State::taken)) slot_ = slot;
  }
  if (slot_ == nullptr) {
    slot_ = new Slot;
    slot_->next = Slot::first;
    while (!Slot::first.compare_exchange_weak(slot_->next, slot_)) {
    }
  }
  slot_->path = std::move(name);
}

TemporaryName::~TemporaryName() {
  if (slot_->state == State::there) ::unlink(path());
  slot_->state = State::free;
}

const char* TemporaryName::path() const { return slot_->path.c_str(); }

bool TemporaryName::begin() {
  slot_->state = State::creating;
  if (!ending) return true;
  slot_->state = State::taken;
  errno = ECANCELED;
  return false;
}

void TemporaryName::created(bool there) { slot_->state = there ? State::there : State::taken; }

void remove_temporaries() noexcept {
  const int error = errno;
  ending = true;
  using Slot = TemporaryName::Slot;
  for (Slot* slot = Slot::first; slot != nullptr; slot = slot->next) {
    // Creating is one system call. A handler that interrupted it waits in vain, then unlinks the
    // file, if any.
    for (int wait = 0; wait < 1000 && slot->state == State::creating; ++wait) ::poll(nullptr, 0, 1);
    const State state = slot->state;
    if (state == State::creating || state == State::there) ::unlink(slot->path.c_str());
  }
  errno = error;
}

}  // namespace shardproof
