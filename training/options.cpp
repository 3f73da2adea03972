#include "training/options.h"

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
                              models::unknown_name("choice", name, names_of(choices)));
}

}  // namespace

Tail tail_of(const std::string& name) { return look_up(tails, "--tail", name); }

DecayKind decay_of(const std::string& name) {
  return look_up(decays, "--learning-rate-schedule", name);
}

std::vector<std::string> tail_names() { return names_of(tails); }
std::vector<std::string> decay_names() { return names_of(decays); }

std::int64_t steps_of(const TrainingOptions& options, const EpochShape& shape) {
  const std::int64_t all = options.epochs * steps_of_an_epoch(shape);
  return options.max_steps == 0 ? all : std::min(all, options.max_steps);
}

LearningRateSchedule schedule_of(const TrainingOptions& options, double base, std::int64_t steps) {
  return {.kind = decay_of(options.learning_rate_schedule),
          .base = base,
          .last = options.final_learning_rate,
          .warm_up = options.warmup_steps,
          .steps = options.schedule_steps == 0 ? steps : options.schedule_steps};
}

}  // namespace stratagem::training
