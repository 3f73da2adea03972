// collectives: times one collective between the ranks, at one message size after another.
//
// Calls are made in batches, one after another and each waited for; a batch lasts long enough for
// the clock, and its time is that of the slowest rank. The result of every batch is checked; for an
// all-reduce, whose calls in place build on each other, that is every call's result. It exceeds a
// float in about a hundred calls: then the buffers are filled again, between timed pieces.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>

#include "bench/timing/message_time.h"
#include "bench/worker/session.h"
#include "bench/worker/timed_run.h"

namespace stratagem::bench {
namespace {

using Clock = std::chrono::steady_clock;
using distributed::ProcessGroup;
using distributed::ReduceScatter;

constexpr int timed_batches = 5;
constexpr std::int64_t most_calls = 1000;

/// Returns small whole numbers, so that sums are exact in any order.
at::Tensor values_of(std::int64_t rank, std::int64_t count, const at::TensorOptions& options) {
  return at::arange(count, options.dtype(at::kInt)).remainder_(7).add_(rank + 1).to(at::kFloat);
}

constexpr std::int64_t any_number = std::numeric_limits<std::int64_t>::max();

/// One collective over buffers of one size.
struct Exchange {
  std::function<void()> fill;  // restores the buffers before the first call
  std::function<void()> call;  // returns when the result may be used
  std::function<at::Tensor()> result;
  at::Tensor expected;                   // result of the first call
  double growth = 1;                     // factor of the result for every further call since `fill`
  std::int64_t most_calls = any_number;  // calls until `fill` is due
};

class Exchanges {
 public:
  Exchanges(ProcessGroup& group, const at::Device& device, std::int64_t bytes)
      : group_(group),
        options_(at::TensorOptions(at::kFloat).device(device)),
        // Every rank's part of the largest buffer has the same size.
        count_(std::max<std::int64_t>(bytes / 4 / group.size(), 1) * group.size()) {}

  Exchange make(const std::string& collective) {
    if (collective == "all_reduce") return all_reduce();
    if (collective == "reduce_scatter") return reduce_scatter(ReduceScatter("exchange"));
    if (collective == "reduce_scatter_library") return reduce_scatter(ReduceScatter("library"));
    if (collective == "all_gather") return all_gather();
    if (collective == "broadcast") return broadcast();
    if (collective == "reduce") return reduce();
    if (collective == "gather") return gather();
    if (collective == "scatter") return scatter();
    if (collective == "all_to_all") return all_to_all();
    if (collective == "rotate") return rotate();
    if (collective == "send") return send();
    throw std::invalid_argument(fmt::format("--collectives: unknown \"{}\"", collective));
  }

 private:
  std::int64_t share() const { return count_ / group_.size(); }
  at::Tensor values(int rank) const { return values_of(rank, count_, options_); }
  at::Tensor sum() const {
    at::Tensor total = at::zeros({count_}, options_);
    for (int rank = 0; rank < group_.size(); ++rank) total += values(rank);
    return total;
  }

  /// Counts sums in place, each times the number of ranks; a float holds 2^127.
  std::int64_t calls_before_overflow() const {
    constexpr double doublings = 100;
    return static_cast<std::int64_t>(doublings / std::log2(std::max(group_.size(), 2)));
  }

  Exchange all_reduce() {
    at::Tensor buffer = at::empty({count_}, options_);
    return {.fill = [buffer, own = values(group_.rank())] { buffer.copy_(own); },
            .call = [this, buffer] { group_.all_reduce(buffer)->wait(); },
            .result = [buffer] { return buffer; },
            .expected = sum(),
            .growth = static_cast<double>(group_.size()),
            .most_calls = calls_before_overflow()};
  }

  Exchange reduce_scatter(ReduceScatter by) {
    at::Tensor input = at::empty({count_}, options_);
    at::Tensor output = at::empty({share()}, options_);
    return {.fill = [input, own = values(group_.rank())] { input.copy_(own); },
            .call = [this, input, output, by] { group_.reduce_scatter(output, input, by)->wait(); },
            .result = [output] { return output; },
            .expected = sum().narrow(0, group_.rank() * share(), share())};
  }

  Exchange all_gather() {
    at::Tensor input = at::empty({share()}, options_);
    at::Tensor output = at::empty({count_}, options_);
    const auto part = [this](int rank) { return values(rank).narrow(0, 0, share()); };
    std::vector<at::Tensor> parts;
    for (int rank = 0; rank < group_.size(); ++rank) parts.push_back(part(rank));
    return {.fill = [input, own = part(group_.rank())] { input.copy_(own); },
            .call = [this, input, output] { group_.all_gather(output, input)->wait(); },
            .result = [output] { return output; },
            .expected = at::cat(parts)};
  }

  Exchange broadcast() {
    at::Tensor buffer = at::empty({count_}, options_);
    return {.fill = [buffer, own = values(group_.rank())] { buffer.copy_(own); },
            .call = [this, buffer] { group_.broadcast(buffer, 0)->wait(); },
            .result = [buffer] { return buffer; },
            .expected = values(0)};
  }

  /// It changes the buffers, on other ranks too: each call has one of its own, and they are filled
  /// again when all have been used.
  Exchange reduce() {
    constexpr std::int64_t most_buffers = 16;
    constexpr std::int64_t most_elements = 8 * 1024 * 1024;  // in all buffers
    const std::int64_t calls = std::clamp<std::int64_t>(most_elements / count_, 1, most_buffers);
    const at::Tensor buffers = at::empty({calls, count_}, options_);
    const at::Tensor own = values(group_.rank());
    const bool root = group_.rank() == 0;
    const auto used = std::make_shared<std::size_t>(0);
    return {.fill =
                [buffers, own, used] {
                  buffers.copy_(own);
                  *used = 0;
                },
            .call = [this, parts = buffers.unbind(),
                     used] { group_.reduce(parts[(*used)++], 0)->wait(); },
            .result =
                [buffers, own, root, used] {
                  return root ? buffers.narrow(0, 0, static_cast<std::int64_t>(*used)) : own;
                },
            .expected = root ? sum() : own,
            .most_calls = calls};
  }

  /// Returns one part of a rank's values.
  at::Tensor part(int of_rank, int part) const {
    return values(of_rank).narrow(0, part * share(), share());
  }

  Exchange gather() {
    const at::Tensor input = part(group_.rank(), 0);
    at::Tensor output = at::empty({count_}, options_);
    std::vector<at::Tensor> parts;
    for (int rank = 0; rank < group_.size(); ++rank) parts.push_back(part(rank, 0));
    const bool root = group_.rank() == 0;
    return {.fill = [output] { output.zero_(); },
            .call = [this, input, output] { group_.gather(output, input, 0)->wait(); },
            .result = [input, output, root] { return root ? output : input; },
            .expected = root ? at::cat(parts) : input};
  }

  Exchange scatter() {
    const at::Tensor input = values(group_.rank());
    at::Tensor output = at::empty({share()}, options_);
    return {.fill = [output] { output.zero_(); },
            .call = [this, input, output] { group_.scatter(output, input, 0)->wait(); },
            .result = [output] { return output; },
            .expected = part(0, group_.rank())};
  }

  Exchange all_to_all() {
    const at::Tensor input = values(group_.rank());
    at::Tensor output = at::empty({count_}, options_);
    std::vector<at::Tensor> parts;
    for (int rank = 0; rank < group_.size(); ++rank) parts.push_back(part(rank, group_.rank()));
    return {.fill = [output] { output.zero_(); },
            .call = [this, input, output] { group_.all_to_all(output, input)->wait(); },
            .result = [output] { return output; },
            .expected = at::cat(parts)};
  }

  Exchange rotate() {
    const at::Tensor input = values(group_.rank());
    at::Tensor output = at::empty({count_}, options_);
    const int previous = (group_.rank() + group_.size() - 1) % group_.size();
    return {.fill = [output] { output.zero_(); },
            .call = [this, input, output] { group_.rotate(output, input)->wait(); },
            .result = [output] { return output; },
            .expected = values(previous)};
  }

  /// Sends there and back between neighbours, so that one end can time a call; counted once.
  Exchange send() {
    at::Tensor buffer = at::empty({count_}, options_);
    at::Tensor returned = at::empty({count_}, options_);
    const int rank = group_.rank();
    const int peer = rank % 2 == 0 ? rank + 1 : rank - 1;
    const bool alone = peer >= group_.size();  // the last of an odd number
    const auto call = [this, buffer, returned, rank, peer, alone] {
      if (alone) return;
      if (rank % 2 == 0) {
        group_.send(buffer, peer)->wait();
        group_.receive(returned, peer)->wait();
      } else {
        group_.receive(buffer, peer)->wait();
        group_.send(buffer, peer)->wait();
      }
    };
    const bool first = rank % 2 == 0 && !alone;
    return {.fill =
                [buffer, returned, own = values(rank)] {
                  buffer.copy_(own);
                  returned.zero_();
                },
            .call = call,
            .result = [buffer, returned, first] { return first ? returned : buffer; },
            .expected = values(alone || rank % 2 == 0 ? rank : peer)};
  }

  ProcessGroup& group_;
  at::TensorOptions options_;
  std::int64_t count_;
};

class CollectiveTiming {
 public:
  CollectiveTiming(const Config& config, const TaskContext& context)
      : context_(context),
        config_(config),
        placement_(placement_of(config)),
        devices_(open_devices(config, placement_, context)),
        groups_(config, placement_, context, devices_.devices) {}

  /// Returns the times; the processor's share is this rank's.
  MessageTimes times_of(const std::string& collective, std::int64_t bytes) {
    MessageTimes times{.bytes = bytes};
    runtime::Device& device = *devices_.devices.front();
    what_ = fmt::format("{} of {} bytes", collective, bytes);
    device.enqueue(runtime::Stream::compute, what_, [&] {
      Exchanges exchanges(*groups_.view().all, backends::torch_device(device.description()), bytes);
      const Exchange exchange = exchanges.make(collective);
      times.wire_bytes = sent_by_a_call(exchange);
      const double once = timed(exchange, 2);
      const auto calls = std::clamp<std::int64_t>(static_cast<std::int64_t>(batch_seconds() / once),
                                                  1, most_calls);
      processor_seconds_ = 0;
      double wall = 0;
      for (int batch = 0; batch < timed_batches; ++batch) {
        const double seconds = timed(exchange, calls);
        wall += seconds * static_cast<double>(calls);
        times.ms.push_back(seconds * 1e3);
      }
      times.processor_share = processor_seconds_ / wall;
    });
    // Allows more than the limit of one action for the batches of a large message.
    device.synchronize(to_milliseconds(config_.timeout) * (timed_batches + 2));
    times.ms = ms_of_a_message(times.ms, collective);
    return times;
  }

 private:
  double batch_seconds() const {
    return std::chrono::duration<double>(context_.calibration.message).count();
  }

  /// Returns the bytes that this rank sends.
  std::int64_t sent_by_a_call(const Exchange& exchange) {
    ProcessGroup& group = *groups_.view().all;
    group.reset_counts();
    timed(exchange, 1);
    std::int64_t sent = 0;
    for (const auto& [collective, count] : group.counts()) sent += count.wire_bytes;
    return sent;
  }

  /// Throws if the result of `calls` calls since the buffers were filled is wrong.
  void check(const Exchange& exchange, std::int64_t calls) const {
    constexpr double rounding = 1e-5;  // for sums that exceed 24 bits
    const double factor = std::pow(exchange.growth, static_cast<double>(calls - 1));
    if (at::allclose(exchange.result(), exchange.expected * factor, rounding, 0)) return;
    throw std::runtime_error(
        fmt::format("{} over {} gives a wrong result on rank {} after {} calls", what_,
                    config_.backend, groups_.rank(), calls));
  }

  /// Returns the slowest rank's seconds a call, without filling and checking the buffers.
  double timed(const Exchange& exchange, std::int64_t calls) {
    double seconds = 0;
    for (std::int64_t left = calls; left > 0;) {
      const std::int64_t now = std::min(left, exchange.most_calls);
      seconds += timed_at_once(exchange, now);
      check(exchange, now);
      left -= now;
    }
    return slowest(context_, seconds) / static_cast<double>(calls);
  }

  double timed_at_once(const Exchange& exchange, std::int64_t calls) {
    exchange.fill();
    groups_.barrier();
    const double processor_before = processor_milliseconds();
    const auto start = Clock::now();
    for (std::int64_t call = 0; call < calls; ++call) exchange.call();
    if (exchange.result().is_cuda()) exchange.result().flatten()[0].item();  // waits
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    processor_seconds_ += (processor_milliseconds() - processor_before) / 1e3;
    return seconds;
  }

  const TaskContext& context_;
  Config config_;
  Placement placement_;
  backends::DeviceGroup devices_;
  JobGroups groups_;
  std::string what_;              // the measured collective and size
  double processor_seconds_ = 0;  // during calls
  AbortOnException abort_on_exception_{groups_};
};

}  // namespace

CollectivesResult collectives(const CollectivesJob& job, const TaskContext& context) {
  CollectiveTiming timing(job.config, context);
  CollectivesResult result;
  for (const std::int64_t bytes : job.bytes) {
    result.messages.push_back(timing.times_of(job.collective, bytes));
  }
  return result;
}

}  // namespace stratagem::bench
