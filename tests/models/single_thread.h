// Runs a test's ATen calls on one thread, as a one-core device does.
#pragma once

#include <ATen/Parallel.h>

namespace stratagem::models {

class SingleThread {
 public:
  SingleThread() : previous_(at::get_num_threads()) { at::set_num_threads(1); }
  ~SingleThread() { at::set_num_threads(previous_); }
  SingleThread(const SingleThread&) = delete;
  SingleThread& operator=(const SingleThread&) = delete;

 private:
  int previous_;
};

}  // namespace stratagem::models
