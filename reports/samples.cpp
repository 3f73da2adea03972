#include "reports/samples.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <variant>

#include "reports/statistics.h"

namespace stratagem::reports {

bool samples_are_calls(const Row& row) {
  return std::ranges::any_of(row.config, [](const auto& option) {
    const auto* text = std::get_if<std::string>(&option.second);
    return option.first == "protocol" && text != nullptr && *text == "tutorial";
  });
}

std::vector<double> samples_of(const Repetition& repetition, bool calls) {
  const std::vector<double>& steps = repetition.step_ms;
  if (!calls || steps.empty()) return steps;
  return {std::accumulate(steps.begin(), steps.end(), 0.0)};
}

std::vector<std::vector<std::size_t>> outlying_steps(const Row& row) {
  const bool calls = samples_are_calls(row);
  std::vector<double> all;
  for (const Repetition& repetition : row.repetitions) {
    const std::vector<double> samples = samples_of(repetition, calls);
    all.insert(all.end(), samples.begin(), samples.end());
  }
  std::vector<std::vector<std::size_t>> outlying(row.repetitions.size());
  if (all.empty()) return outlying;
  const Fences fences = tukey_fences(all);
  for (std::size_t index = 0; index < outlying.size(); ++index) {
    const Repetition& repetition = row.repetitions[index];
    const std::vector<double> samples = samples_of(repetition, calls);
    for (std::size_t step = 0; step < repetition.step_ms.size(); ++step) {
      if (!fences.hold(samples[calls ? 0 : step])) outlying[index].push_back(step);
    }
  }
  return outlying;
}

}  // namespace stratagem::reports
