// Which kernels a row's devices compute by, in every task.
#include <ATen/record_function.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "bench/worker/tasks.h"
#include "tests/bench/worker/small_rows.h"

namespace stratagem::bench::kernels_test {
namespace {

/// What is called while it lives, on all threads: ATen's operators and the nodes of backward
/// passes, by name. One at a time.
class Calls {
 public:
  Calls()
      : handle_(at::addGlobalCallback(at::RecordFunctionCallback(note).scopes(
            {at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}))) {
    names.clear();
  }
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;
  ~Calls() { at::removeCallback(handle_); }

  bool have(const std::string& part) const {
    const std::lock_guard lock(mutex);
    return std::ranges::any_of(
        names, [&](const std::string& name) { return name.find(part) != std::string::npos; });
  }

 private:
  // A callback of ATen's captures nothing.
  static std::unique_ptr<at::ObserverContext> note(const at::RecordFunction& call) {
    const std::lock_guard lock(mutex);
    names.insert(call.name());
    return nullptr;
  }
  static inline std::mutex mutex;
  static inline std::set<std::string> names;

  at::CallbackHandle handle_;
};

Config small_resnet(decltype(Config::kernels) kernels) {
  Config row = small_row("pipeline", "resnet18");
  row.cut = {"layer3"};
  row.global_batch_size = 4;
  row.image_size = 32;
  row.kernels = kernels;
  return row;
}

TEST(Kernels, OfTheRowComputeForwardAndBackwardInEveryTask) {
  const std::map<std::string, std::function<void(const Config&)>> tasks = {
      {"measure", [](const Config& row) { measured(row); }},
      {"verify", [](const Config& row) { verify({.config = row}, {}); }},
      {"calibrate_stages", [](const Config& row) { calibrate_stages({.config = row}, {}); }}};
  for (const auto& [name, task] : tasks) {
    for (const bool own : {true, false}) {
      SCOPED_TRACE(name + (own ? " own" : " reference"));
      const Calls calls;
      using Kernels = decltype(Config::kernels);
      task(small_resnet(own ? Kernels("own") : Kernels("reference")));
      EXPECT_EQ(calls.have("stratagem::models"), own) << "nodes of the backward pass";
      if (name == "verify") continue;  // for float64 oneDNN has no kernels
      EXPECT_EQ(calls.have("mkldnn::_convolution_pointwise"), own) << "forward";
      EXPECT_EQ(calls.have("mkldnn::_convolution_transpose_pointwise"), own) << "backward";
    }
  }
}

TEST(Kernels, ThatComputedAreRecorded) {
  Config row = small_resnet("own");
  const auto expect = [&row](const std::string& kernels, bool marked) {
    const reports::Repetition launch = measured(row);
    EXPECT_EQ(launch.kernels, kernels);
    EXPECT_EQ(std::ranges::count(launch.marks, "aten_kernels"), marked ? 1 : 0) << kernels;
  };
  expect("own", false);
  row.cores_per_device = 2;
  expect("own", false);
  row.memory_format = "contiguous";
  expect("own; ATen's for batch normalisation, convolution: contiguous memory format", true);
  row.kernels = "reference";
  expect("reference", false);
}

}  // namespace
}  // namespace stratagem::bench::kernels_test
