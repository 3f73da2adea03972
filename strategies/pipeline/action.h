// Action: the smallest thing a schedule orders. Printed as in the literature on pipeline schedules:
// stage, kind, micro-batch, so `1F0` is the forward pass of stage 1 for micro-batch 0.
#pragma once

#include <compare>
#include <string>
#include <string_view>

namespace stratagem::pipeline {

enum class ActionKind {
  forward,          // F
  backward,         // B: gradients of input and weights
  copy_input,       // L: load the batch's inputs (first stage) and targets (last stage)
  copy_activation,  // CF: bring the previous stage's output to this stage's device
  copy_gradient,    // CB: bring the next stage's input gradient to this stage's device
  optimizer,        // O: update the stage's parameters
  broadcast,        // S: take over the first replica's buffers
  gradient_wait,    // R: wait for what is left of the gradients' all-reduce between replicas
  all_reduce,       // A: one bucket of gradients on its way; runs beside the device's list, so it
                    //    stands in timelines and in no schedule; its micro-batch is the bucket
};

struct Action {
  ActionKind kind = ActionKind::forward;
  int stage = 0;
  int micro_batch = 0;

  auto operator<=>(const Action&) const = default;
};

/// "1F0".
std::string to_string(const Action& action);
/// "forward", as in results files.
std::string_view name(ActionKind kind);
/// Whether it moves data between devices of a process or from the host.
bool is_copy(ActionKind kind);
/// Whether it exchanges data with other ranks.
bool is_collective(ActionKind kind);

}  // namespace stratagem::pipeline
