// dual_pipe_v: two stages a device, placed as a V, and from 2 p micro-batches on a steady state in
// which a forward pass of one stage follows a backward pass of the other, so that the transfers of
// one overlap the other (DualPipeV, the half of DualPipe; DeepSeek-AI 2024, "DeepSeek-V3 Technical
// Report", section 3.2.1, and the README of github.com/deepseek-ai/DualPipe). A device of p idles
// (p - 1)(F + I - W) with the passes of its half stages, and holds 2 p + 1 micro-batches of them at
// most. ScheduleDualPipeV in torch.distributed.pipelining has the same order.
#include <algorithm>

#include "strategies/schedules/v_shape.h"

namespace stratagem::schedules {
namespace {

std::vector<Action> order_of(int device, const ScheduleSize& size) {
  using Turn = TurnList::Turn;
  const auto [down, up] = v_place(device, size);
  const Turn f0{ActionKind::forward, down}, f1{ActionKind::forward, up};
  const Turn i0{ActionKind::backward_input, down}, i1{ActionKind::backward_input, up};
  const Turn w0{ActionKind::backward_weight, down}, w1{ActionKind::backward_weight, up};
  const int after = size.devices - 1 - device;
  const int upto = device + 1;
  const int beyond = std::max(0, size.micro_batches - 2 * size.devices);
  TurnList order(size.micro_batches);
  order.repeat(2 * after, {f0});
  order.repeat(upto, {f0, f1});
  order.repeat(after, {i1, w1, f1});
  order.repeat(beyond + upto, {f0, i1, w1, f1, i0, w0});
  order.repeat(after, {i1, w1, f1, i0, w0});
  std::vector<Turn> owed;  // weight gradients that fill the gaps at the end
  for (int turn = 0; turn < 2 * upto; ++turn) {
    const bool is_up = turn % 2 == 0;
    order.repeat(1, {is_up ? i1 : i0});
    if (turn < upto) {
      order.repeat(1, {is_up ? w1 : w0});
    } else {
      owed.push_back(is_up ? w1 : w0);
    }
  }
  for (int gap = 0; gap < after; ++gap) {
    order.repeat(1, {owed[static_cast<std::size_t>(gap)], i0});
    owed.push_back(w0);
  }
  for (std::size_t left = static_cast<std::size_t>(after); left < owed.size(); ++left) {
    order.repeat(1, {owed[left]});
  }
  return order.take();
}

Schedule dual_pipe_v(const ScheduleSize& size) {
  Schedule schedule = empty_v("dual_pipe_v", size);
  for (int device = 0; device < size.devices; ++device) {
    schedule.actions[static_cast<std::size_t>(device)] = order_of(device, size);
  }
  return schedule;
}

STRATAGEM_REGISTER(ScheduleEntry{
    "dual_pipe_v", "alternates forward and backward passes of two stages a device, as a V",
    dual_pipe_v, [](const ScheduleSize& size) { return simulated_bubble(dual_pipe_v(size)); },
    /*stages_per_device=*/2});

}  // namespace
}  // namespace stratagem::schedules
