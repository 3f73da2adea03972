#include "bench/oracle/trajectory.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "bench/oracle/fingerprint.h"
#include "bench/oracle/oracle.h"

namespace stratagem::bench {
namespace {

Fingerprints initial_state(const models::Workload& workload) {
  const models::Model model = workload.make_model();
  strategies::StateDictionary state;
  for (const auto& [name, tensor] : models::parameters(model.layers)) state[name] = tensor.detach();
  for (const auto& [name, tensor] : models::buffers(model.layers)) state[name] = tensor;
  return fingerprints_of(state);
}

}  // namespace

Trajectory trajectory_of(const models::Workload& workload,
                         const std::vector<schedules::Slice>& partition,
                         const TrajectoryRequest& request) {
  Trajectory trajectory;
  trajectory.states.push_back({.steps = 0, .state = initial_state(workload)});
  Oracle oracle(workload, workload.make_batch(0), partition, 0);
  if (request.shaken > 0) oracle.shake(request.shaken, request.draw);
  for (std::int64_t step = 0; step < request.lengths.back(); ++step) {
    const auto batch = static_cast<std::uint64_t>(step % request.batches);
    if (request.batches > 1 && step > 0) oracle.set_batch(workload.make_batch(batch));
    const bool skipped = std::ranges::count(request.skipped, step) > 0;
    const OracleStep taken =
        oracle.step({.skipped = skipped, .exchanged_in = request.exchanged_in});
    trajectory.loss.push_back(taken.loss);
    if (!std::ranges::binary_search(request.lengths, step + 1)) continue;
    trajectory.states.push_back({.steps = step + 1, .state = fingerprints_of(taken.state)});
  }
  return trajectory;
}

Trajectory furthest(const Trajectory& one, const Trajectory& other, const Trajectory& exact) {
  Trajectory both = one;
  for (std::size_t step = 0; step < both.loss.size(); ++step) {
    const double expected = exact.loss.at(step);
    double& loss = both.loss[step];
    if (std::abs(other.loss.at(step) - expected) > std::abs(loss - expected)) {
      loss = other.loss[step];
    }
  }
  for (std::size_t index = 0; index < both.states.size(); ++index) {
    for (auto& [name, fingerprint] : both.states[index].state) {
      const Fingerprint& from = exact.states.at(index).state.at(name);
      const Fingerprint& candidate = other.states.at(index).state.at(name);
      if (distance(candidate, from) > distance(fingerprint, from)) fingerprint = candidate;
    }
  }
  return both;
}

}  // namespace stratagem::bench
