// DataParallelStrategy: nn.DataParallel. One process keeps the parameters on its first device. In
// each step the other devices get copies of them, and the first one gets all outputs' loss and all
// gradients. Options (loss_on, replicate, reduce, update) remove these costs one by one; see
// docs/reference/strategies.md, "From DataParallel to DDP".
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <vector>

#include "strategies/plan.h"
#include "strategies/stages/squared_norm.h"
#include "strategies/stages/stage.h"
#include "strategies/strategy.h"

namespace stratagem::data_parallel {

/// Throws std::invalid_argument, in one line, for an output device that the job lacks, and for
/// contradictory options.
void check_options(const strategies::StrategyOptions& options, int devices);

class DataParallelStrategy : public strategies::Strategy {
 public:
  /// Throws like check_options().
  explicit DataParallelStrategy(const strategies::StrategyContext& context);
  /// Waits until the devices no longer touch the replicas.
  ~DataParallelStrategy() override;

  std::unique_ptr<strategies::PendingStep> step(const models::Batch& batch) override;
  void set_learning_rate(double rate) override { learning_rate_ = rate; }
  strategies::Evaluation evaluate(const models::Batch& batch) override;
  strategies::StateDictionary state() override;
  strategies::StatePieces own_state(bool with_gradients) override;
  void load(const strategies::StateDictionary& state) override;
  std::vector<schedules::Slice> batch_partition(std::int64_t samples) const override;
  strategies::Costs costs(std::int64_t samples) const override;
  strategies::CommunicationCounts take_counts() override;

 protected:
  struct Plan {
    strategies::StepPlan step = {};
    schedules::DataParallelShape shape = {};
    std::set<schedules::Action> recomputed = {};  // see recomputed_passes()
  };
  /// The tensors of a step.
  struct Work {
    models::Batch batch;
    const Plan& plan;
    at::Tensor inputs = {};   // the whole batch's, on the first device if it scatters them
    at::Tensor targets = {};  // the whole batch's, there or on the output device, like the outputs
    at::Tensor outputs = {};  // the replicas' outputs in order
    std::vector<at::Tensor> losses = {};   // the losses to be added up
    std::vector<at::Tensor> correct = {};  // an evaluation's correct predictions, to be added up
    std::vector<at::Tensor> squared_norms =
        {};  // [stage], of its gradients, if clipping is turned on
    std::shared_ptr<stages::NumberReadOnce> norm_on_host =
        std::make_shared<stages::NumberReadOnce>();  // the sum of the squared norms
    double gradient_norm = 0;
    double learning_rate = 0;
    bool evaluates = false;
  };
  /// Does one action. Tests override it to break single actions.
  virtual void perform(const schedules::Action& action, Work& work);
  /// Returns a run of a replica's layers; with one segment, all layers.
  stages::Stage& stage_at(int replica, int segment) {
    return *replicas_.at(static_cast<std::size_t>(replica)).at(static_cast<std::size_t>(segment));
  }

 private:
  class Step;
  /// The replica and segment of a stage.
  struct Place {
    int replica = 0;
    int segment = 0;
  };

  void note_flops(const models::Model& model, std::span<const std::size_t> boundaries);
  void make_replicas(std::span<const std::size_t> boundaries);
  Plan make_plan(std::int64_t samples) const;
  const Plan& plan_of(std::int64_t samples);
  void keep_inputs_of(const models::Batch& batch);
  void bring_copies_up_to_date(int replicas);
  int segments() const { return static_cast<int>(request_.parts.owners.size()); }
  int owner_of(int segment) const {
    return request_.parts.owners.at(static_cast<std::size_t>(segment));
  }
  Place place_of(const schedules::Action& action) const {
    return {action.stage / segments(), action.stage % segments()};
  }
  bool clips() const { return workload_.options().optimizer.clip_norm > 0; }
  bool is_loss(const schedules::Action& action, const Work& work) const {
    return !loss_on_replicas_ && action.stage == work.plan.shape.loss_stage();
  }
  const runtime::DeviceDescription& device_of(int index) const {
    return devices_[static_cast<std::size_t>(index)]->description();
  }
  int loss_device(const Work& work) const {
    return work.plan.step.partition.size() > 1 ? output_device_ : 0;
  }

  // The functions of the actions.
  void load_inputs(const schedules::Action& action, Work& work);
  void load_chunk(int replica, const at::Tensor& inputs, const at::Tensor& targets,
                  const Work& work);
  at::Tensor brought(std::size_t slot, const Work& work, const std::function<at::Tensor()>& bring);
  std::size_t slot_of_targets(int replica) const {
    return replicas_.size() + static_cast<std::size_t>(replica);
  }
  void replicate(Place to);
  void gather(Work& work);
  void forward(const schedules::Action& action, Work& work);
  void forward_loss(Work& work);
  void recompute(Place place, const Work& work);
  models::SamplePlace samples_of(Place place, const Work& work) const;
  double weight(Place place, const Work& work) const;
  void backward(Place place, Work& work);
  void backward_loss(Work& work);
  void scatter_gradient(int replica, const Work& work);
  void sum_gradients(Place owner, int replicas);
  void update(Place owner, Work& work);
  void count(const char* collective, const std::vector<at::Tensor>& tensors);

  strategies::CommunicationCounts costs_of_copies(int replicas) const;
  std::vector<strategies::StateBytes> memory_of_state(int replicas) const;
  std::int64_t bytes_of_an_input() const;
  std::int64_t bytes_of_a_target() const;
  void synchronize();

  const models::Workload& workload_;
  runtime::DeviceSpan devices_;
  std::chrono::milliseconds timeout_;
  std::function<void(const schedules::Action&)> before_action_;
  int output_device_;
  bool scatter_from_first_;
  bool loss_on_replicas_;
  bool copies_kept_;
  bool keep_inputs_;
  double learning_rate_;
  std::vector<models::PassFlops> flops_;  // [segment], for one sample
  models::Shape output_shape_;            // the shape for one sample
  strategies::PlanRequest request_;
  std::map<std::int64_t, Plan> plans_;  // by number of samples
  // [device][segment]. The first device's stages are the module.
  std::vector<std::vector<std::unique_ptr<stages::Stage>>> replicas_;
  int up_to_date_ = 1;  // the number of replicas with the present parameters, if copies are kept
  // [device], then targets by device: inputs that stay; may be undefined.
  std::vector<at::Tensor> kept_;
  models::Batch kept_batch_;        // the batch of `kept_`
  schedules::Execution last_step_;  // empty: the devices are idle
  std::mutex mutex_;
  strategies::CommunicationCounts counts_;
};

}  // namespace stratagem::data_parallel
