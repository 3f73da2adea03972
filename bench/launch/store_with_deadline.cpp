#include "bench/launch/store_with_deadline.h"

#include <algorithm>
#include <utility>

namespace stratagem::bench {
namespace {

constexpr auto store_poll_interval = std::chrono::milliseconds(200);
// The opener also gives up after the limit, with a reason; but c10d's, if refused, then tries once
// more for as long.
constexpr auto opening_allowance = std::chrono::seconds(2);

}  // namespace

/// A call in flight, while it lives; `allowance` is added to its limit.
class StoreWithDeadline::Call {
 public:
  explicit Call(StoreWithDeadline& owner, Clock::duration allowance = {}) : owner_(owner) {
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
  StoreWithDeadline& owner_;
  std::list<Clock::time_point>::iterator position_;
};

StoreWithDeadline::StoreWithDeadline(const Opener& open, std::chrono::duration<double> limit,
                                     std::function<void()> give_up)
    : limit_(limit),
      give_up_(std::move(give_up)),
      watcher_([this](const std::stop_token& stop) { watch(stop); }) {
  const Call call(*this, opening_allowance);
  store_ = open();
}

void StoreWithDeadline::set(const std::string& key, const std::string& text) {
  const Call call(*this);
  store_->set(key, text);
}

std::optional<std::string> StoreWithDeadline::find(const std::string& key) {
  const Call call(*this);
  return store_->find(key);
}

std::int64_t StoreWithDeadline::add(const std::string& key, std::int64_t amount) {
  const Call call(*this);
  return store_->add(key, amount);
}

void StoreWithDeadline::watch(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::this_thread::sleep_for(store_poll_interval);
    const std::lock_guard lock(mutex_);
    const bool overdue = std::ranges::any_of(
        calls_, [&](Clock::time_point begun) { return Clock::now() - begun > limit_; });
    if (overdue) return give_up_();
  }
}

}  // namespace stratagem::bench
