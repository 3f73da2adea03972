#include "bench/task_fault.h"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <thread>

namespace stratagem::bench {
namespace {

void commit(const std::string& kind) {
  if (kind == "throw") throw std::runtime_error("a fault on purpose");
  if (kind == "exhaust") throw std::bad_alloc();
  if (kind == "kill") std::raise(SIGKILL);
  if (kind == "hang") {
    while (true) std::this_thread::sleep_for(std::chrono::hours(1));
  }
}

}  // namespace

std::function<void(const pipeline::Action&)> fault_on_purpose(const std::string& strategy) {
  const char* text = std::getenv("STRATAGEM_TEST_FAULT");
  if (text == nullptr) return {};
  const std::string fault(text);
  const auto first = fault.find('@');
  if (first == std::string::npos) return {};
  const auto second = fault.find('@', first + 1);
  if (second != std::string::npos && fault.substr(second + 1) != strategy) return {};
  const std::string kind = fault.substr(0, first);
  const std::string action = fault.substr(first + 1, second - first - 1);
  return [kind, action](const pipeline::Action& next) {
    if (to_string(next) == action) commit(kind);
  };
}

}  // namespace stratagem::bench
