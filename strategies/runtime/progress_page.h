// ProgressPage: one line of text for each device in memory that two processes share.
//
// A worker's devices write their current action. If the worker hangs or is killed, the controller
// reads it and reports the last action. A write costs tens of nanoseconds.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "strategies/runtime/unique_fd.h"

namespace stratagem::runtime {

class ProgressPage {
 public:
  static constexpr int default_slots = 16;

  /// Creates the shared memory, or maps that of `fd`, which the caller keeps for inheritance.
  /// Throws std::system_error.
  explicit ProgressPage(int fd = -1, int slots = default_slots);
  ~ProgressPage();
  ProgressPage(const ProgressPage&) = delete;
  ProgressPage& operator=(const ProgressPage&) = delete;

  /// Cuts texts longer than a slot. Ignores a slot out of range: this is only a diagnosis.
  void write(int slot, std::string_view text);
  std::string read(int slot) const;
  /// Returns "device 0: 0F3, device 1: 1B2", without the slots never written.
  std::string summary() const;
  int fd() const { return fd_; }

 private:
  struct Slot;
  int fd_ = -1;
  UniqueFd own_fd_;  // set if the memory was created here
  int slots_ = 0;
  std::size_t bytes_ = 0;
  Slot* memory_ = nullptr;  // mapped, so not owned by a smart pointer
};

}  // namespace stratagem::runtime
