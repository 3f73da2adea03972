#include "training/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "models/registry/named_entries.h"

namespace stratagem::training {
namespace {

constexpr std::array tails = {std::pair{"pad", Tail::pad}, std::pair{"drop", Tail::drop},
                              std::pair{"exact", Tail::exact}};
constexpr std::array decays = {
    std::pair{"constant", DecayKind::constant}, std::pair{"step", DecayKind::step},
    std::pair{"linear", DecayKind::linear}, std::pair{"cosine", DecayKind::cosine},
    std::pair{"wsd", DecayKind::wsd}};

std::vector<std::string> names_of(const auto& choices) {
  std::vector<std::string> names;
  for (const auto& [choice, value] : choices) names.emplace_back(choice);
  return names;
}

auto look_up(const auto& choices, const char* option, const std::string& name) {
  for (const auto& [choice, value] : choices) {
    if (choice == name) return value;
  }
  throw std::invalid_argument(std::string(option) + ": " +
                              models::unknown_name("value", name, names_of(choices)));
}

}  // namespace

Tail tail_of(const std::string& name) { return look_up(tails, "--tail", name); }

DecayKind decay_of(const std::string& name) {
  return look_up(decays, "--learning-rate-schedule", name);
}

std::vector<std::string> tail_names() { return names_of(tails); }
std::vector<std::string> decay_names() { return names_of(decays); }

std::int64_t steps_of(const TrainingOptions& options, const EpochShape& shape) {
  std::int64_t all = 0;
  if (__builtin_mul_overflow(options.epochs, steps_of_an_epoch(shape), &all) || all > most_steps) {
    if (options.max_steps > 0) return options.max_steps;
    throw std::invalid_argument(fmt::format(
        "--epochs {}: with {} steps each, exceeds the limit of {} steps; set --max-steps",
        options.epochs, steps_of_an_epoch(shape), most_steps));
  }
  return options.max_steps == 0 ? all : std::min(all, options.max_steps);
}

LearningRateSchedule schedule_of(const TrainingOptions& options, double base, std::int64_t steps) {
  const DecayKind kind = decay_of(options.learning_rate_schedule);
  const std::int64_t of_schedule = options.schedule_steps == 0 ? steps : options.schedule_steps;
  if (kind == DecayKind::step && options.schedule_steps == 0) {
    throw std::invalid_argument(
        "--learning-rate-schedule step: needs --schedule-steps, after which the rate falls");
  }
  if (kind != DecayKind::constant && options.warmup_steps >= of_schedule) {
    throw std::invalid_argument(fmt::format(
        "--warmup-steps {}: the schedule \"{}\" has {} steps in all, so the rate would never fall; "
        "give fewer warm-up steps, or more --schedule-steps",
        options.warmup_steps, options.learning_rate_schedule, of_schedule));
  }
  return {.kind = kind,
          .base = base,
          .last = options.final_learning_rate,
          .warm_up = options.warmup_steps,
          .steps = of_schedule};
}

}  // namespace stratagem::training
