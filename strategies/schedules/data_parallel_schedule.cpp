#include "strategies/data_parallel/data_parallel_schedule.h"

#include <utility>
#include <vector>

namespace stratagem::data_parallel {
namespace {

using schedules::Action;
using enum schedules::ActionKind;

class Builder {
 public:
  explicit Builder(const DataParallelShape& shape) : shape_(shape), loss_(shape.replicas) {
    schedule_.name = "data_parallel";
    for (int replica = 0; replica < shape.replicas; ++replica) {
      schedule_.device_of_stage.push_back(replica);
      if (replica > 0) schedule_.not_updated.insert(replica);
    }
    schedule_.device_of_stage.push_back(shape.replicas > 1 ? shape.output_device : 0);
    schedule_.not_updated.insert(loss_);
    schedule_.actions.resize(static_cast<std::size_t>(shape.devices));
  }

  schedules::Schedule made() {
    bring_inputs();
    forward_passes();
    loss_and_its_gradient();
    backward_passes();
    update();
    return std::move(schedule_);
  }

 private:
  bool several() const { return shape_.replicas > 1; }

  void add(Action action, std::vector<Action> needs = {}) {
    const auto device = schedule_.device_of_stage.at(static_cast<std::size_t>(action.stage));
    schedule_.actions.at(static_cast<std::size_t>(device)).push_back(action);
    schedule_.needs[action] = std::move(needs);
  }

  void bring_inputs() {
    add({copy_input, 0});
    for (int replica = 1; replica < shape_.replicas; ++replica) {
      add({replicate, replica});
      // Until the update the first device's parameters are the old ones, and until the end of its
      // own backward pass a replica uses its copy of them.
      schedule_.needs_before[{replicate, replica}] = {{optimizer, 0}, {backward, replica}};
      if (shape_.scatter_from_first) {
        add({scatter, replica}, {{copy_input, 0}});
      } else {
        add({copy_input, replica});
      }
    }
  }

  void forward_passes() {
    // Its own forward pass would change the buffers that the others copy.
    std::vector<Action> first{{copy_input, 0}};
    for (int replica = 1; replica < shape_.replicas; ++replica) {
      first.push_back({replicate, replica});
    }
    add({forward, 0}, std::move(first));
    for (int replica = 1; replica < shape_.replicas; ++replica) {
      const Action samples{shape_.scatter_from_first ? scatter : copy_input, replica};
      add({forward, replica}, {{replicate, replica}, samples});
    }
  }

  void loss_and_its_gradient() {
    std::vector<Action> outputs;
    for (int replica = 0; replica < shape_.replicas; ++replica) {
      outputs.push_back({forward, replica});
    }
    add({copy_input, loss_});  // the targets
    if (several()) {
      add({gather, loss_}, std::move(outputs));
      outputs = {{gather, loss_}};
    }
    outputs.insert(outputs.begin(), {copy_input, loss_});
    add({forward, loss_}, std::move(outputs));
    add({backward, loss_}, {{forward, loss_}});
  }

  void backward_passes() {
    for (int replica = 0; replica < shape_.replicas; ++replica) {
      if (several()) {
        add({scatter_gradient, replica}, {{backward, loss_}});
        add({backward, replica}, {{scatter_gradient, replica}, {forward, replica}});
      } else {
        add({backward, replica}, {{backward, loss_}});
      }
    }
  }

  void update() {
    std::vector<Action> gradients;
    for (int replica = 0; replica < shape_.replicas; ++replica) {
      gradients.push_back({backward, replica});
    }
    if (several()) {
      add({sum_gradients, 0}, std::move(gradients));
      gradients = {{sum_gradients, 0}};
    }
    add({optimizer, 0}, std::move(gradients));
  }

  DataParallelShape shape_;
  int loss_;  // its stage
  schedules::Schedule schedule_;
};

}  // namespace

schedules::Schedule data_parallel_schedule(const DataParallelShape& shape) {
  schedules::Schedule schedule = Builder(shape).made();
  validate(schedule);
  return schedule;
}

}  // namespace stratagem::data_parallel
