// The oracle: the update that one device computes without any code of ours. It has a bare loop over
// the strategy's batch partition, contiguous memory, ATen's linear layers and batch normalisation,
// LibTorch's own optimizers, no folded convolutions, no schedule, no executor.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "models/workload.h"
#include "reports/record.h"
#include "strategies/strategy.h"

namespace torch::optim {
class Optimizer;
}  // namespace torch::optim

namespace stratagem::bench {

struct OracleStep {
  double loss = 0;           // before the update
  double gradient_norm = 0;  // before clipping; 0: not clipped
  // The state after it, with the gradients that led to it: the oracle's own tensors, which its next
  // step changes. A second state of a large model would be memory that its training does not need.
  strategies::StateDictionary state;
};

/// Options of a step.
struct OracleUpdate {
  bool skipped = false;                             // parameters and optimizer do not change
  std::optional<at::ScalarType> exchanged_in = {};  // format that rounds replicas' gradients
};

class MasterParameters;

class Oracle {
 public:
  /// Trains a model of `workload` on `batch`. Slices of other replicas add to the gradients only:
  /// running statistics are kept for each replica, those of `replica` are returned, and every step
  /// begins with those of the first.
  Oracle(const models::Workload& workload, const models::Batch& batch,
         std::vector<schedules::Slice> partition, int replica);
  ~Oracle();

  OracleStep step(const OracleUpdate& update = {});
  /// Multiplies each element of the parameters by 1 plus a normal number of this deviation. Equal
  /// `draw` give the same numbers.
  void shake(double deviation, std::int64_t draw);
  /// Trains later steps on `batch`, which has as many samples.
  void set_batch(const models::Batch& batch);
  /// Evaluates with the first replica's statistics. Changes the buffers of the last step.
  double evaluation_loss();

 private:
  class ReplicaBuffers;

  models::Workload workload_;
  models::Batch batch_;
  std::vector<schedules::Slice> partition_;
  int replica_;
  models::Model model_;
  std::unique_ptr<MasterParameters> masters_;  // null: the model trains its own parameters
  std::vector<models::NamedTensor> parameters_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  std::unique_ptr<ReplicaBuffers> buffers_;
};

/// Throws std::runtime_error if some parameter's gradient is zero.
void require_gradients(const OracleStep& step);

/// The tolerance if both sides compute in float64.
inline constexpr double exact_tolerance = 1e-9;
/// The tolerance if gradients were rounded to float16: 11 bits of each replica's, and of the sum.
inline constexpr double compressed_tolerance = 4e-3;

/// Runs the same three steps with `strategy`, which must be fresh. After each it compares the loss,
/// every gradient, parameter, buffer and optimizer entry, relative to the tensor's largest element,
/// and gives the strategy the oracle's state: a deep network at its start amplifies the last bit of
/// a number a thousandfold a step, which would otherwise hide errors. What a strategy keeps beside
/// its state (a gradient that it did not drop, say) still shows in the next step. At the end the
/// loss in evaluation mode is compared. Passes within `tolerance`.
reports::Verdict compare_with_oracle(strategies::Strategy& strategy,
                                     const models::Workload& workload,
                                     double tolerance = exact_tolerance);

/// Returns the loss of `batch` in training mode without an update, on one device over `partition`,
/// by the reference kernels.
double forward_loss(const models::Workload& workload, const models::Batch& batch,
                    const std::vector<schedules::Slice>& partition);

}  // namespace stratagem::bench
