#include "training/loop/steps_in_flight.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace stratagem::training {

void StepsInFlight::add(std::unique_ptr<strategies::PendingStep> step, std::int64_t samples) {
  last_ends_.clear();
  for (const auto& device : devices_) {
    last_ends_.push_back(device->record(runtime::Stream::compute));
  }
  steps_.push_back({std::move(step), samples, last_ends_});
}

void StepsInFlight::wait_until_left(std::size_t left) {
  if (steps_.size() <= left) return;
  const Step& last = steps_[steps_.size() - left - 1];  // the steps before it ended earlier
  for (std::size_t device = 0; device < last.ends.size(); ++device) {
    devices_[device]->wait_on_host(*last.ends[device], limit_);
  }
  for (; steps_.size() > left; steps_.pop_front()) {
    const Step& first = steps_.front();
    ended_.own_sum += first.pending->own_loss() * static_cast<double>(first.samples);
    ended_.samples += first.samples;
    ended_.last_batch = first.samples;
    ended_.gradient_norm = first.pending->gradient_norm();
    if (first.pending->skipped()) {
      ++ended_.skipped;
    } else if (!ended_.not_finite && !std::isfinite(ended_.gradient_norm)) {
      ended_.not_finite = ended_.steps;
    }
    ++ended_.steps;
  }
}

std::optional<StepsInFlight::Clock::time_point> StepsInFlight::idle_since() const {
  auto last = Clock::time_point::min();
  for (const auto& end : last_ends_) {
    if (!end->complete()) return std::nullopt;
    last = std::max(last, end->time());
  }
  return last;
}

EndedSteps StepsInFlight::take_ended() { return std::exchange(ended_, {}); }

}  // namespace stratagem::training
