#include "bench/worker/fault_injection.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <new>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace stratagem::bench {
namespace {

constexpr const char* variable = "STRATAGEM_TEST_FAULT";

void work_for(std::chrono::duration<double, std::milli> duration) {
  const auto end = std::chrono::steady_clock::now() + duration;
  const at::Tensor matrix = at::ones({128, 128});
  while (std::chrono::steady_clock::now() < end) at::mm(matrix, matrix);
}

void commit(const std::string& kind, const AllRanks& all_ranks) {
  const at::NoGradGuard guard;
  constexpr std::string_view work = "work=";
  if (kind.starts_with(work)) {
    work_for(std::chrono::duration<double, std::milli>(std::stod(kind.substr(work.size()))));
  }
  if (kind == "operator") at::ones({1}).add_(1);
  if (kind == "all_reduce" && all_ranks() != nullptr)
    all_ranks()->all_reduce(at::ones({1}))->wait();
  if (kind == "throw") throw std::runtime_error("an injected fault");
  if (kind == "exhaust") throw std::bad_alloc();
  if (kind == "kill") std::raise(SIGKILL);
  if (kind == "stop") std::raise(SIGSTOP);
  if (kind == "hang") {
    while (true) std::this_thread::sleep_for(std::chrono::hours(1));
  }
}

/// Returns the kind and the action or step of the requested fault; nullopt without one.
std::optional<std::pair<std::string, std::string>> asked_fault(FaultyTask task,
                                                               const std::string& strategy,
                                                               int rank) {
  const char* value = std::getenv(variable);
  if (value == nullptr) return std::nullopt;
  std::string_view text = value;
  constexpr std::string_view verify = "verify:";
  if (text.starts_with(verify) != (task == FaultyTask::verify)) return std::nullopt;
  if (task == FaultyTask::verify) text.remove_prefix(verify.size());
  std::vector<std::string> parts;
  std::istringstream stream{std::string(text)};
  for (std::string part; std::getline(stream, part, '@');) parts.push_back(part);
  if (parts.size() < 2) return std::nullopt;
  if (parts.size() > 2 && parts[2] != strategy) return std::nullopt;
  if (parts.size() > 3 && parts[3] != std::to_string(rank)) return std::nullopt;
  return std::pair(parts[0], parts[1]);
}

}  // namespace

bool faults_are_injected() { return std::getenv(variable) != nullptr; }

std::function<void(const schedules::Action&)> injected_fault(FaultyTask task,
                                                             const std::string& strategy, int rank,
                                                             AllRanks all_ranks) {
  const auto fault = asked_fault(task, strategy, rank);
  if (!fault) return {};
  return [kind = fault->first, action = fault->second,
          all_ranks = std::move(all_ranks)](const schedules::Action& next) {
    if (to_string(next) == action) commit(kind, all_ranks);
  };
}

StepFault injected_step_fault(const std::string& strategy, int rank, std::int64_t step) {
  StepFault found{.batch = step};
  const auto fault = asked_fault(FaultyTask::measure, strategy, rank);
  if (!fault) return found;
  constexpr std::string_view rate = "rate=";
  const auto& [kind, where] = *fault;
  if (kind == "stale") found.batch = std::min<std::int64_t>(step, std::stoll(where) - 1);
  if (kind.starts_with(rate) && step == std::stoll(where)) {
    found.rate = std::stod(kind.substr(rate.size()));
  }
  return found;
}

}  // namespace stratagem::bench
