// DataParallelStrategy: nn.DataParallel. One process keeps the parameters on its first device; in
// each step the other devices get copies of them, and the first one all outputs' loss and all
// gradients.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "strategies/schedules/schedule.h"
#include "strategies/stages/stage.h"
#include "strategies/strategy.h"

namespace stratagem::data_parallel {

/// Throws std::invalid_argument, in one line, for an output device that the job lacks.
void check_output_device(const strategies::StrategyOptions& options, int devices);

class DataParallelStrategy : public strategies::Strategy {
 public:
  /// Throws as check_output_device().
  explicit DataParallelStrategy(const strategies::StrategyContext& context);
  /// Waits until the devices no longer touch the replicas.
  ~DataParallelStrategy() override;

  std::unique_ptr<strategies::PendingStep> step(const models::Batch& batch) override;
  void set_learning_rate(double rate) override { learning_rate_ = rate; }
  strategies::Evaluation evaluate(const models::Batch& batch) override;
  strategies::StateDictionary state() override;
  void load(const strategies::StateDictionary& state) override;
  std::vector<schedules::Slice> batch_partition(std::int64_t samples) const override;
  strategies::Costs costs(std::int64_t samples) const override;
  strategies::CommunicationCounts take_counts() override;

 protected:
  /// What a step works on.
  struct Work {
    models::Batch batch;
    std::vector<schedules::Slice> chunks = {};  // [replica]
    at::Tensor inputs = {};                     // the whole batch's, on the first device
    at::Tensor targets = {};                    // on the output device, as are
    at::Tensor outputs = {};                    // the replicas', one after another, and
    at::Tensor loss = {};
    at::Tensor correct = {};       // of an evaluation
    at::Tensor squared_norm = {};  // of the gradients, where they are clipped
    double gradient_norm = 0;
    double learning_rate = 0;
    bool evaluates = false;
  };
  /// Does one action; tests break single ones.
  virtual void perform(const schedules::Action& action, Work& work);
  stages::Stage& replica_at(int index) { return *replicas_.at(static_cast<std::size_t>(index)); }

 private:
  class Step;
  struct Plan {
    std::vector<schedules::Slice> chunks;  // [replica]
    schedules::Schedule schedule;
    schedules::Schedule evaluation;  // its forward passes
  };

  const Plan& plan_of(std::int64_t samples);
  bool is_loss(const schedules::Action& action, const Work& work) const {
    return action.stage == static_cast<int>(work.chunks.size());
  }
  const runtime::DeviceDescription& device_of(int index) const {
    return devices_[static_cast<std::size_t>(index)]->description();
  }
  int loss_device(const Work& work) const { return work.chunks.size() > 1 ? output_device_ : 0; }
  void load_inputs(const schedules::Action& action, Work& work);
  void load_chunk(int replica, const at::Tensor& from, const Work& work);
  at::Tensor brought(std::size_t slot, const Work& work, const std::function<at::Tensor()>& bring);
  void replicate(int to);
  void gather(Work& work);
  void forward(const schedules::Action& action, Work& work);
  void backward(const schedules::Action& action, Work& work);
  void scatter_gradient(int replica, const Work& work);
  void sum_gradients(std::size_t replicas);
  void update(int replica, Work& work);
  void count(const char* collective, const std::vector<at::Tensor>& tensors);
  std::int64_t bytes_of_an_input() const;
  void synchronize();

  const models::Workload& workload_;
  runtime::DeviceSpan devices_;
  std::chrono::milliseconds timeout_;
  std::function<void(const schedules::Action&)> before_action_;
  int output_device_;
  bool scatter_from_first_;
  bool keep_inputs_;
  double learning_rate_;
  double flops_of_a_sample_ = 0;
  models::Shape output_shape_;                            // of one sample
  std::map<std::int64_t, Plan> plans_;                    // by samples
  std::vector<std::unique_ptr<stages::Stage>> replicas_;  // [device]; the first is the module
  std::vector<at::Tensor> kept_;    // inputs that stay, [device], and the targets; may be undefined
  std::int64_t last_samples_ = 0;   // of the step before
  schedules::Execution last_step_;  // empty: the devices are idle
  std::mutex mutex_;
  strategies::CommunicationCounts counts_;
};

}  // namespace stratagem::data_parallel
