#include "bench/launch/store_with_deadline.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>
#include <utility>

#include "strategies/runtime/communication_error.h"

namespace stratagem::bench::store_with_deadline_test {
namespace {

using namespace std::chrono_literals;

/// Returns once the caller has given up, or after ten seconds.
void wait_for(const std::atomic<int>& given_up) {
  for (int wait = 0; wait < 1000 && given_up == 0; ++wait) std::this_thread::sleep_for(10ms);
}

/// Does what it is told to before it answers.
class SlowStore final : public ranks::KeyValueStore {
 public:
  explicit SlowStore(std::function<void()> before = [] {}) : before_(std::move(before)) {}
  void set(const std::string&, const std::string&) override { before_(); }
  std::optional<std::string> find(const std::string& key) override {
    before_();
    return key + "!";
  }
  std::int64_t add(const std::string&, std::int64_t amount) override { return amount + 1; }

 private:
  std::function<void()> before_;
};

TEST(StoreWithDeadline, PassesCallsOn) {
  std::atomic<int> given_up = 0;
  StoreWithDeadline store([] { return std::make_unique<SlowStore>(); }, 5s, [&] { ++given_up; });
  store.set("a", "b");
  EXPECT_EQ(store.find("a"), "a!");
  EXPECT_EQ(store.add("n", 4), 5);
  EXPECT_EQ(given_up, 0);
}

TEST(StoreWithDeadline, GivesUpWhenACallIsOverdue) {
  std::atomic<int> given_up = 0;
  const auto open = [&] { return std::make_unique<SlowStore>([&] { wait_for(given_up); }); };
  StoreWithDeadline store(open, 100ms, [&] { ++given_up; });
  store.find("a");
  EXPECT_EQ(given_up, 1);
}

TEST(StoreWithDeadline, GivesUpWhenItDoesNotOpen) {
  std::atomic<int> given_up = 0;
  const auto open = [&] {
    wait_for(given_up);
    return std::make_unique<SlowStore>();
  };
  const StoreWithDeadline store(open, 100ms, [&] { ++given_up; });
  EXPECT_EQ(given_up, 1);
}

TEST(StoreWithDeadline, PassesOnWhyItDoesNotOpen) {
  const auto open = []() -> std::unique_ptr<ranks::KeyValueStore> {
    throw runtime::CommunicationError("nobody there");
  };
  EXPECT_THROW(StoreWithDeadline(open, 5s, [] {}), runtime::CommunicationError);
}

}  // namespace
}  // namespace stratagem::bench::store_with_deadline_test
