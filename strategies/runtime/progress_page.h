// ProgressPage: one line of text a device in memory that two processes share.
//
// A worker's devices write what they are doing; the controller reads it after the worker was
// killed or hung, to say which action was the last. A write costs tens of nanoseconds.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "strategies/runtime/unique_fd.h"

namespace stratagem::runtime {

class ProgressPage {
 public:
  static constexpr int default_slots = 16;

  /// Creates the shared memory, or maps that of `fd`, which stays the caller's to inherit.
  /// Throws std::system_error.
  explicit ProgressPage(int fd = -1, int slots = default_slots);
  ~ProgressPage();
  ProgressPage(const ProgressPage&) = delete;
  ProgressPage& operator=(const ProgressPage&) = delete;

  /// Texts longer than a slot are cut. A slot out of range is ignored: it is only a diagnosis.
  void write(int slot, std::string_view text);
  std::string read(int slot) const;
  /// "device 0: 0F3, device 1: 1B2", without the slots never written.
  std::string summary() const;
  int fd() const { return fd_; }

 private:
  struct Slot;
  int fd_ = -1;
  UniqueFd own_fd_;  // where it was created here
  int slots_ = 0;
  std::size_t bytes_ = 0;
  Slot* memory_ = nullptr;  // mapped, not owned by a smart pointer
};

}  // namespace stratagem::runtime
