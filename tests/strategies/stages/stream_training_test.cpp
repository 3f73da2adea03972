// Strategies on devices that behave as GPUs do: they train as on CPU devices, bit for bit, and make
// no mistake with streams.
#include "tests/strategies/stream_training.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>

#include "strategies/schedules/registry.h"
#include "tests/strategies/cpu_devices.h"
#include "tests/strategies/rank_training.h"

namespace stratagem::stages::stream_training_test {
namespace {

using runtime::ample;
using strategies::Spread;
using strategies::StateDictionary;
using strategies::StrategyOptions;

struct Case {
  std::string strategy = "pipeline";
  models::WorkloadOptions workload = {};
  int devices = 2;
  StrategyOptions options = {};
  std::vector<std::int64_t> batches = {6, 6, 1, 1, 4, 6};  // samples of each step
};

std::ostream& operator<<(std::ostream& out, const Case& of) {
  const StrategyOptions& options = of.options;
  return out << of.strategy << " of " << of.workload.model << " on " << of.devices << " devices, "
             << (of.strategy == "data_parallel"
                     ? fmt::format("{} {} {} {} {}", options.loss_on, options.replicate,
                                   options.reduce, options.update, options.scatter)
                     : options.schedule)
             << ", inputs " << options.inputs.name();
}

/// What is left of a training: its state, the losses of its steps and of an evaluation.
StateDictionary trained(strategies::Strategy& strategy, const models::Workload& workload,
                        const std::vector<std::int64_t>& batches,
                        const std::function<void()>& after_a_step) {
  std::vector<std::unique_ptr<strategies::PendingStep>> pending;
  for (std::size_t step = 0; step < batches.size(); ++step) {
    pending.push_back(strategy.step(workload.make_batch(step).slice(0, batches[step])));
    after_a_step();
  }
  StateDictionary found = strategy.state();
  for (std::size_t step = 0; step < batches.size(); ++step) {
    found["loss " + std::to_string(step)] = at::scalar_tensor(pending[step]->loss(), at::kDouble);
    for (const auto& entry : pending[step]->execution()) {
      EXPECT_LE(entry.start->time(), entry.end->time()) << to_string(entry.action);
    }
  }
  found["evaluation"] =
      at::scalar_tensor(strategy.evaluate(workload.make_batch(0)).loss, at::kDouble);
  return found;
}

StateDictionary trained(const Case& of, backends::DeviceGroup group, bool one_by_one = false) {
  strategies::Training training(of.workload, std::move(group));
  return trained(training.make(of.strategy, of.options), training.workload, of.batches, [&] {
    if (one_by_one) runtime::synchronize_all(training.group.devices, ample);
  });
}

void expect_same(const StateDictionary& found, const StateDictionary& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (const auto& [name, tensor] : expected)
    EXPECT_TRUE(at::equal(found.at(name), tensor)) << name;
}

/// With steps enqueued back to back, and with streams that run apart.
void expect_equal_to_cpu_devices(const Case& of) {
  SCOPED_TRACE(testing::Message() << of);
  const StateDictionary expected = trained(of, strategies::unpinned_devices(of.devices));
  expect_same(trained(of, runtime::stream_devices_in_order(of.devices)), expected);
  runtime::expect_no_mistakes_with_streams();
  SCOPED_TRACE("streams apart");
  expect_same(trained(of, runtime::stream_devices(of.devices, /*apart=*/true),
                      /*one_by_one=*/true),
              expected);
  runtime::expect_no_mistakes_with_streams();
}

TEST(StreamTraining, EveryScheduleOfAPipeline) {
  using Inputs = decltype(StrategyOptions::inputs);
  const auto mlp = strategies::small_workload("mlp", 6);
  for (const std::string& schedule : schedules::schedule_names()) {
    for (const Inputs inputs : {Inputs("host"), Inputs("device")}) {
      expect_equal_to_cpu_devices(
          {.workload = mlp, .options = {.split_size = 2, .schedule = schedule, .inputs = inputs}});
    }
  }
  const auto resnet = strategies::small_workload("resnet18", 6);
  expect_equal_to_cpu_devices({.workload = resnet, .devices = 3, .options = {.split_size = 2}});
  expect_equal_to_cpu_devices({.strategy = "model_parallel", .workload = resnet});
}

TEST(StreamTraining, ClippedByTheNormOfAllStages) {
  auto workload = strategies::small_workload("mlp", 6);
  workload.optimizer.clip_norm = 0.1;
  expect_equal_to_cpu_devices({.workload = workload, .devices = 3, .options = {.split_size = 2}});
  expect_equal_to_cpu_devices({.strategy = "data_parallel", .workload = workload, .devices = 3});
}

TEST(StreamTraining, DataParallelAndWhatLiesBetweenItAndDdp) {
  constexpr double a_bucket_a_layer = 1e-6;
  std::vector<StrategyOptions> ladder{{.bucket_mb = a_bucket_a_layer}};
  const auto next = [&]() -> StrategyOptions& { return ladder.emplace_back(ladder.back()); };
  next().loss_on = "replicas";
  next().replicate = "kept";
  next().reduce = "overlapped";
  next().update = "everywhere";
  next().scatter = "host";
  ladder.push_back({.output_device = 2});
  ladder.push_back({.inputs = "device"});
  ladder.push_back({.bucket_mb = a_bucket_a_layer, .replicate = "kept", .update = "everywhere"});
  for (const StrategyOptions& options : ladder) {
    // The last rung has all of the others' copies, of buffers and of many layers, too.
    const bool last_rung = options.scatter == "host";
    const bool by_itself = options.bucket_mb != a_bucket_a_layer;
    for (const char* model : {"toy", "resnet18"}) {
      if (model == std::string("resnet18") && !last_rung && !by_itself) continue;
      expect_equal_to_cpu_devices({.strategy = "data_parallel",
                                   .workload = strategies::small_workload(model, 6),
                                   .devices = 3,
                                   .options = options});
    }
  }
}

struct RankCase {
  std::string strategy;
  Spread spread;
  StrategyOptions options = {.split_size = 2, .bucket_mb = 0.01};
  std::string model = "resnet18";
};

/// [rank]
std::vector<StateDictionary> trained(RankCase of) {
  auto workload = strategies::small_workload(of.model, 8);
  std::vector<StateDictionary> all(static_cast<std::size_t>(of.spread.ranks()));
  runtime::on_ranks(of.spread.ranks(), [&](distributed::RankContext& ranks) {
    strategies::RankTraining training(ranks, workload, of.spread);
    training.strategy =
        strategies::find_strategy(of.strategy).make(training.rank_context(of.options));
    all[static_cast<std::size_t>(training.rank)] =
        trained(*training.strategy, training.workload, {8, 8, 5, 8}, [] {});
  });
  return all;
}

TEST(StreamTraining, RanksWithReplicasAndMailboxes) {
  for (const RankCase& of : std::vector<RankCase>{
           {"ddp", {.replicas = 2}},
           {"pipeline", {.pipeline_ranks = 2, .devices_per_rank = 2}},
           {"ddp_model_parallel", {.replicas = 2, .devices_per_rank = 2}},
       }) {
    const auto expected = trained(of);
    for (const bool in_order : {false, true}) {
      SCOPED_TRACE(of.strategy + (in_order ? ", in order" : ""));
      RankCase own = of;
      own.spread.in_order = in_order;
      own.spread.devices = runtime::stream_devices_in_order;
      const auto found = trained(own);
      for (std::size_t rank = 0; rank < found.size(); ++rank) {
        expect_same(found[rank], expected[rank]);
      }
      runtime::expect_no_mistakes_with_streams();
    }
  }
}

/// What a copy reads of memory that its stream frees, and asks for again, meanwhile.
double read_of_freed_memory(bool marks) {
  using runtime::Stream;
  const backends::DeviceGroup group = runtime::stream_devices(1, /*apart=*/true);
  runtime::Device& device = *group.devices.front();
  at::Tensor made;
  at::Tensor next;
  at::Tensor copy;
  std::atomic<bool> reading{false};
  std::atomic<bool> overwritten{false};
  device.enqueue(Stream::compute, "make", [&] { made = at::ones({100}); });
  device.wait(Stream::copy, device.record(Stream::compute));
  device.enqueue(Stream::copy, "copy", [&] {
    if (marks) backends::mark_used(made);
    const at::Tensor seen = at::from_blob(made.data_ptr(), made.sizes(), made.options());
    reading = true;
    while (!overwritten) std::this_thread::yield();
    copy = seen.clone();
  });
  device.enqueue(Stream::compute, "free", [&] {
    while (!reading) std::this_thread::yield();
    made.reset();
    next = at::full({100}, 7.0F);
    overwritten = true;
  });
  device.synchronize(ample);
  return copy[0].item<double>();
}

TEST(StreamTraining, MarkedMemoryIsKeptAndOtherIsGivenAway) {
  EXPECT_EQ(read_of_freed_memory(/*marks=*/true), 1);
  runtime::expect_no_mistakes_with_streams();
  EXPECT_EQ(read_of_freed_memory(/*marks=*/false), 7);
  EXPECT_FALSE(runtime::stream_memory().take_reports().empty());
}

TEST(StreamTraining, AMissingEventRecordOrGuardIsReported) {
  using runtime::Stream;
  using ::testing::Contains;
  using ::testing::HasSubstr;
  const backends::DeviceGroup group = runtime::stream_devices_in_order(2);
  at::Tensor made;
  const auto make = [&] {
    group.devices[0]->enqueue(Stream::compute, "make", [&] { made = at::ones({4, 4}); });
  };
  const auto run = [&](int device, Stream stream, bool waits, std::function<void()> work) {
    make();
    const auto event = group.devices[0]->record(Stream::compute);
    auto& other = *group.devices[static_cast<std::size_t>(device)];
    if (waits) other.wait(stream, event);
    other.enqueue(stream, "use", [event, work = std::move(work)] {
      while (!event->complete()) std::this_thread::yield();
      work();
    });
    runtime::synchronize_all(group.devices, ample);
    return runtime::stream_memory().take_reports();
  };
  const auto copy = [&] { made = backends::copy_to(made, group.devices[1]->description()); };
  EXPECT_THAT(run(1, Stream::copy, true, copy), ::testing::IsEmpty());
  EXPECT_THAT(run(1, Stream::copy, false, copy),
              Contains(HasSubstr("aten::clone on cpu:1 copy uses the result of aten::fill_ of "
                                 "cpu:0 compute, and has waited for no event")));
  EXPECT_THAT(run(0, Stream::copy, true, [&] { made = made.clone(); }),
              Contains(HasSubstr("memory of cpu:0 compute was freed while aten::copy_ of cpu:0 "
                                 "copy may use it")));
  EXPECT_THAT(run(1, Stream::compute, true, [&] { made.add_(1); }),
              Contains("aten::add_ on cpu:1 compute works on memory of cpu:0 compute"));
}

TEST(StreamTraining, AForwardPassThatWaitsForNoCopyIsReported) {
  const Case pipeline{.workload = strategies::small_workload("mlp", 6),
                      .options = {.split_size = 2}};
  trained(pipeline, runtime::stream_devices(2, /*apart=*/false, nullptr, /*forgets_copies=*/true));
  EXPECT_THAT(runtime::stream_memory().take_reports(),
              ::testing::Contains(::testing::HasSubstr("and has waited for no event")));
}

}  // namespace
}  // namespace stratagem::stages::stream_training_test
