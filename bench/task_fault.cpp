#include "bench/task_fault.h"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <new>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <vector>

namespace stratagem::bench {
namespace {

void commit(const std::string& kind) {
  if (kind == "throw") throw std::runtime_error("a fault on purpose");
  if (kind == "exhaust") throw std::bad_alloc();
  if (kind == "kill") std::raise(SIGKILL);
  if (kind == "stop") std::raise(SIGSTOP);
  if (kind == "hang") {
    while (true) std::this_thread::sleep_for(std::chrono::hours(1));
  }
}

}  // namespace

std::function<void(const pipeline::Action&)> fault_on_purpose(const std::string& strategy,
                                                              int rank) {
  const char* text = std::getenv("STRATAGEM_TEST_FAULT");
  if (text == nullptr) return {};
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, '@');) parts.push_back(part);
  if (parts.size() < 2) return {};
  if (parts.size() > 2 && parts[2] != strategy) return {};
  if (parts.size() > 3 && parts[3] != std::to_string(rank)) return {};
  return [kind = parts[0], action = parts[1]](const pipeline::Action& next) {
    if (to_string(next) == action) commit(kind);
  };
}

}  // namespace stratagem::bench
