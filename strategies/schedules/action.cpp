#include "strategies/schedules/action.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

namespace stratagem::schedules {
namespace {

/// The way in which an action moves data.
enum class Movement {
  none,                 // it computes
  copy,                 // between devices of a process or from the host
  send,                 // to another rank
  receive,              // from another rank
  among_replicas,       // a collective of the ranks with the same layers
  among_shards,         // a collective of those that shard its state, or of all
  among_copies,         // a collective of those with the same part of it
  among_tensor_shards,  // a collective of the ranks with parts of the same layers
  among_context_parts,  // a collective of the ranks with parts of the same samples
  within_replica,       // a collective of all ranks of a replica
  stalled,              // an action waits for a collective
};

/// Other properties of a kind, joined by |.
constexpr unsigned whole_stage = 1;       // has no micro-batch
constexpr unsigned evaluation = 2;        // only forward passes have it
constexpr unsigned input_gradient = 4;    // makes the gradient that the previous stage awaits
constexpr unsigned weight_gradients = 8;  // adds to the gradients of the stage's weights
constexpr unsigned update = 16;           // part of the parameters' update
constexpr unsigned in_flight = 32;        // overlaps its device's list
constexpr unsigned visit = 64;            // stands for one use of the stage's parameters

struct Description {
  ActionKind kind;
  std::string_view symbol;
  std::string_view name;
  Movement movement = Movement::none;
  unsigned properties = 0;

  bool has(unsigned property) const { return (properties & property) != 0; }
};

/// Returns all properties of a kind: a new kind is one line here.
const Description& describe(ActionKind kind) {
  using enum ActionKind;
  using enum Movement;
  static constexpr std::array descriptions{
      Description{forward, "F", "forward", none, evaluation},
      Description{backward, "B", "backward", none, input_gradient | weight_gradients},
      Description{backward_input, "I", "backward_input", none, input_gradient},
      Description{backward_weight, "W", "backward_weight", none, weight_gradients},
      Description{recompute, "C", "recompute"},
      Description{copy_input, "L", "copy_input", copy, evaluation},
      Description{copy_activation, "CF", "copy_activation", copy, evaluation},
      Description{copy_gradient, "CB", "copy_gradient", copy},
      Description{send_activation, "SF", "send_activation", send, evaluation},
      Description{receive_activation, "RF", "receive_activation", receive, evaluation},
      Description{send_gradient, "SB", "send_gradient", send},
      Description{receive_gradient, "RB", "receive_gradient", receive},
      Description{gradient_norm, "N", "gradient_norm", none, whole_stage | update},
      Description{norm_sum, "NS", "norm_sum", within_replica, whole_stage},
      Description{optimizer, "O", "optimizer", none, whole_stage | update},
      Description{replicate, "P", "replicate", copy, whole_stage | evaluation},
      Description{scatter, "SC", "scatter", copy, whole_stage | evaluation},
      Description{gather, "GO", "gather", copy, whole_stage | evaluation},
      Description{scatter_gradient, "SG", "scatter_gradient", copy, whole_stage},
      Description{sum_gradients, "RA", "sum_gradients", copy, whole_stage},
      Description{broadcast, "S", "broadcast", among_replicas, whole_stage | evaluation},
      Description{gradient_wait, "R", "gradient_wait", among_shards, whole_stage},
      Description{reduce_gradients, "G", "reduce_gradients", among_tensor_shards, whole_stage},
      Description{unshard, "U", "unshard", among_shards, visit},
      Description{unshard_wait, "UW", "unshard_wait", among_shards, visit},
      Description{reshard, "X", "reshard", none, visit},
      Description{reduce_scatter, "RS", "reduce_scatter", among_shards},
      Description{all_reduce_start, "AS", "all_reduce_start", among_copies, whole_stage},
      Description{all_reduce_wait, "AW", "all_reduce_wait", among_copies, whole_stage},
      Description{all_reduce, "A", "all_reduce", among_copies, in_flight | whole_stage},
      Description{gather_transfer, "AG", "gather_transfer", among_shards, in_flight | visit},
      Description{scatter_transfer, "ST", "scatter_transfer", among_shards, in_flight},
      Description{tensor_transfer, "T", "tensor_transfer", among_tensor_shards, in_flight},
      Description{tensor_wait, "TW", "tensor_wait", stalled},
      Description{context_transfer, "K", "context_transfer", among_context_parts, in_flight},
      Description{context_wait, "KW", "context_wait", stalled}};
  static_assert(descriptions.size() == action_kinds);
  static_assert(std::ranges::is_sorted(descriptions, {}, &Description::kind));
  return descriptions.at(static_cast<std::size_t>(kind));
}

}  // namespace

std::string to_string(const Action& action) {
  const Description& description = describe(action.kind);
  if (description.has(whole_stage) && action.micro_batch == 0) {
    return fmt::format("{}{}", action.stage, description.symbol);
  }
  return fmt::format("{}{}{}", action.stage, description.symbol, action.micro_batch);
}

std::string_view name(ActionKind kind) { return describe(kind).name; }

bool is_copy(ActionKind kind) { return describe(kind).movement == Movement::copy; }

bool is_send(ActionKind kind) { return describe(kind).movement == Movement::send; }

bool is_receive(ActionKind kind) { return describe(kind).movement == Movement::receive; }

bool is_collective(ActionKind kind) {
  return is_of_replicas(kind) || is_of_shards(kind) || is_of_copies(kind) ||
         is_tensor_collective(kind) || is_context_collective(kind) || is_replicas_own(kind);
}

bool is_tensor_collective(ActionKind kind) {
  return describe(kind).movement == Movement::among_tensor_shards;
}

bool is_context_collective(ActionKind kind) {
  return describe(kind).movement == Movement::among_context_parts;
}

bool is_wait_inside(ActionKind kind) { return describe(kind).movement == Movement::stalled; }

bool is_of_replicas(ActionKind kind) { return describe(kind).movement == Movement::among_replicas; }

bool is_of_shards(ActionKind kind) { return describe(kind).movement == Movement::among_shards; }

bool is_of_copies(ActionKind kind) { return describe(kind).movement == Movement::among_copies; }

bool is_replicas_own(ActionKind kind) {
  return describe(kind).movement == Movement::within_replica;
}

bool moves_data(ActionKind kind) { return describe(kind).movement != Movement::none; }

bool is_update(ActionKind kind) { return describe(kind).has(update); }

bool is_evaluation(ActionKind kind) { return describe(kind).has(evaluation); }

bool is_backward(ActionKind kind) { return describe(kind).has(input_gradient); }

bool makes_weight_gradients(ActionKind kind) { return describe(kind).has(weight_gradients); }

bool is_pass(ActionKind kind) {
  return kind == ActionKind::forward || kind == ActionKind::recompute || is_backward(kind) ||
         makes_weight_gradients(kind);
}

bool is_in_flight(ActionKind kind) { return describe(kind).has(in_flight); }

bool is_of_a_visit(ActionKind kind) { return describe(kind).has(visit); }

std::optional<Action> transfer_of(const Action& action) {
  const auto [kind, stage, number] = action;
  if (kind == ActionKind::unshard) return Action{ActionKind::gather_transfer, stage, number};
  if (kind == ActionKind::reduce_scatter) {
    return Action{ActionKind::scatter_transfer, stage, number};
  }
  if (kind == ActionKind::all_reduce_start) return Action{ActionKind::all_reduce, stage, number};
  return std::nullopt;
}

Action starter_of(const Action& transfer) {
  const auto [kind, stage, number] = transfer;
  if (kind == ActionKind::gather_transfer) return {ActionKind::unshard, stage, number};
  if (kind == ActionKind::scatter_transfer) return {ActionKind::reduce_scatter, stage, number};
  if (kind == ActionKind::all_reduce) return {ActionKind::all_reduce_start, stage, number};
  throw std::logic_error(to_string(transfer) + " is started by no action");
}

std::optional<Action> awaited_transfer(const Action& action) {
  const auto [kind, stage, number] = action;
  if (kind == ActionKind::unshard_wait) return Action{ActionKind::gather_transfer, stage, number};
  if (kind == ActionKind::gradient_wait) return Action{ActionKind::scatter_transfer, stage, number};
  if (kind == ActionKind::all_reduce_wait) return Action{ActionKind::all_reduce, stage, number};
  return std::nullopt;
}

Action sender_of(const Action& receive) {
  if (receive.kind == ActionKind::receive_activation) {
    return {ActionKind::send_activation, receive.stage - 1, receive.micro_batch};
  }
  if (receive.kind == ActionKind::receive_gradient) {
    return {ActionKind::send_gradient, receive.stage + 1, receive.micro_batch};
  }
  throw std::logic_error(to_string(receive) + " receives nothing");
}

}  // namespace stratagem::schedules
