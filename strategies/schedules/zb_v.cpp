// zb_v: zero bubble in the memory of 1f1b. A device has two stages, placed as a V: the first device
// has the first and the last one. An earlier stage holds a micro-batch longer, so that the two
// stages of every device hold equally much: 2 p micro-batches of stages of half the size, like
// 1f1b's first device. From 2 p - 1 micro-batches on no device idles within its own part of the
// step if F, I and W take equally long (ZB-V; Qi et al. 2023, section 6). ScheduleZBVZeroBubble in
// torch.distributed.pipelining has the same order.
#include <algorithm>
#include <initializer_list>
#include <map>
#include <utility>

#include "strategies/schedules/zero_bubble.h"

namespace stratagem::schedules {
namespace {

/// A device's actions, with each kind of each stage in the order of the micro-batches.
class Order {
 public:
  explicit Order(int micro_batches) : micro_batches_(micro_batches) {}

  using Turn = std::pair<ActionKind, int>;  // a kind and a stage

  /// Appends `turns` `times` times, each with its stage's next micro-batch, and skips turns beyond
  /// the last micro-batch.
  void repeat(int times, std::initializer_list<Turn> turns) {
    for (int time = 0; time < times; ++time) {
      for (const Turn& turn : turns) {
        const int micro_batch = next_[turn]++;
        if (micro_batch >= micro_batches_) continue;
        actions_.push_back({turn.first, turn.second, micro_batch});
      }
    }
  }

  std::vector<Action> take() { return std::move(actions_); }

 private:
  int micro_batches_;
  std::map<Turn, int> next_;  // the next micro-batch
  std::vector<Action> actions_;
};

/// Returns the order of the device with `above` devices before it in the V; `below` counts it and
/// the devices after it.
std::vector<Action> order_of(int above, const ScheduleSize& size) {
  const int below = size.devices - above;
  const int down = above;
  const int up = 2 * size.devices - 1 - above;
  const Order::Turn f0{ActionKind::forward, down}, f1{ActionKind::forward, up};
  const Order::Turn i0{ActionKind::backward_input, down}, i1{ActionKind::backward_input, up};
  const Order::Turn w0{ActionKind::backward_weight, down}, w1{ActionKind::backward_weight, up};
  // From 2 p - 1 micro-batches on no device idles; the further ones come on top.
  const int beyond = std::max(0, size.micro_batches - (2 * size.devices - 1));
  Order order(size.micro_batches);
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
  Schedule schedule = empty_schedule("zb_v", size);
  schedule.split_backward = true;
  for (int device = 0; device < size.devices; ++device) {
    schedule.device_of_stage.rbegin()[device] = device;
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
