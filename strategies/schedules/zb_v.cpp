// zb_v: zero bubble in the memory of 1f1b. A device has two stages, placed as a V: the first device
// has the first and the last one. An earlier stage holds a micro-batch longer, so that the two
// stages of every device hold equally much: 2 p micro-batches of stages of half the size, like
// 1f1b's first device. From 2 p - 1 micro-batches on no device idles within its own part of the
// step if F, I and W take equally long (ZB-V; Qi et al. 2023, section 6). ScheduleZBVZeroBubble in
// torch.distributed.pipelining has the same order.
#include <algorithm>

#include "strategies/schedules/v_shape.h"
#include "strategies/schedules/zero_bubble.h"

namespace stratagem::schedules {
namespace {

/// Returns the order of the device with `above` devices before it in the V; `below` counts it and
/// the devices after it.
std::vector<Action> order_of(int above, const ScheduleSize& size) {
  const int below = size.devices - above;
  const auto [down, up] = v_place(above, size);
  using Turn = TurnList::Turn;
  const Turn f0{ActionKind::forward, down}, f1{ActionKind::forward, up};
  const Turn i0{ActionKind::backward_input, down}, i1{ActionKind::backward_input, up};
  const Turn w0{ActionKind::backward_weight, down}, w1{ActionKind::backward_weight, up};
  // From 2 p - 1 micro-batches on no device idles; the further ones come on top.
  const int beyond = std::max(0, size.micro_batches - (2 * size.devices - 1));
  TurnList order(size.micro_batches);
  order.repeat(2 * below - 1, {f0});  // until the first micro-batch reaches the foot
  order.repeat(above, {f1, f0});      // until its first gradient comes from the top
  order.repeat(below, {f1, i1, w1});  // until that gradient reaches the foot
  order.repeat(beyond + above, {f0, i0, w0, f1, i1, w1});
  order.repeat(below - 1, {i0, w0, f1, i1, w1});
  order.repeat(above, {i0, i1});  // the devices above wait for these
  order.repeat(below, {i0, w0});
  order.repeat(above, {w1});
  order.repeat(above, {w0});
  return order.take();
}

Schedule zb_v(const ScheduleSize& size) {
  Schedule schedule = empty_v("zb_v", size);
  for (int device = 0; device < size.devices; ++device) {
    schedule.actions[static_cast<std::size_t>(device)] = order_of(device, size);
  }
  return schedule;
}

double ideal_bubble(const ScheduleSize& size) {
  return bubble_of(std::max(0, 2 * size.devices - 1 - size.micro_batches), size);
}

STRATAGEM_REGISTER(ScheduleEntry{
    "zb_v", "zb_h2 in the memory of 1f1b: two stages a device, placed as a V", zb_v, ideal_bubble,
    /*stages_per_device=*/2});

}  // namespace
}  // namespace stratagem::schedules
