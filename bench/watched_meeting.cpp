#include "bench/watched_meeting.h"

#include <algorithm>
#include <utility>

namespace stratagem::bench {

namespace {

constexpr auto look_interval = std::chrono::milliseconds(200);
// The opener, too, gives up after the limit, and knows the reason; but c10d's then tries once more
// where it was refused, for as long again.
constexpr auto opening_allowance = std::chrono::seconds(2);

}  // namespace

/// A call under way, while it lives; it may take so much longer than the limit.
class WatchedMeeting::Call {
 public:
  explicit Call(WatchedMeeting& owner, Clock::duration allowance = {}) : owner_(owner) {
    const std::lock_guard lock(owner.mutex_);
    position_ = owner.calls_.insert(owner.calls_.end(), Clock::now() + allowance);
  }
  ~Call() {
    const std::lock_guard lock(owner_.mutex_);
    owner_.calls_.erase(position_);
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 private:
  WatchedMeeting& owner_;
  std::list<Clock::time_point>::iterator position_;
};

WatchedMeeting::WatchedMeeting(const Opener& open, std::chrono::duration<double> limit,
                               std::function<void()> give_up)
    : limit_(limit),
      give_up_(std::move(give_up)),
      watcher_([this](const std::stop_token& stop) { watch(stop); }) {
  const Call call(*this, opening_allowance);
  meeting_ = open();
}

void WatchedMeeting::set(const std::string& key, const std::string& text) {
  const Call call(*this);
  meeting_->set(key, text);
}

std::optional<std::string> WatchedMeeting::find(const std::string& key) {
  const Call call(*this);
  return meeting_->find(key);
}

std::int64_t WatchedMeeting::add(const std::string& key, std::int64_t amount) {
  const Call call(*this);
  return meeting_->add(key, amount);
}

void WatchedMeeting::watch(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::this_thread::sleep_for(look_interval);
    const std::lock_guard lock(mutex_);
    const bool overdue = std::ranges::any_of(
        calls_, [&](Clock::time_point begun) { return Clock::now() - begun > limit_; });
    if (overdue) return give_up_();
  }
}

}  // namespace stratagem::bench
