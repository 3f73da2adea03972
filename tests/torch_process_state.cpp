// What the tests of a process share where LibTorch is.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/DefaultDtype.h>

#include <cstdint>

#include "models/cpu_kernels/reference_kernels.h"
#include "tests/process_state.h"

namespace stratagem {
namespace {

/// A test's random numbers don't depend on what ran before it. --gtest_shuffle draws other ones, by
/// the seed that it prints.
class Seeds : public testing::EmptyTestEventListener {
 public:
  void OnTestStart(const testing::TestInfo& /*test*/) override {
    at::manual_seed(static_cast<std::uint64_t>(testing::UnitTest::GetInstance()->random_seed()));
  }
};

/// As a device of one core: a test that wants more threads says so.
class OneThread : public testing::Environment {
 public:
  void SetUp() override { at::set_num_threads(1); }
};

ProcessState torch_process_state() {
  ProcessState state = process_state();
  state["ATen's threads"] = std::to_string(at::get_num_threads());
  state["default number format"] = std::string(c10::get_default_dtype().name());
  state["gradients"] = at::GradMode::is_enabled() ? "on" : "off";
  state["allocator"] = std::to_string(reinterpret_cast<std::uintptr_t>(c10::GetCPUAllocator()));
  state["kernels"] = models::uses_reference_kernels() ? "reference" : "own";
  state["deterministic algorithms"] =
      at::globalContext().deterministicAlgorithms() ? "required" : "not required";
  return state;
}

[[maybe_unused]] const auto* const one_thread =
    testing::AddGlobalTestEnvironment(std::make_unique<OneThread>().release());
[[maybe_unused]] const bool checked = check_process_state(torch_process_state);
[[maybe_unused]] const bool seeded = [] {
  testing::UnitTest::GetInstance()->listeners().Append(std::make_unique<Seeds>().release());
  return true;
}();

}  // namespace
}  // namespace stratagem
