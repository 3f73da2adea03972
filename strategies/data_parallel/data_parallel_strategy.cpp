#include "strategies/data_parallel/data_parallel_strategy.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "strategies/backends/backend.h"
#include "strategies/data_parallel/layer_buckets.h"
#include "strategies/schedules/batch_split.h"
#include "strategies/schedules/recomputation.h"
#include "strategies/stages/stage_state.h"

namespace stratagem::data_parallel {
namespace {

using schedules::Action;

template <class Number>
Number sum_of(const std::vector<at::Tensor>& parts) {
  Number sum = 0;
  for (const at::Tensor& part : parts) {
    if (part.defined()) sum += part.item<Number>();
  }
  return sum;
}

}  // namespace

void check_options(const strategies::StrategyOptions& options, int devices) {
  if (options.output_device >= devices) {
    throw std::invalid_argument(
        fmt::format("--output-device {}: the row has {} devices; expected 0 to {}",
                    options.output_device, devices, devices - 1));
  }
  if (options.output_device > 0 && options.loss_on == "replicas") {
    throw std::invalid_argument(fmt::format(
        "--output-device {}: --loss-on replicas gathers no outputs; leave one of them out",
        options.output_device));
  }
  if (options.update == "everywhere" && options.replicate != "kept") {
    throw std::invalid_argument(
        "--update everywhere: needs --replicate kept, because no device has all updated "
        "parameters");
  }
}

class DataParallelStrategy::Step final : public strategies::PendingStep {
 public:
  Step(schedules::Execution execution, std::shared_ptr<const Work> work)
      : execution_(std::move(execution)), work_(std::move(work)) {}

  const schedules::Execution& execution() const override { return execution_; }
  double loss() const override { return sum_of<double>(work_->losses); }
  double gradient_norm() const override { return work_->gradient_norm; }

 private:
  schedules::Execution execution_;
  std::shared_ptr<const Work> work_;
};

DataParallelStrategy::DataParallelStrategy(const strategies::StrategyContext& context)
    : workload_(context.workload),
      devices_(context.devices),
      timeout_(context.timeout),
      before_action_(context.before_action),
      output_device_(static_cast<int>(context.options.output_device)),
      scatter_from_first_(context.options.scatter == "first"),
      loss_on_replicas_(context.options.loss_on == "replicas"),
      copies_kept_(context.options.replicate == "kept"),
      keep_inputs_(context.options.inputs == "device"),
      learning_rate_(workload_.options().optimizer.learning_rate),
      replicas_(devices_.size()),
      kept_(2 * devices_.size()) {
  const auto devices = static_cast<int>(devices_.size());
  check_options(context.options, devices);
  const models::Model model = workload_.make_meta_model();
  const models::Shape input = workload_.input_shape(1);
  output_shape_ = models::output_shape(model.layers, input);
  const Segments cut =
      segments_of(model.layers, context.options, devices, workload_.options().width);
  request_ = {.options = context.options,
              .arrangement = {.replicas = devices},
              .parts = {.kept_groups = cut.kept,
                        .has_buffers = !models::buffers(model.layers).empty(),
                        .owners = cut.owners},
              .needs_norm = clips()};
  note_flops(model, cut.boundaries);
  make_replicas(cut.boundaries);
}

void DataParallelStrategy::note_flops(const models::Model& model,
                                      std::span<const std::size_t> boundaries) {
  models::Shape shape = workload_.input_shape(1);
  std::size_t begin = 0;
  for (std::size_t segment = 0; segment <= boundaries.size(); ++segment) {
    const std::size_t end = segment < boundaries.size() ? boundaries[segment] : model.layers.size();
    const auto layers = models::LayerSpan(model.layers).subspan(begin, end - begin);
    flops_.push_back(models::flops(layers, shape, /*first_input_needs_gradient=*/segment > 0));
    shape = models::output_shape(layers, shape);
    begin = end;
  }
}

void DataParallelStrategy::make_replicas(std::span<const std::size_t> boundaries) {
  for (std::size_t index = 0; index < devices_.size(); ++index) {
    devices_[index]->enqueue(runtime::Stream::compute, "set-up", [this, index, boundaries] {
      auto parts = models::cut(workload_.make_meta_model().layers, boundaries);
      for (std::size_t segment = 0; segment < parts.size(); ++segment) {
        const stages::Stage::Position position{
            .first = segment == 0, .last = loss_on_replicas_ && segment + 1 == parts.size()};
        replicas_[index].push_back(std::make_unique<stages::Stage>(
            workload_, std::move(parts[segment]), position, devices_[index]->description(),
            /*micro_batches=*/1));
        replicas_[index].back()->remade_inputs = stages::remade_by(request_.options);
      }
    });
  }
  synchronize();
}

DataParallelStrategy::~DataParallelStrategy() {
  try {
    synchronize();
  } catch (const std::exception&) {
    return;  // the caller that synchronised has the error
  }
}

void DataParallelStrategy::synchronize() {
  runtime::synchronize_all(devices_, timeout_);
  last_step_.clear();
}

DataParallelStrategy::Plan DataParallelStrategy::make_plan(std::int64_t samples) const {
  strategies::PlanRequest request = request_;
  request.samples = samples;
  Plan plan{.step = strategies::plan_of(request, {.in_one_process = true}),
            .shape = strategies::data_parallel_shape(request)};
  plan.recomputed = schedules::recomputed_passes(plan.step.schedule);
  return plan;
}

const DataParallelStrategy::Plan& DataParallelStrategy::plan_of(std::int64_t samples) {
  const auto found = plans_.find(samples);
  if (found != plans_.end()) return found->second;
  return plans_.emplace(samples, make_plan(samples)).first->second;
}

/// Forgets kept inputs if they belong to another batch.
void DataParallelStrategy::keep_inputs_of(const models::Batch& batch) {
  if (!keep_inputs_ || batch.is_same(kept_batch_)) return;
  synchronize();
  kept_.assign(kept_.size(), {});
  kept_batch_ = batch;
}

/// Makes the copies that are kept, and remakes those of replicas that steps without samples for
/// them, or load(), have left behind.
void DataParallelStrategy::bring_copies_up_to_date(int replicas) {
  if (!copies_kept_ || replicas <= up_to_date_) return;
  synchronize();
  for (int replica = up_to_date_; replica < replicas; ++replica) {
    devices_[static_cast<std::size_t>(replica)]->enqueue(
        runtime::Stream::compute, "replicate", [this, replica] {
          for (int segment = 0; segment < segments(); ++segment) replicate({replica, segment});
        });
  }
  synchronize();
  up_to_date_ = replicas;
}

std::unique_ptr<strategies::PendingStep> DataParallelStrategy::step(const models::Batch& batch) {
  const Plan& plan = plan_of(batch.checked_size());
  keep_inputs_of(batch);
  const auto replicas = plan.step.partition.size();
  bring_copies_up_to_date(static_cast<int>(replicas));
  up_to_date_ = static_cast<int>(replicas);  // the replicas that get this step's update
  auto work =
      std::make_shared<Work>(Work{.batch = batch,
                                  .plan = plan,
                                  .losses = std::vector<at::Tensor>(replicas),
                                  .squared_norms = std::vector<at::Tensor>(
                                      clips() ? plan.step.schedule.device_of_stage.size() : 0),
                                  .learning_rate = learning_rate_});
  const auto perform_one = [this, work](const Action& action) {
    if (before_action_) before_action_(action);
    perform(action, *work);
  };
  last_step_ = schedules::execute(plan.step.schedule, devices_, perform_one, 0, last_step_);
  return std::make_unique<Step>(last_step_, work);
}

strategies::Evaluation DataParallelStrategy::evaluate(const models::Batch& batch) {
  const Plan& plan = plan_of(batch.checked_size());
  const auto replicas = plan.step.partition.size();
  synchronize();
  bring_copies_up_to_date(static_cast<int>(replicas));
  Work work{.batch = batch,
            .plan = plan,
            .losses = std::vector<at::Tensor>(replicas),
            .correct = std::vector<at::Tensor>(replicas),
            .evaluates = true};
  const auto for_each_stage = [this](const std::function<void(stages::Stage&)>& visit) {
    for (const auto& replica : replicas_) {
      for (const auto& stage : replica) visit(*stage);
    }
  };
  for_each_stage([](stages::Stage& stage) { stage.set_training(false); });
  schedules::execute(plan.step.evaluation, devices_, [this, &work](const Action& action) {
    const c10::AutoGradMode no_gradient(false);
    perform(action, work);
  });
  synchronize();
  for_each_stage([](stages::Stage& stage) {
    stage.set_training(true);
    stage.release();
  });
  return {.loss = sum_of<double>(work.losses), .correct = sum_of<std::int64_t>(work.correct)};
}

strategies::CommunicationCounts DataParallelStrategy::take_counts() {
  const std::lock_guard lock(mutex_);
  return std::exchange(counts_, {});
}

strategies::StateDictionary DataParallelStrategy::state() {
  synchronize();
  strategies::StateDictionary all;
  for (int segment = 0; segment < segments(); ++segment) {
    stages::add_state(stage_at(owner_of(segment), segment), all);
    for (const auto& buffer : models::buffers(stage_at(0, segment).layers())) {
      all[buffer.name] = buffer.tensor.to(at::kCPU, buffer.tensor.scalar_type(), false, true);
    }
  }
  return all;
}

strategies::StatePieces DataParallelStrategy::own_state(bool with_gradients) {
  synchronize();
  strategies::StatePieces all;
  for (int segment = 0; segment < segments(); ++segment) {
    stages::add_pieces(stage_at(owner_of(segment), segment),
                       models::buffers(stage_at(0, segment).layers()), with_gradients, all);
  }
  return all;
}

void DataParallelStrategy::load(const strategies::StateDictionary& state) {
  synchronize();
  const c10::AutoGradMode no_gradient(false);
  for (int segment = 0; segment < segments(); ++segment) {
    stages::Stage& owner = stage_at(owner_of(segment), segment);
    stages::load_state(owner, state);
    if (owner_of(segment) == 0) continue;
    const auto copy_all = [](const auto& from, const auto& to) {
      for (std::size_t index = 0; index < from.size(); ++index) {
        to[index].tensor.detach().copy_(from[index].tensor.detach());
      }
      // The copy is on this thread's stream, for which the devices' streams do not wait.
      if (!to.empty()) backends::finish(to.back().tensor);
    };
    const models::LayerList& first = stage_at(0, segment).layers();
    copy_all(models::parameters(owner.layers()), models::parameters(first));
    copy_all(models::buffers(owner.layers()), models::buffers(first));
  }
  up_to_date_ = 1;
}

std::vector<schedules::Slice> DataParallelStrategy::batch_partition(std::int64_t samples) const {
  return schedules::chunk_batch(samples, static_cast<std::int64_t>(devices_.size()));
}

}  // namespace stratagem::data_parallel
