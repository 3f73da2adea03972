#include "strategies/schedules/sharding.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <utility>

#include "strategies/schedules/lowering.h"

namespace stratagem::schedules {
namespace {

bool reads_parameters(const Action& action) {
  return action.kind == ActionKind::forward || is_backward(action.kind);
}

bool scatters(const Sharding& sharding) { return sharding.sharded != "none"; }

/// Returns whether each backward pass scatters, not only a step's last one.
bool scatters_each(const Sharding& sharding) { return sharding.sharded >= "gradients"; }

/// One use of a group's parameters, in a device's list.
struct Visit {
  int group = 0;
  int number = 0;
  bool gathers = false;   // the parameters are not whole before it
  bool releases = false;  // the parameters are freed after it
};

/// Makes one device's list with the sharding's actions.
class ShardedList {
 public:
  ShardedList(const Schedule& lowered, const std::vector<Action>& actions, const Sharding& sharding)
      : lowered_(lowered), actions_(actions), sharding_(sharding) {
    note_visits();
    note_last_gradients();
  }

  std::vector<Action> make() {
    std::size_t visit = 0;
    for (auto next = actions_.begin(); next != actions_.end(); ++next) {
      const Action action = *next;
      if (action.kind == ActionKind::optimizer) continue;  // follows its gradients
      const bool visits = reads_parameters(action) && has_parameters(action.stage);
      if (visits) gather_before(visit);
      list_.push_back(action);
      if (visits) release_after(visit++);
      if (!has_parameters(action.stage) || !makes_weight_gradients(action.kind)) continue;
      // The send goes first, because another rank waits for it.
      const auto send = std::next(next);
      if (send != actions_.end() && is_send(send->kind) && send->stage == action.stage) {
        list_.push_back(*send);
        next = send;
      }
      exchange(action);
    }
    finish_scatter();
    while (!sums_.empty()) finish_sum();
    for (const Action& action : actions_) {
      const bool updates = action.kind == ActionKind::optimizer;
      if (updates && !has_parameters(action.stage)) list_.push_back(action);
    }
    return std::move(list_);
  }

 private:
  bool has_parameters(int group) const { return !sharding_.empty.contains(group); }

  void note_visits() {
    for (const Action& action : actions_) {
      if (!reads_parameters(action) || !has_parameters(action.stage)) continue;
      const int backward = action.kind == ActionKind::forward ? 0 : 1;
      visits_.push_back({.group = action.stage, .number = 2 * action.micro_batch + backward});
    }
    std::map<int, std::size_t> next;  // by group, from the back
    const auto kept = static_cast<std::size_t>(std::max(1, sharding_.prefetch));
    for (std::size_t index = visits_.size(); index-- > 0;) {
      const auto later = next.find(visits_[index].group);
      const bool last = later == next.end();
      visits_[index].releases =
          sharding_.sharded == "parameters" &&
          (last || (sharding_.reshard_after_forward && later->second - index > kept));
      if (!last) visits_[later->second].gathers = visits_[index].releases;
      next[visits_[index].group] = index;
    }
    if (!scatters(sharding_)) return;
    for (const auto& [group, first] : next) visits_[first].gathers = true;
  }

  void note_last_gradients() {
    for (const Action& action : actions_) {
      if (makes_weight_gradients(action.kind)) last_gradients_[action.stage] = action;
    }
  }

  /// Gathers that are due during this visit start before it, its own first.
  void gather_before(std::size_t index) {
    const auto ahead = static_cast<std::size_t>(sharding_.prefetch);
    if (index == 0 || ahead == 0) gather(index);
    if (visits_[index].gathers) {
      list_.push_back({ActionKind::unshard_wait, visits_[index].group, visits_[index].number});
    }
    for (std::size_t next = index == 0 ? 1 : index + ahead; next <= index + ahead; ++next) {
      if (next > index) gather(next);
    }
  }

  void gather(std::size_t index) {
    if (index >= visits_.size() || !visits_[index].gathers) return;
    list_.push_back({ActionKind::unshard, visits_[index].group, visits_[index].number});
  }

  void release_after(std::size_t index) {
    if (!visits_[index].releases) return;
    list_.push_back({ActionKind::reshard, visits_[index].group, visits_[index].number});
  }

  /// Starts the exchange of a group's gradients. An earlier one has overlapped with this pass.
  void exchange(const Action& pass) {
    const bool last = pass == last_gradients_.at(pass.stage);
    if (!scatters(sharding_)) {
      if (last) finish(pass.stage);
      return;
    }
    if (!last && !scatters_each(sharding_)) return;
    if (in_flight_ && in_flight_->stage == pass.stage) finish_scatter();  // one scatter a group
    list_.push_back({ActionKind::reduce_scatter, pass.stage, pass.micro_batch});
    finish_scatter();
    in_flight_ = pass;
  }

  void finish_scatter() {
    if (!in_flight_) return;
    const Action pass = *std::exchange(in_flight_, std::nullopt);
    list_.push_back({ActionKind::gradient_wait, pass.stage, pass.micro_batch});
    if (pass == last_gradients_.at(pass.stage)) return finish(pass.stage);
    finish_sum();
  }

  /// Continues once this rank has the last of a group's gradients.
  void finish(int group) {
    if (!sharding_.copies) return update(group);
    list_.push_back({ActionKind::all_reduce_start, group, 0});
    if (scatters(sharding_)) finish_sum();
    sums_.push_back(group);
  }

  /// Ends a sum over copies. It has overlapped with the next group's reduce-scatter or, if nothing
  /// is sharded, with all later backward passes.
  void finish_sum() {
    if (sums_.empty()) return;
    const int group = sums_.front();
    sums_.pop_front();
    list_.push_back({ActionKind::all_reduce_wait, group, 0});
    update(group);
  }

  void update(int group) {
    if (!lowered_.not_updated.contains(group)) list_.push_back({ActionKind::optimizer, group, 0});
  }

  const Schedule& lowered_;
  const std::vector<Action>& actions_;
  const Sharding& sharding_;
  std::vector<Visit> visits_;
  std::map<int, Action> last_gradients_;  // by group
  std::vector<Action> list_;
  std::optional<Action> in_flight_;  // the pass whose gradients are in a scatter
  std::deque<int> sums_;             // groups with a sum over copies in flight
};

/// Walks a device's list and records what is whole and what is in flight.
class ShardingCheck {
 public:
  ShardingCheck(const Schedule& schedule, const Sharding& sharding)
      : schedule_(schedule), sharding_(sharding) {}

  void walk(const std::vector<Action>& actions) {
    for (const Action& action : actions) {
      if (sharding_.empty.contains(action.stage)) continue;
      take(action);
    }
    if (!exchanges()) return;
    for (const auto& [group, state] : groups_) {
      require(state.asked == 0, Action{ActionKind::unshard_wait, group, 0}, "is missing");
      require(state.unscattered == 0 && state.unfinished == 0,
              Action{ActionKind::reduce_scatter, group, 0}, "is missing, or its wait");
      require(!state.summing, Action{ActionKind::all_reduce_wait, group, 0}, "is missing");
      const bool kept = sharding_.sharded != "parameters";
      require(kept || !state.whole, Action{ActionKind::reshard, group, 0}, "is missing");
    }
  }

 private:
  struct State {
    bool whole = false;
    int asked = 0;         // gathers in flight
    int unscattered = 0;   // passes whose gradients are not in a scatter yet
    int unfinished = 0;    // scatters in flight
    bool summing = false;  // a sum over copies is in flight
    bool summed = false;   // it was summed since the last scatter
  };

  void require(bool holds, const Action& action, const char* what) const {
    if (holds) return;
    throw std::invalid_argument(fmt::format("schedule {} is sharded incorrectly: {} {}\n{}",
                                            schedule_.name, to_string(action), what,
                                            grid(schedule_)));
  }

  void take(const Action& action) {
    State& group = groups_[action.stage];
    switch (action.kind) {
      case ActionKind::unshard:
        require(group.asked == 0 && !group.whole, action, "gathers what is whole or in flight");
        group.asked = 1;
        return require(within_window(), action, "makes more groups whole than the window has");
      case ActionKind::unshard_wait:
        require(group.asked == 1, action, "waits for a gather that never started");
        group.asked = 0;
        group.whole = true;
        return;
      case ActionKind::reshard:
        require(group.whole && sharding_.sharded == "parameters", action,
                "frees what is not whole, or stays");
        group.whole = false;
        return;
      case ActionKind::reduce_scatter:
        require(group.unscattered > 0, action, "scatters no new gradients");
        require(++unfinished_ <= 2, action, "is the third in flight");
        require(group.unfinished == 0, action, "begins before its group's last has ended");
        require(!group.summing, action, "changes what is being summed");
        ++group.unfinished;
        group.unscattered = 0;
        group.summed = false;
        return;
      case ActionKind::gradient_wait:
        require(group.unfinished > 0, action, "waits for a reduce-scatter that never started");
        --unfinished_;
        --group.unfinished;
        return;
      case ActionKind::all_reduce_start:
        if (!scatters(sharding_)) group.unscattered = 0;
        require(sharding_.copies && group.unscattered == 0 && group.unfinished == 0, action,
                "sums before its gradients are there");
        require(!group.summing && !group.summed, action, "sums gradients twice");
        require(++sums_ <= 2 || !scatters(sharding_), action, "is the third in flight");
        group.summing = true;
        return;
      case ActionKind::all_reduce_wait:
        require(group.summing, action, "waits for an all-reduce that never started");
        --sums_;
        group.summing = false;
        group.summed = true;
        return;
      case ActionKind::optimizer:
        require(!exchanges() || (group.unscattered == 0 && group.unfinished == 0), action,
                "updates before its gradients are there");
        return require(!sharding_.copies || group.summed, action,
                       "updates before its gradients are summed over copies");
      default:
        return pass(action, group);
    }
  }

  void pass(const Action& action, State& group) const {
    if (reads_parameters(action) && scatters(sharding_))
      require(group.whole, action, "finds parameters that are not whole");
    if (!makes_weight_gradients(action.kind)) return;
    require(scatters(sharding_) || !(group.summing || group.summed), action,
            "adds to gradients that are summed");
    ++group.unscattered;
    require(!scatters_each(sharding_) || group.unscattered == 1, action,
            "adds to gradients that no reduce-scatter has taken");
  }

  bool exchanges() const { return scatters(sharding_) || sharding_.copies; }

  bool within_window() const {
    if (sharding_.sharded != "parameters" || !sharding_.reshard_after_forward) return true;
    const auto there = std::ranges::count_if(
        groups_, [](const auto& entry) { return entry.second.whole || entry.second.asked > 0; });
    return there <= sharding_.prefetch + 1;
  }

  const Schedule& schedule_;
  const Sharding& sharding_;
  std::map<int, State> groups_;
  int unfinished_ = 0;
  int sums_ = 0;  // sums over copies in flight
};

}  // namespace

Schedule cut_into_groups(const Schedule& lowered, const std::vector<int>& groups) {
  std::vector<int> first(groups.size(), 0);  // [stage]: its first group
  std::exclusive_scan(groups.begin(), groups.end(), first.begin(), 0);
  Schedule compute = lowered;
  compute.device_of_stage.clear();
  compute.needs.clear();
  for (int stage = 0; stage < lowered.stages(); ++stage) {
    compute.device_of_stage.insert(
        compute.device_of_stage.end(),
        static_cast<std::size_t>(groups.at(static_cast<std::size_t>(stage))),
        lowered.device_of_stage[static_cast<std::size_t>(stage)]);
  }
  for (auto& actions : compute.actions) {
    std::vector<Action> cut;
    for (const auto& [kind, stage, micro_batch] : actions) {
      if (!is_pass(kind)) continue;
      const int count = groups[static_cast<std::size_t>(stage)];
      for (int index = 0; index < count; ++index) {
        const int group = kind == ActionKind::forward ? index : count - 1 - index;
        cut.push_back({kind, first[static_cast<std::size_t>(stage)] + group, micro_batch});
      }
    }
    actions = std::move(cut);
  }
  return lower(compute);
}

Schedule add_sharding(const Schedule& lowered, const Sharding& sharding) {
  Schedule sharded = lowered;
  for (auto& actions : sharded.actions) {
    const std::vector<Action> before = std::move(actions);
    actions = ShardedList(lowered, before, sharding).make();
    if (!sharding.with_buffers || before.empty()) continue;
    const int first = std::ranges::min(before, {}, &Action::stage).stage;
    actions.insert(actions.begin(), {ActionKind::broadcast, first, 0});
  }
  validate_sharding(sharded, sharding);
  return sharded;
}

void validate_sharding(const Schedule& schedule, const Sharding& sharding) {
  for (const auto& actions : schedule.actions) ShardingCheck(schedule, sharding).walk(actions);
}

}  // namespace stratagem::schedules
