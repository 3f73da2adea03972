// Random orders: the checks accept exactly those that an execution can finish.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "strategies/schedules/executor.h"
#include "strategies/schedules/lowering.h"
#include "strategies/schedules/schedule_file.h"
#include "strategies/schedules/simulate.h"
#include "tests/strategies/action_log.h"
#include "tests/strategies/cpu_devices.h"

namespace stratagem::schedules::random_schedules_test {
namespace {

constexpr int most_devices = 4;

/// The same numbers with every standard library.
class Dice {
 public:
  explicit Dice(unsigned seed) : engine_(seed) {}

  /// Returns a number from 0 to `count` - 1.
  std::size_t below(std::size_t count) { return engine_() % count; }
  int between(int low, int high) {
    return low + static_cast<int>(below(static_cast<std::size_t>(high - low + 1)));
  }

  template <class Values>
  void shuffle(Values& values) {
    for (std::size_t left = values.size(); left > 1; --left) {
      std::swap(values[left - 1], values[below(left)]);
    }
  }

 private:
  std::mt19937 engine_;
};

/// Stages on devices in any order, equally many on each; without actions.
Schedule random_size(Dice& dice) {
  Schedule schedule;
  schedule.name = "random.csv";
  const int devices = dice.between(1, most_devices);
  const int each = dice.between(1, 2);
  schedule.micro_batches = dice.between(1, 6);
  schedule.split_backward = dice.below(2) == 0;
  for (int stage = 0; stage < devices * each; ++stage) {
    schedule.device_of_stage.push_back(stage % devices);
  }
  dice.shuffle(schedule.device_of_stage);
  schedule.actions.resize(static_cast<std::size_t>(devices));
  return schedule;
}

std::vector<Action> passes_of(const Schedule& schedule) {
  std::vector<Action> passes;
  for (int stage = 0; stage < schedule.stages(); ++stage) {
    for (int micro_batch = 0; micro_batch < schedule.micro_batches; ++micro_batch) {
      passes.push_back({ActionKind::forward, stage, micro_batch});
      passes.push_back({schedule.input_gradient_kind(), stage, micro_batch});
      if (schedule.split_backward) {
        passes.push_back({ActionKind::backward_weight, stage, micro_batch});
      }
    }
  }
  return passes;
}

/// Returns the passes whose results a pass reads: derived from the model, not from the schedule's
/// own rules.
std::vector<Action> read_by(const Schedule& schedule, const Action& pass) {
  const auto [kind, stage, micro_batch] = pass;
  if (kind == ActionKind::backward_weight) {
    return {{ActionKind::backward_input, stage, micro_batch}};
  }
  std::vector<Action> needed;
  if (kind == ActionKind::forward) {
    if (stage > 0) needed.push_back({kind, stage - 1, micro_batch});
    return needed;
  }
  needed.push_back({ActionKind::forward, stage, micro_batch});
  if (stage + 1 < schedule.stages()) needed.push_back({kind, stage + 1, micro_batch});
  return needed;
}

/// Returns the passes that follow each one: those that read its result and the next of its device.
using Followers = std::map<Action, std::vector<Action>>;

Followers followers_of(const Schedule& schedule) {
  Followers followers;
  for (const Action& pass : passes_of(schedule)) {
    for (const Action& needed : read_by(schedule, pass)) followers[needed].push_back(pass);
  }
  for (const auto& actions : schedule.actions) {
    for (std::size_t next = 1; next < actions.size(); ++next) {
      followers[actions[next - 1]].push_back(actions[next]);
    }
  }
  return followers;
}

/// Returns a random order in which each pass comes after those that it follows. It leaves out
/// passes on a cycle and those after them.
std::vector<Action> random_order(const Schedule& schedule, Dice& dice) {
  const Followers followers = followers_of(schedule);
  std::map<Action, int> awaited;
  for (const auto& [pass, all] : followers) {
    for (const Action& follower : all) ++awaited[follower];
  }
  std::vector<Action> ready;
  for (const Action& pass : passes_of(schedule)) {
    if (!awaited.contains(pass)) ready.push_back(pass);
  }
  std::vector<Action> order;
  while (!ready.empty()) {
    std::swap(ready[dice.below(ready.size())], ready.back());
    order.push_back(ready.back());
    ready.pop_back();
    const auto found = followers.find(order.back());
    if (found == followers.end()) continue;
    for (const Action& follower : found->second) {
      if (--awaited[follower] == 0) ready.push_back(follower);
    }
  }
  return order;
}

/// Returns whether devices that wait for what they need come to the end of their lists.
bool can_finish(const Schedule& schedule, Dice& dice) {
  return random_order(schedule, dice).size() == passes_of(schedule).size();
}

/// How the order of the passes is made.
enum class Order { valid, exchanged, any };

/// Gives each pass to its stage's device, in a valid order, one with two passes of a device
/// exchanged, or any order.
Schedule random_schedule(Dice& dice, Order kind) {
  Schedule schedule = random_size(dice);
  std::vector<Action> passes = random_order(schedule, dice);
  if (kind == Order::any) dice.shuffle(passes);
  for (const Action& pass : passes) {
    const int device = schedule.device_of_stage[static_cast<std::size_t>(pass.stage)];
    schedule.actions[static_cast<std::size_t>(device)].push_back(pass);
  }
  if (kind == Order::exchanged) {
    auto& actions = schedule.actions[dice.below(schedule.actions.size())];
    std::swap(actions[dice.below(actions.size())], actions[dice.below(actions.size())]);
  }
  return schedule;
}

/// Returns the text of a file with this order.
std::string text_of(const Schedule& schedule) {
  std::string text;
  for (const auto& actions : schedule.actions) {
    for (const Action& action : actions) text += to_string(action) + ",";
    text.back() = '\n';
  }
  return text;
}

/// Returns the text of the std::invalid_argument; empty if there is none.
std::string refusal(auto call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return {};
}

class RandomSchedules : public ::testing::Test {
 protected:
  void expect_execution(const Schedule& lowered) {
    Log log;
    const auto used = std::span(devices_.all).first(lowered.actions.size());
    execute(lowered, used, [&](const Action& action) { log.perform(action); });
    runtime::synchronize_all(used, runtime::ample);
    expect_in_order(lowered, log);
  }

  static void expect_refusal(const Schedule& order) {
    const Schedule lowered = lower(order);
    EXPECT_NE(refusal([&] { validate(lowered); }), "");
    EXPECT_NE(refusal([&] { simulate(lowered, [](const Action&) { return Cost(1); }); }), "");
    EXPECT_FALSE(faults_of(order).is_valid());
    const std::string line = refusal([&] { read_schedule(order.name, text_of(order)); });
    EXPECT_TRUE(line.starts_with("--schedule random.csv: ")) << line;
    EXPECT_NE(line.find(" deadlocks: device "), std::string::npos) << line;
    EXPECT_EQ(line.find('\n'), std::string::npos) << line;
  }

  void expect_acceptance(const Schedule& order) {
    const Schedule lowered = lower(order);
    EXPECT_EQ(refusal([&] { validate(lowered); }), "");
    EXPECT_TRUE(faults_of(order).is_valid());
    std::size_t count = 0;
    for (const auto& actions : lowered.actions) count += actions.size();
    EXPECT_EQ(simulate(lowered, [](const Action&) { return Cost(1); }).entries.size(), count);
    const ScheduleEntry entry = read_schedule(order.name, text_of(order));
    const ScheduleSize size{order.devices(), order.micro_batches, entry.stages_for(1)};
    EXPECT_EQ(grid(entry.generate(size)), grid(order));
    expect_execution(lowered);
  }

  runtime::CpuDevices devices_{most_devices};
};

TEST_F(RandomSchedules, AreAcceptedIfTheyCanFinish) {
  constexpr unsigned count = 1000;
  constexpr std::array orders = {Order::valid, Order::exchanged, Order::valid, Order::any};
  std::map<Order, int> accepted;
  for (unsigned seed = 0; seed < count; ++seed) {
    Dice dice(seed);
    const Order kind = orders[seed % orders.size()];
    const Schedule order = random_schedule(dice, kind);
    SCOPED_TRACE(testing::Message() << "seed " << seed << "\n" << grid(order));
    const bool finishes = can_finish(order, dice);
    finishes ? expect_acceptance(order) : expect_refusal(order);
    accepted[kind] += finishes ? 1 : 0;
    if (HasFailure()) return;
  }
  EXPECT_EQ(accepted[Order::valid], 500);
  EXPECT_GE(accepted[Order::exchanged], 50);  // of 250
  EXPECT_LE(accepted[Order::exchanged], 200);
  EXPECT_LE(accepted[Order::any], 50);  // of 250
  RecordProperty("exchanged", accepted[Order::exchanged]);
  RecordProperty("any", accepted[Order::any]);
}

}  // namespace
}  // namespace stratagem::schedules::random_schedules_test
