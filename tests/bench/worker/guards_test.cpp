// What keeps a launch from being timed wrongly: its warm-up, and the check of its memory.
#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string_view>

#include "bench/worker/tasks.h"
#include "strategies/backends/memory_accounting.h"
#include "tests/bench/worker/small_rows.h"

namespace stratagem::bench::guards_test {
namespace {

using testing::HasSubstr;

/// Counts the losses that are computed while it lives: one for each step of a single device. With
/// `leaks` the first one leaves memory behind that counts as parameters. One at a time.
class Losses {
 public:
  explicit Losses(bool leaks = false)
      : handle_(at::addGlobalCallback(
            at::RecordFunctionCallback(note).scopes({at::RecordScope::FUNCTION}))) {
    count = 0;
    leak_in_call = leaks ? 1 : 0;
  }
  Losses(const Losses&) = delete;
  Losses& operator=(const Losses&) = delete;
  ~Losses() {
    at::removeCallback(handle_);
    leaked.reset();
  }

  static int seen() { return count; }

 private:
  // A callback of ATen's captures nothing.
  static std::unique_ptr<at::ObserverContext> note(const at::RecordFunction& call) {
    if (std::string_view(call.name()) != "aten::mse_loss") return nullptr;
    if (++count == leak_in_call) {
      const backends::MemoryCategoryGuard made(backends::MemoryCategory::parameters);
      leaked = at::empty({1000}, at::kFloat);
    }
    return nullptr;
  }
  static inline std::atomic<int> count = 0;
  static inline std::atomic<int> leak_in_call = 0;
  static inline at::Tensor leaked;

  at::CallbackHandle handle_;
};

TEST(TimedRow, IsWarmedUpByTwoStepsAtLeast) {
  const Config row = small_row("single");
  const Losses losses;
  const reports::Repetition launch = measured(row);
  const double warm_up_steps = launch.counters.at("warm_up_steps");
  EXPECT_GE(warm_up_steps, 2);
  EXPECT_EQ(losses.seen(), warm_up_steps + static_cast<double>(row.steps));
  EXPECT_GT(launch.counters.at("aten_operators"), 0) << "counted in the second step";
}

TEST(TimedRow, ThatHeldOtherMemoryThanItsFormulaSaysIsRefused) {
  using Protocol = decltype(Config::protocol);
  for (const Protocol protocol : {Protocol("steady"), Protocol("tutorial")}) {
    SCOPED_TRACE(protocol.name());
    Config row = small_row("single");
    row.protocol = protocol;
    EXPECT_NO_THROW(measured(row));
    const Losses losses(/*leaks=*/true);
    try {
      measured(row);
      ADD_FAILURE() << "accepted";
    } catch (const std::runtime_error& error) {
      EXPECT_THAT(error.what(), HasSubstr("parameters took "));
    }
  }
}

}  // namespace
}  // namespace stratagem::bench::guards_test
