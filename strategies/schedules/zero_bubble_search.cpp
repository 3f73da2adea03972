#include "strategies/schedules/zero_bubble_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <queue>
#include <stdexcept>
#include <utility>

namespace stratagem::schedules {
namespace {

/// The passes of all attempts together, within two seconds. Immense schedules try fewer choices.
constexpr std::int64_t most_passes = 10'000'000;

constexpr double unknown = std::numeric_limits<double>::infinity();

struct Problem {
  ScheduleSize size;
  PassTimes times;
  double live_limit = 0;
  double weight_share = 1;
  double rounding = 0;  // times this close are equal
};

/// The pass that goes first if an F and an I are both there after the warm-up.
enum class First { gradient, forward, other_than_last };

/// The choices that the rules leave open.
struct Choices {
  /// The forwards before a device's first I: one, and `lead` more than the next device; 0: all that
  /// the limit allows.
  double lead = 0;
  First first = First::gradient;
  /// W fills a gap of at least this part of its duration.
  double gap_share = 1;
  /// W fills a shorter gap, too, on a device that would otherwise be idle for longest.
  bool spares_busiest = false;
  /// No F delays a device's first I.
  bool awaits_first_gradient = false;
};

std::vector<Choices> all_choices() {
  std::vector<Choices> all;
  for (const First first : {First::gradient, First::forward, First::other_than_last}) {
    for (const bool spares_busiest : {true, false}) {
      for (const double gap_share : {1.0, 0.5}) {
        for (const bool awaits : {true, false}) {
          for (const double lead : {0.0, 1.0, 1.5, 2.0}) {
            all.push_back({lead, first, gap_share, spares_busiest, awaits});
          }
        }
      }
    }
  }
  return all;
}

/// A device in simulated time. Passes of a kind run in the order of the micro-batches.
struct Worker {
  int forwards = 0;  // the numbers of passes that have started
  int gradients = 0;
  int weights = 0;
  bool forward_was_last = false;                // of the last F or I
  double free = 0;                              // the end of the last pass
  double idle = 0;                              // since the first pass
  int forward_cap = 0;                          // forwards before the first I
  std::vector<double> activations_arrive = {};  // [micro-batch]
  std::vector<double> gradients_arrive = {};    // [micro-batch]
  std::vector<Action> actions = {};
};

/// Runs all passes by one combination of choices.
class Attempt {
 public:
  Attempt(const Problem& problem, const Choices& choices)
      : problem_(problem),
        choices_(choices),
        workers_(static_cast<std::size_t>(problem.size.devices)) {
    const auto count = static_cast<std::size_t>(problem.size.micro_batches);
    for (int device = 0; device < problem.size.devices; ++device) {
      Worker& worker = workers_[static_cast<std::size_t>(device)];
      const int after = problem.size.devices - 1 - device;
      const int led = static_cast<int>(std::floor(choices.lead * after)) + 1;
      worker.forward_cap = choices.lead > 0 ? led : problem.size.micro_batches;
      worker.activations_arrive.reserve(count);
      worker.gradients_arrive.reserve(count);
      worker.actions.reserve(3 * count);
    }
    workers_.front().activations_arrive.assign(count, 0.0);
  }

  /// Returns the idle time of the device that is idle for longest; nothing as soon as that reaches
  /// `bound`.
  std::optional<double> run(double bound) {
    turns_.push({0.0, 0});
    while (!turns_.empty()) {
      const auto [now, device] = turns_.top();
      turns_.pop();
      Worker& worker = workers_[static_cast<std::size_t>(device)];
      if (now < worker.free) continue;  // its turn comes when it is free
      const auto kind = next_pass(worker, now);
      if (!kind) continue;  // its turn comes when something arrives
      if (!worker.actions.empty()) worker.idle += now - worker.free;
      longest_idle_ = std::max(longest_idle_, worker.idle);
      if (longest_idle_ >= bound) return std::nullopt;
      start(device, *kind, now);
    }
    return longest_idle_;
  }

  /// Returns the number of passes that have started.
  std::int64_t passes() const { return passes_; }

  std::vector<std::vector<Action>> take_actions() {
    std::vector<std::vector<Action>> lists;
    for (Worker& worker : workers_) lists.push_back(std::move(worker.actions));
    return lists;
  }

 private:
  using Turn = std::pair<double, int>;  // a time and a device

  static double arrival(const std::vector<double>& times, int micro_batch) {
    const auto index = static_cast<std::size_t>(micro_batch);
    if (index >= times.size()) return unknown;
    return times[index];
  }

  bool has_room(const Worker& worker) const {
    const int whole = worker.forwards - worker.gradients;
    const double owed = problem_.weight_share * (worker.gradients - worker.weights);
    constexpr double rounding = 1e-9;
    return whole + owed + 1 <= problem_.live_limit + rounding;
  }

  /// Returns the kind of the device's next pass, or nothing if it waits. The time to an arrival is
  /// `unknown` until the neighbour starts the pass that it needs.
  std::optional<ActionKind> next_pass(const Worker& worker, double now) const {
    const bool warming_up = worker.gradients == 0;
    const bool has_forwards = worker.forwards < problem_.size.micro_batches;
    const double to_activation =
        has_forwards ? arrival(worker.activations_arrive, worker.forwards) - now : unknown;
    const double to_gradient = arrival(worker.gradients_arrive, worker.gradients) - now;
    const bool has_gradient = to_gradient <= problem_.rounding;
    const bool has_activation = to_activation <= problem_.rounding;
    const bool is_full = !has_room(worker);
    const bool may_forward = !is_full && !(warming_up && worker.forwards >= worker.forward_cap);
    const bool delays_first =
        warming_up && choices_.awaits_first_gradient && to_gradient < problem_.times.forward;

    if (has_gradient) {
      const bool either = has_activation && may_forward && !warming_up;
      return either && forward_goes_first(worker) ? ActionKind::forward
                                                  : ActionKind::backward_input;
    }
    if (has_activation && may_forward && !delays_first) return ActionKind::forward;
    if (worker.weights == worker.gradients) return std::nullopt;
    if (is_full && has_activation) return ActionKind::backward_weight;
    const double gap = std::min(may_forward ? to_activation : unknown, to_gradient);
    return is_worth_filling(worker, gap) ? std::optional(ActionKind::backward_weight)
                                         : std::nullopt;
  }

  bool forward_goes_first(const Worker& worker) const {
    if (choices_.first == First::other_than_last) return !worker.forward_was_last;
    return choices_.first == First::forward;
  }

  bool is_worth_filling(const Worker& worker, double gap) const {
    if (gap + problem_.rounding >= choices_.gap_share * problem_.times.weight) return true;
    return choices_.spares_busiest && worker.idle + gap + problem_.rounding >= longest_idle_;
  }

  void start(int device, ActionKind kind, double now) {
    Worker& worker = workers_[static_cast<std::size_t>(device)];
    const PassTimes& times = problem_.times;
    ++passes_;
    if (kind == ActionKind::forward) {
      worker.actions.push_back({kind, device, worker.forwards++});
      worker.free = now + times.forward;
      deliver_activation(device);
    } else if (kind == ActionKind::backward_input) {
      worker.actions.push_back({kind, device, worker.gradients++});
      worker.free = now + times.input;
      if (device > 0) {
        deliver(device - 1, worker.free + times.transfer,
                workers_[static_cast<std::size_t>(device) - 1].gradients_arrive);
      }
    } else {
      worker.actions.push_back({kind, device, worker.weights++});
      worker.free = now + times.weight;
    }
    if (kind != ActionKind::backward_weight) {
      worker.forward_was_last = kind == ActionKind::forward;
    }
    turns_.push({worker.free, device});
  }

  /// The last device has the gradient as soon as its forward pass ends.
  void deliver_activation(int device) {
    Worker& worker = workers_[static_cast<std::size_t>(device)];
    if (device + 1 == problem_.size.devices) {
      worker.gradients_arrive.push_back(worker.free);
    } else {
      deliver(device + 1, worker.free + problem_.times.transfer,
              workers_[static_cast<std::size_t>(device) + 1].activations_arrive);
    }
  }

  void deliver(int device, double time, std::vector<double>& arrivals) {
    arrivals.push_back(time);
    turns_.push({time, device});
  }

  const Problem& problem_;
  Choices choices_;
  std::vector<Worker> workers_;
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> turns_;
  double longest_idle_ = 0;
  std::int64_t passes_ = 0;
};

}  // namespace

Schedule zero_bubble_search(const ScheduleSize& size, const PassTimes& times, int live_limit,
                            double weight_share) {
  if (live_limit < 1) {
    throw std::invalid_argument(
        fmt::format("a device needs room for one micro-batch at least, not {}", live_limit));
  }
  constexpr double relative_rounding = 1e-9;
  const Problem problem{size, times, static_cast<double>(live_limit), weight_share,
                        relative_rounding * times.of_micro_batch()};
  Schedule best = empty_schedule("zero_bubble_search", size);
  best.split_backward = true;
  double least_idle = unknown;
  std::int64_t passes = 0;
  for (const Choices& choices : all_choices()) {
    Attempt attempt(problem, choices);
    const auto idle = attempt.run(least_idle - problem.rounding);
    passes += attempt.passes();
    if (idle) {
      least_idle = *idle;
      best.actions = attempt.take_actions();
    }
    if (least_idle <= problem.rounding || passes >= most_passes) break;
  }
  return best;
}

}  // namespace stratagem::schedules
