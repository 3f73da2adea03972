#include "bench/watched_meeting.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "strategies/runtime/communication_error.h"

namespace stratagem::bench {
namespace {

using namespace std::chrono_literals;

/// Answers after a while.
class SlowMeeting final : public runtime::Meeting {
 public:
  explicit SlowMeeting(std::chrono::milliseconds delay) : delay_(delay) {}
  void set(const std::string&, const std::string&) override { std::this_thread::sleep_for(delay_); }
  std::optional<std::string> find(const std::string& key) override {
    std::this_thread::sleep_for(delay_);
    return key + "!";
  }
  std::int64_t add(const std::string&, std::int64_t amount) override { return amount + 1; }

 private:
  std::chrono::milliseconds delay_;
};

WatchedMeeting::Opener slow(std::chrono::milliseconds delay) {
  return [delay] { return std::make_unique<SlowMeeting>(delay); };
}

TEST(WatchedMeeting, PassesCallsOn) {
  std::atomic<int> given_up = 0;
  WatchedMeeting meeting(slow(0ms), 5s, [&] { ++given_up; });
  meeting.set("a", "b");
  EXPECT_EQ(meeting.find("a"), "a!");
  EXPECT_EQ(meeting.add("n", 4), 5);
  EXPECT_EQ(given_up, 0);
}

TEST(WatchedMeeting, GivesUpWhenACallIsOverdue) {
  std::atomic<int> given_up = 0;
  WatchedMeeting meeting(slow(1s), 100ms, [&] { ++given_up; });
  meeting.find("a");
  EXPECT_EQ(given_up, 1);
}

TEST(WatchedMeeting, GivesUpWhenItDoesNotOpen) {
  std::atomic<int> given_up = 0;
  const auto open = [] {
    std::this_thread::sleep_for(3s);
    return std::make_unique<SlowMeeting>(0ms);
  };
  const WatchedMeeting meeting(open, 100ms, [&] { ++given_up; });
  EXPECT_EQ(given_up, 1);
}

TEST(WatchedMeeting, PassesOnWhyItDoesNotOpen) {
  const auto open = []() -> std::unique_ptr<runtime::Meeting> {
    throw runtime::CommunicationError("nobody there");
  };
  EXPECT_THROW(WatchedMeeting(open, 5s, [] {}), runtime::CommunicationError);
}

}  // namespace
}  // namespace stratagem::bench
