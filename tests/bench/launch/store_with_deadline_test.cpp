#include "bench/launch/store_with_deadline.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "strategies/runtime/communication_error.h"

namespace stratagem::bench {
namespace {

using namespace std::chrono_literals;

/// Answers after a while.
class SlowStore final : public ranks::KeyValueStore {
 public:
  explicit SlowStore(std::chrono::milliseconds delay) : delay_(delay) {}
  void set(const std::string&, const std::string&) override { std::this_thread::sleep_for(delay_); }
  std::optional<std::string> find(const std::string& key) override {
    std::this_thread::sleep_for(delay_);
    return key + "!";
  }
  std::int64_t add(const std::string&, std::int64_t amount) override { return amount + 1; }

 private:
  std::chrono::milliseconds delay_;
};

StoreWithDeadline::Opener slow(std::chrono::milliseconds delay) {
  return [delay] { return std::make_unique<SlowStore>(delay); };
}

TEST(StoreWithDeadline, PassesCallsOn) {
  std::atomic<int> given_up = 0;
  StoreWithDeadline store(slow(0ms), 5s, [&] { ++given_up; });
  store.set("a", "b");
  EXPECT_EQ(store.find("a"), "a!");
  EXPECT_EQ(store.add("n", 4), 5);
  EXPECT_EQ(given_up, 0);
}

TEST(StoreWithDeadline, GivesUpWhenACallIsOverdue) {
  std::atomic<int> given_up = 0;
  StoreWithDeadline store(slow(1s), 100ms, [&] { ++given_up; });
  store.find("a");
  EXPECT_EQ(given_up, 1);
}

TEST(StoreWithDeadline, GivesUpWhenItDoesNotOpen) {
  std::atomic<int> given_up = 0;
  const auto open = [] {
    std::this_thread::sleep_for(3s);
    return std::make_unique<SlowStore>(0ms);
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
}  // namespace stratagem::bench
