// Action: the smallest unit of a schedule. It is printed like in the literature on pipeline
// schedules: stage, kind, micro-batch, so `1F0` is the forward pass of stage 1 for micro-batch 0.
#pragma once

#include <compare>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace stratagem::schedules {

enum class ActionKind {
  forward,             // F
  backward,            // B: gradients of input and weights
  backward_input,      // I: the gradient of the input only; a W follows
  backward_weight,     // W: the weights' gradients that an I has deferred
  recompute,           // C: repeat F to make its activations again, which were not kept
  copy_input,          // L: load the batch's inputs (first stage) and targets (last stage)
  copy_activation,     // CF: bring the previous stage's output to this stage's device
  copy_gradient,       // CB: bring the next stage's input gradient to this stage's device
  send_activation,     // SF: hand the output to the next stage, on another rank
  receive_activation,  // RF: receive it there
  send_gradient,       // SB: hand the input gradient to the previous stage, on another rank
  receive_gradient,    // RB: receive it there
  gradient_norm,       // N: the squared norm of the stage's gradients
  norm_sum,            // NS: add up the norms of all ranks of the replica
  optimizer,           // O: update the stage's parameters
  replicate,           // P: copy the first device's parameters and buffers
  scatter,             // SC: bring a replica's part of the batch from the first device
  gather,              // GO: bring the replicas' outputs to the device of the loss
  scatter_gradient,    // SG: bring a replica's part of the outputs' gradient from there
  sum_gradients,       // RA: add the other devices' gradients to the first one's
  broadcast,           // S: copy the first replica's buffers
  gradient_wait,       // R: wait for the sum that an RS has started
  reduce_gradients,    // G: sum gradients of which every tensor-parallel rank has a partial sum
  unshard,             // U: start gathering the stage's parameters; its micro-batch is the visit
  unshard_wait,        // UW: wait until they are whole
  reshard,             // X: free them, except the rank's own part
  reduce_scatter,      // RS: start summing gradients of which each rank keeps its own part
  all_reduce_start,  // AS: start summing gradients, or that part, with the ranks that keep it, too
  all_reduce_wait,   // AW: wait for the sum
  all_reduce,        // A: the sum that an AS has started, in flight; it overlaps the device's list,
                     // so it is in timelines, but not in schedules
  gather_transfer,   // AG: the gather that a U has started, in flight
  scatter_transfer,  // ST: the sum that an RS has started, in flight
  tensor_transfer,   // T: a collective inside a layer, in flight; its micro-batch is its number
  tensor_wait,       // TW: an action waiting for the collective of that number
  context_transfer,  // K: an exchange of attention, in flight; its micro-batch is its number
  context_wait,      // KW: an action waiting for the exchange of that number
};

constexpr std::size_t action_kinds = static_cast<std::size_t>(ActionKind::context_wait) + 1;

struct Action {
  ActionKind kind = ActionKind::forward;
  int stage = 0;
  int micro_batch = 0;

  auto operator<=>(const Action&) const = default;
};

/// Returns "1F0".
std::string to_string(const Action& action);
/// Returns "forward", as in results files.
std::string_view name(ActionKind kind);
/// Returns whether it moves data between devices of a process or from the host.
bool is_copy(ActionKind kind);
/// Return whether it sends data to another rank, or receives data from one.
bool is_send(ActionKind kind);
bool is_receive(ActionKind kind);
/// Return whether it exchanges data with all ranks of a group; a tensor collective's are the ranks
/// with parts of the same layers, a context collective's those with parts of the same samples.
bool is_collective(ActionKind kind);
bool is_tensor_collective(ActionKind kind);
bool is_context_collective(ActionKind kind);
/// Returns whether it is the wait of an action for a collective inside a layer.
bool is_wait_inside(ActionKind kind);
/// Return whether it exchanges data with the ranks of the same layers, with those of them that
/// shard their state, and with those that keep the same part of it.
bool is_of_replicas(ActionKind kind);
bool is_of_shards(ActionKind kind);
bool is_of_copies(ActionKind kind);
/// Returns whether all ranks of a replica take part in it, once a step.
bool is_replicas_own(ActionKind kind);
/// Returns whether it moves data in any of these ways and computes nothing.
bool moves_data(ActionKind kind);
/// Returns whether it belongs to the update of parameters.
bool is_update(ActionKind kind);
/// Returns whether an evaluation needs it: forward passes and the transfers of their inputs.
bool is_evaluation(ActionKind kind);
/// Returns whether it makes the gradient that the previous stage awaits.
bool is_backward(ActionKind kind);
/// Returns whether it adds to the gradients of the stage's weights.
bool makes_weight_gradients(ActionKind kind);
/// Returns whether it is a forward pass, its repetition, a backward pass or a half of one.
bool is_pass(ActionKind kind);
/// Returns whether it overlaps its device's list: it is in timelines, but not in schedules.
bool is_in_flight(ActionKind kind);
/// Returns whether its micro-batch is a visit: 2m of the forward pass of micro-batch m, 2m + 1 of
/// its backward pass.
bool is_of_a_visit(ActionKind kind);

/// Returns the transfer that a U, an RS or an AS starts, or nothing for other actions.
std::optional<Action> transfer_of(const Action& action);
/// Returns the U, RS or AS that starts a transfer; throws std::logic_error for other actions.
Action starter_of(const Action& transfer);
/// Returns the transfer that a UW, an R or an AW awaits, or nothing for other actions.
std::optional<Action> awaited_transfer(const Action& action);

/// Returns the send of a neighbouring stage that `receive` takes.
Action sender_of(const Action& receive);

}  // namespace stratagem::schedules
