#include "strategies/schedules/data_parallel_schedule.h"

#include <utility>

namespace stratagem::schedules {
namespace {

using enum ActionKind;

class Builder {
 public:
  explicit Builder(const DataParallelShape& shape)
      : shape_(shape), last_(shape.segments() - 1), loss_(shape.loss_stage()) {
    schedule_.name = "data_parallel";
    for (int replica = 0; replica < shape.staged_replicas(); ++replica) {
      for (int segment = 0; segment <= last_; ++segment) {
        const int stage = shape.stage_of(replica, segment);
        schedule_.device_of_stage.push_back(replica);
        if (owner_of(segment) != replica) schedule_.not_updated.insert(stage);
        if (replica >= shape.replicas) schedule_.not_trained.insert(stage);
      }
    }
    if (!shape.loss_on_replicas) {
      schedule_.device_of_stage.push_back(several() ? shape.output_device : 0);
      schedule_.not_updated.insert(loss_);
    }
    schedule_.actions.resize(static_cast<std::size_t>(shape.devices));
  }

  Schedule step() {
    forward_passes();
    backward_passes();
    update();
    if (shape_.copies_kept) refresh_copies();
    return std::move(schedule_);
  }

  Schedule evaluation() {
    forward_passes();
    return std::move(schedule_);
  }

 private:
  bool several() const { return shape_.replicas > 1; }
  int owner_of(int segment) const { return shape_.owners[static_cast<std::size_t>(segment)]; }
  Action at(ActionKind kind, int replica, int segment) const {
    return {kind, shape_.stage_of(replica, segment)};
  }
  /// Returns the actions of every replica with samples.
  std::vector<Action> of_all(ActionKind kind, int segment) const {
    std::vector<Action> actions;
    for (int replica = 0; replica < shape_.replicas; ++replica) {
      actions.push_back(at(kind, replica, segment));
    }
    return actions;
  }

  void add(Action action, std::vector<Action> needs = {}) {
    const auto device = schedule_.device_of_stage.at(static_cast<std::size_t>(action.stage));
    schedule_.actions.at(static_cast<std::size_t>(device)).push_back(action);
    schedule_.needs[action] = std::move(needs);
  }

  void forward_passes() {
    add(at(copy_input, 0, 0));
    for (int replica = 1; replica < shape_.replicas; ++replica) bring_to(replica);
    for (int segment = 0; segment <= last_; ++segment) {
      for (int replica = 0; replica < shape_.replicas; ++replica) forward_pass(replica, segment);
    }
    if (!shape_.loss_on_replicas) loss();
  }

  /// Adds the copies of the model and the samples to a replica.
  void bring_to(int replica) {
    for (int segment = 0; segment <= last_ && !shape_.copies_kept; ++segment) {
      add(at(replicate, replica, segment));
      // Until the update the owner's parameters are the old ones, and until the end of its backward
      // pass a replica uses its copy of them.
      schedule_.needs_before[at(replicate, replica, segment)] = {
          at(optimizer, owner_of(segment), segment), at(backward, replica, segment)};
    }
    if (shape_.scatter_from_first) {
      add(at(scatter, replica, 0), {at(copy_input, 0, 0)});
    } else {
      add(at(copy_input, replica, 0));
    }
  }

  /// Returns the copies that a pass must follow, because it uses them or changes their sources: its
  /// own replica's, and all for the first replica, whose buffers the others copy.
  std::vector<Action> copies_before(int replica, int segment) const {
    const int all = shape_.copies_kept ? shape_.devices : shape_.replicas;
    const int end = replica == 0 ? all : replica + 1;
    std::vector<Action> copies;
    for (int other = replica; other < end; ++other) {
      if (other > 0 || shape_.copies_kept) copies.push_back(at(replicate, other, segment));
    }
    return copies;
  }

  void forward_pass(int replica, int segment) {
    const Action action = at(forward, replica, segment);
    std::vector<Action> needs;
    if (segment > 0) {
      needs.push_back(at(forward, replica, segment - 1));
    } else {
      const bool scattered = replica > 0 && shape_.scatter_from_first;
      needs.push_back(at(scattered ? scatter : copy_input, replica, 0));
    }
    std::vector<Action> copies = copies_before(replica, segment);
    if (shape_.copies_kept) {
      schedule_.needs_before[action] = std::move(copies);
    } else {
      needs.insert(needs.end(), copies.begin(), copies.end());
    }
    add(action, std::move(needs));
  }

  void loss() {
    std::vector<Action> outputs = of_all(forward, last_);
    add({copy_input, loss_});  // the targets
    if (several()) {
      add({gather, loss_}, std::move(outputs));
      outputs = {{gather, loss_}};
    }
    outputs.insert(outputs.begin(), {copy_input, loss_});
    add({forward, loss_}, std::move(outputs));
  }

  void backward_passes() {
    if (!shape_.loss_on_replicas) add({backward, loss_}, {{forward, loss_}});
    for (int segment = last_; segment >= 0; --segment) {
      for (int replica = 0; replica < shape_.replicas; ++replica) backward_pass(replica, segment);
      // The sum comes one segment later, so that a device seldom waits for the others.
      if (shape_.reduce_overlapped && segment < last_) sum(segment + 1);
    }
    for (int segment = shape_.reduce_overlapped ? 0 : last_; segment >= 0; --segment) sum(segment);
  }

  void backward_pass(int replica, int segment) {
    std::vector<Action> needs;
    if (segment < last_) {
      needs.push_back(at(backward, replica, segment + 1));
    } else if (several() && !shape_.loss_on_replicas) {
      add(at(scatter_gradient, replica, segment), {{backward, loss_}});
      needs.push_back(at(scatter_gradient, replica, segment));
    } else if (!shape_.loss_on_replicas) {
      needs.push_back({backward, loss_});
    }
    needs.push_back(at(forward, replica, segment));
    add(at(backward, replica, segment), std::move(needs));
  }

  /// Returns whether devices other than its owner have gradients of it.
  bool is_summed(int segment) const { return several() || owner_of(segment) > 0; }

  void sum(int segment) {
    if (!is_summed(segment)) return;
    add(at(sum_gradients, owner_of(segment), segment), of_all(backward, segment));
  }

  /// Updates in the order in which the next forward pass uses the parameters.
  void update() {
    for (int segment = 0; segment <= last_; ++segment) {
      const int owner = owner_of(segment);
      const Action action = at(optimizer, owner, segment);
      add(action, {at(is_summed(segment) ? sum_gradients : backward, owner, segment)});
      for (int other = 0; other < shape_.devices && shape_.copies_kept; ++other) {
        schedule_.needs_before[action].push_back(at(replicate, other, segment));
      }
    }
  }

  void refresh_copies() {
    for (int segment = 0; segment <= last_; ++segment) {
      const int owner = owner_of(segment);
      for (int replica = 0; replica < shape_.replicas; ++replica) {
        const bool gets_parameters = replica != owner;
        const bool gets_buffers = replica > 0 && shape_.with_buffers;
        if (!gets_parameters && !gets_buffers) continue;
        add(at(replicate, replica, segment),
            {at(optimizer, owner, segment), at(backward, replica, segment)});
      }
    }
  }

  DataParallelShape shape_;
  int last_;  // the last segment
  int loss_;  // the stage of the loss
  Schedule schedule_;
};

}  // namespace

Schedule data_parallel_schedule(const DataParallelShape& shape) {
  Schedule schedule = Builder(shape).step();
  validate(schedule);
  return schedule;
}

Schedule data_parallel_evaluation(const DataParallelShape& shape) {
  return Builder(shape).evaluation();
}

}  // namespace stratagem::schedules
