// What every kind of device must do, for each backend that can be used here.
#include "strategies/runtime/device.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <thread>

#include "models/cpu_kernels/reference_kernels.h"
#include "strategies/backends/backend.h"
#include "strategies/backends/memory_accounting.h"
#include "strategies/runtime/cpu_device.h"
#include "tests/strategies/accounting.h"
#include "tests/strategies/cpu_devices.h"
#include "tests/strategies/stream_training.h"

namespace stratagem::backends::device_test {
namespace {

using ::testing::HasSubstr;

constexpr std::chrono::milliseconds ample{60'000};
constexpr std::int64_t mebibyte = std::int64_t{1} << 20;

void sleep_ms(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

/// The cores that this process may use, in order.
std::vector<int> allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof(set), &set);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(static_cast<std::size_t>(core), &set)) cores.push_back(core);
  }
  return cores;
}

/// Two devices that pin to the cores there are, or share the first GPU.
DeviceGroup two_devices(runtime::DeviceKind kind, runtime::ProgressPage* activity = nullptr) {
  DeviceGroupOptions options;
  options.kind = kind;
  options.activity = activity;
  const auto cores = allowed_cores();
  options.cores = {{cores.front()}, {cores.back()}};
  options.ordinals = {0, 0};
  return make_device_group(options);
}

template <class Error = std::exception>
std::string failure_of(runtime::Device& device, std::chrono::milliseconds limit = ample) {
  try {
    device.synchronize(limit);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

/// What is held to be a device; the last stands in for GPUs in other tests.
enum class Tested { cpu, cuda, streams };

class EveryDevice : public ::testing::TestWithParam<Tested> {
 protected:
  void SetUp() override {
    if (is_cuda() && cuda_device_count() == 0) GTEST_SKIP() << "needs a GPU";
    group = two_of_this_kind();
  }

  static bool is_cuda() { return GetParam() == Tested::cuda; }

  static DeviceGroup two_of_this_kind(runtime::ProgressPage* activity = nullptr) {
    if (GetParam() == Tested::streams) {
      return runtime::stream_devices(2, /*apart=*/true, activity);
    }
    return two_devices(is_cuda() ? runtime::DeviceKind::cuda : runtime::DeviceKind::cpu, activity);
  }

  runtime::Device& first() { return *group.devices[0]; }
  runtime::Device& second() { return *group.devices[1]; }

  void run(runtime::Device& device, const std::function<void()>& work) {
    device.enqueue(runtime::Stream::compute, "work", work);
    device.synchronize(ample);
  }

  at::Tensor ones(std::vector<std::int64_t> sizes, const runtime::Device& device) {
    return at::ones(sizes, at::TensorOptions(torch_device(device.description())));
  }

  DeviceGroup group;
};

TEST_P(EveryDevice, IsNamedByKindAndPosition) {
  if (!is_cuda()) {
    EXPECT_EQ(first().description().name(), "cpu:0");
    EXPECT_EQ(second().description().name(), "cpu:1");
  } else {
    EXPECT_EQ(second().description().name(), "cuda:0");
    EXPECT_TRUE(second().description().separate_copy_stream);
  }
  EXPECT_EQ(second().description().index, 1);
}

TEST_P(EveryDevice, RunsOneStreamInOrder) {
  std::vector<int> order;
  for (int i = 0; i < 50; ++i)
    first().enqueue(runtime::Stream::compute, "work", [&, i] { order.push_back(i); });
  first().synchronize(ample);
  ASSERT_EQ(order.size(), 50U);
  EXPECT_TRUE(std::ranges::is_sorted(order));
}

TEST_P(EveryDevice, EnqueueReturnsAtOnce) {
  std::atomic<bool> may_go{false};
  first().enqueue(runtime::Stream::compute, "gate", [&] {
    while (!may_go) std::this_thread::yield();
  });
  const runtime::EventPointer event = first().record(runtime::Stream::compute);
  EXPECT_FALSE(event->complete());
  may_go = true;
  first().synchronize(ample);
  EXPECT_TRUE(event->complete());
}

TEST_P(EveryDevice, TheHostWaitsForAnEventAndNotForWhatIsBehindIt) {
  std::atomic<bool> may_go{false};
  first().enqueue(runtime::Stream::compute, "work", [] {});
  const runtime::EventPointer event = first().record(runtime::Stream::compute);
  first().enqueue(runtime::Stream::compute, "gate", [&] {
    while (!may_go) std::this_thread::yield();
  });
  first().wait_on_host(*event, ample);
  EXPECT_TRUE(event->complete());
  const runtime::EventPointer behind = first().record(runtime::Stream::compute);
  EXPECT_THROW(first().wait_on_host(*behind, std::chrono::milliseconds(40)),
               runtime::DeviceTimeout);
  may_go = true;
  EXPECT_THROW(first().synchronize(ample), runtime::DeviceTimeout);  // it keeps the failure
}

TEST_P(EveryDevice, DevicesWorkAtTheSameTime) {
  // Each waits for the other inside its work: one after the other they would never end.
  std::atomic<int> inside{0};
  const auto meet = [&] {
    ++inside;
    while (inside < 2) std::this_thread::yield();
  };
  first().enqueue(runtime::Stream::compute, "meet", meet);
  second().enqueue(runtime::Stream::compute, "meet", meet);
  runtime::synchronize_all(group.devices, ample);
  EXPECT_EQ(inside, 2);
}

TEST_P(EveryDevice, EventsStampTheOrderOfWork) {
  const auto before = std::chrono::steady_clock::now();
  const runtime::EventPointer start = first().record(runtime::Stream::compute);
  at::Tensor sum;
  first().enqueue(runtime::Stream::compute, "work", [&] {
    const at::Tensor a = ones({512, 512}, first());
    sum = at::mm(a, a).sum();
    if (!is_cuda()) sleep_ms(5);
  });
  const runtime::EventPointer end = first().record(runtime::Stream::compute);
  first().synchronize(ample);
  EXPECT_TRUE(start->complete() && end->complete());
  EXPECT_LT(start->time(), end->time());
  // A GPU's clock is tied to the host's at one moment only.
  const std::chrono::milliseconds slack(is_cuda() ? 20 : 0);
  EXPECT_GE(start->time() + slack, before);
  EXPECT_LE(end->time() - slack, std::chrono::steady_clock::now());
}

/// Returns true if an event, recorded after the clocks were synchronised, lies between readings of
/// the host's clock, to 1 ms.
bool lies_between_readings(runtime::Device& device) {
  constexpr std::chrono::milliseconds tolerance{1};  // of a GPU's clock
  device.synchronize_clock();
  const auto before = std::chrono::steady_clock::now();
  const auto event = device.record(runtime::Stream::compute);
  device.synchronize(ample);
  return event->time() >= before - tolerance &&
         event->time() <= std::chrono::steady_clock::now() + tolerance;
}

TEST_P(EveryDevice, EventsLieBetweenReadingsOfTheHostsClock) {
  // A GPU that other processes use may delay one synchronisation of the clocks, but not all.
  const int attempts = is_cuda() ? 10 : 1;
  for (int time = 0; time < 2; ++time) {
    bool found = false;
    for (int attempt = 0; attempt < attempts && !found; ++attempt) {
      found = lies_between_readings(first());
    }
    EXPECT_TRUE(found);
  }
}

TEST_P(EveryDevice, AnEndStampLiesBehindWhatItWaitsFor) {
  const auto stamps = first().make_end_stamps();
  runtime::EventPointer last;
  const runtime::EventPointer end = stamps->stamp_behind([&] {
    sleep_ms(1);
    last = first().stamp();
  });
  first().synchronize(ample);
  ASSERT_NE(last, nullptr);
  EXPECT_LE(last->time(), end->time());
}

TEST_P(EveryDevice, WaitsForAnEventOfAnotherDevice) {
  at::Tensor made;
  at::Tensor copy;
  first().enqueue(runtime::Stream::compute, "make", [&] {
    sleep_ms(50);
    made = ones({1000}, first()) * 3;
  });
  second().wait(runtime::Stream::compute, first().record(runtime::Stream::compute));
  second().enqueue(runtime::Stream::compute, "copy",
                   [&] { copy = copy_to(made, second().description()); });
  runtime::synchronize_all(group.devices, ample);
  EXPECT_EQ(copy.sum().item<double>(), 3000);
}

TEST_P(EveryDevice, StreamsOfOneDeviceAreOrderedByEvents) {
  at::Tensor made;
  at::Tensor copy;
  first().enqueue(runtime::Stream::compute, "make", [&] { made = ones({1 << 20}, first()) * 2; });
  first().wait(runtime::Stream::copy, first().record(runtime::Stream::compute));
  first().enqueue(runtime::Stream::copy, "copy",
                  [&] { copy = copy_to(made, first().description()); });
  first().synchronize(ample);
  EXPECT_EQ(copy.sum().item<double>(), 2.0 * (1 << 20));
}

TEST_P(EveryDevice, AnErrorNamesDeviceAndWorkAndStopsTheGroup) {
  std::atomic<bool> ran{false};
  first().enqueue(runtime::Stream::compute, "0F3",
                  [] { throw std::runtime_error("no memory left"); });
  second().wait(runtime::Stream::compute, first().record(runtime::Stream::compute));
  second().enqueue(runtime::Stream::compute, "1F3", [&] { ran = true; });
  const std::string expected = first().description().name() + ", action 0F3: no memory left";
  EXPECT_EQ(failure_of(second()), expected);
  EXPECT_EQ(failure_of(first()), expected);
  EXPECT_FALSE(ran);
}

TEST_P(EveryDevice, AnErrorOfLibTorchIsOneLine) {
  first().enqueue(runtime::Stream::compute, "0F0", [&] {
    at::mm(ones({2, 3}, first()), ones({2, 3}, first()));
  });
  const std::string message = failure_of(first());
  EXPECT_THAT(message, HasSubstr("action 0F0: mat1 and mat2 shapes cannot be multiplied"));
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

TEST_P(EveryDevice, AnOverrunIsATimeoutThatNamesTheWork) {
  const auto held = std::make_shared<runtime::HeldWork>();
  first().enqueue(runtime::Stream::compute, "0B2", [held] { (*held)(); });
  EXPECT_THAT(failure_of<runtime::DeviceTimeout>(first(), std::chrono::milliseconds(200)),
              HasSubstr(first().description().name() + " has been in 0B2 for more than 0.2 s"));
  held->release();
}

TEST_P(EveryDevice, ShowsItsWorkOnThePage) {
  runtime::ProgressPage page;
  const DeviceGroup shown = two_of_this_kind(&page);
  shown.devices[1]->enqueue(runtime::Stream::compute, "1F7", [] {});
  shown.devices[1]->record(runtime::Stream::compute);
  shown.devices[1]->synchronize(ample);
  EXPECT_EQ(page.read(1), "1F7");
}

TEST_P(EveryDevice, ACopyIsNewMemoryOfTheSameLayoutAndDetached) {
  const at::Tensor image =
      at::randn({2, 3, 4, 5}).contiguous(at::MemoryFormat::ChannelsLast).requires_grad_(true);
  const at::Tensor source = image * 2;
  at::Tensor copy;
  run(first(), [&] { copy = copy_to(source, first().description()); });
  EXPECT_EQ(copy.device(), torch_device(first().description()));
  EXPECT_EQ(copy.strides(), source.strides());
  EXPECT_TRUE(copy.is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_FALSE(copy.requires_grad());
  EXPECT_NE(copy.data_ptr(), source.data_ptr());
  EXPECT_TRUE(at::equal(copy.cpu(), source.detach()));

  at::Tensor again;
  run(second(), [&] { again = copy_to(copy, second().description()); });
  EXPECT_NE(again.data_ptr(), copy.data_ptr()) << "also between devices of one kind";
  EXPECT_TRUE(at::equal(again.cpu(), source.detach()));
}

TEST_P(EveryDevice, CountsItsMemory) {
  at::Tensor kept;
  const auto before = first().memory();
  run(first(), [&] {
    kept = ones({2 * mebibyte}, first());               // 8 MiB
    const at::Tensor gone = ones({mebibyte}, first());  // 4 MiB more for a while
  });
  EXPECT_EQ(first().memory().current_bytes - before.current_bytes, 8 * mebibyte);
  EXPECT_GE(first().memory().peak_bytes - before.current_bytes, 12 * mebibyte);
  first().reset_peak_memory();
  EXPECT_EQ(first().memory().peak_bytes, first().memory().current_bytes);
  kept.reset();
  EXPECT_EQ(first().memory().current_bytes, before.current_bytes);
  EXPECT_GE(first().memory().peak_bytes - before.current_bytes, 8 * mebibyte);
}

INSTANTIATE_TEST_SUITE_P(Backends, EveryDevice,
                         ::testing::Values(Tested::cpu, Tested::cuda, Tested::streams),
                         [](const auto& test) {
                           if (test.param == Tested::streams) return "streams";
                           return test.param == Tested::cpu ? "cpu" : "cuda";
                         });

TEST(CpuDevice, MemoryIsChargedToTheDeviceThatAllocatesWhoeverFreesIt) {
  const DeviceGroup group = two_devices(runtime::DeviceKind::cpu);
  runtime::Device& maker = *group.devices[0];
  runtime::Device& user = *group.devices[1];
  const auto maker_before = maker.memory().current_bytes;
  const auto user_before = user.memory().current_bytes;
  const auto host_before = memory_of(host_account).current_bytes;
  at::Tensor block;
  maker.enqueue(runtime::Stream::compute, "make", [&] { block = at::ones({mebibyte}); });
  maker.synchronize(ample);
  EXPECT_EQ(maker.memory().current_bytes - maker_before, 4 * mebibyte);
  EXPECT_EQ(user.memory().current_bytes, user_before);
  user.enqueue(runtime::Stream::compute, "free", [&] { block.reset(); });
  user.synchronize(ample);
  EXPECT_EQ(maker.memory().current_bytes, maker_before);
  EXPECT_EQ(user.memory().current_bytes, user_before);
  EXPECT_EQ(memory_of(host_account).current_bytes, host_before);
}

TEST(CpuDevice, HasAnAccountOfItsOwnHoweverManyThereAre) {
  const auto monitor = std::make_shared<runtime::Monitor>();
  std::vector<std::unique_ptr<runtime::Device>> devices;
  for (const int index : {0, 62, 63, runtime::most_devices - 1}) {
    runtime::DeviceDescription description;
    description.index = index;
    devices.push_back(make_cpu_device(description, monitor, nullptr));
  }
  std::vector<at::Tensor> blocks(devices.size());
  for (std::size_t index = 0; index < devices.size(); ++index) {
    const auto before = devices[index]->memory().current_bytes;
    const auto size = mebibyte * static_cast<std::int64_t>(index + 1);
    devices[index]->enqueue(runtime::Stream::compute, "make",
                            [&, index] { blocks[index] = at::ones({size}); });
    devices[index]->synchronize(ample);
    EXPECT_EQ(devices[index]->memory().current_bytes - before, 4 * size);
  }
  for (const int index : {-1, runtime::most_devices}) {
    runtime::DeviceDescription description;
    description.index = index;
    try {
      make_cpu_device(description, monitor, nullptr);
      ADD_FAILURE() << "accepted: " << index;
    } catch (const std::invalid_argument& error) {
      EXPECT_STREQ(error.what(),
                   fmt::format("cpu:{}: a process has at most 1024 devices", index).c_str());
    }
  }
  EXPECT_THROW(use_account(memory_accounts), std::out_of_range);
  EXPECT_THROW(memory_of(-1), std::out_of_range);
}

TEST(CpuDevice, ThreadsOfTheHostAreChargedToIt) {
  const auto before = memory_of(host_account).current_bytes;
  const at::Tensor block = at::ones({mebibyte});
  EXPECT_EQ(memory_of(host_account).current_bytes - before, 4 * mebibyte);
}

TEST(CpuDevice, IsPinnedToItsCores) {
  const DeviceGroup group = two_devices(runtime::DeviceKind::cpu);
  for (const auto& device : group.devices) {
    std::vector<int> cores;
    device->enqueue(runtime::Stream::compute, "look", [&] { cores = allowed_cores(); });
    device->synchronize(ample);
    EXPECT_EQ(cores, device->description().cores) << device->description().name();
  }
  EXPECT_GE(allowed_cores().size(), group.devices[0]->description().cores.size())
      << "this thread itself stays where it was";
}

TEST(CpuDevice, ComputesWithAsManyThreadsAsItHasCores) {
  const auto cores = allowed_cores();
  const int host_threads = at::get_num_threads();
  DeviceGroupOptions options;
  options.cores = {{cores.front()}, cores};
  const DeviceGroup group = make_device_group(options);
  for (const auto& device : group.devices) {
    int threads = 0;
    std::vector<int> mask;
    device->enqueue(runtime::Stream::compute, "look", [&] {
      threads = at::get_num_threads();
      mask = allowed_cores();
    });
    device->synchronize(ample);
    EXPECT_EQ(threads, static_cast<int>(device->description().cores.size()));
    EXPECT_EQ(mask, device->description().cores);
  }
  EXPECT_EQ(at::get_num_threads(), host_threads);
}

TEST(CpuDevice, ComputesByTheKernelsThatItWasMadeWith) {
  for (const bool reference : {false, true}) {
    DeviceGroupOptions options;
    options.cores = {{allowed_cores().front()}};
    options.reference_kernels = reference;
    const DeviceGroup group = make_device_group(options);
    bool found = !reference;
    group.devices[0]->enqueue(runtime::Stream::compute, "look",
                              [&] { found = models::uses_reference_kernels(); });
    group.devices[0]->synchronize(ample);
    EXPECT_EQ(found, reference);
  }
  EXPECT_FALSE(models::uses_reference_kernels()) << "this thread itself";
}

TEST(CpuDevice, ACoreThatDoesNotExistIsAnError) {
  DeviceGroupOptions options;
  options.cores = {{CPU_SETSIZE - 1}};
  const DeviceGroup group = make_device_group(options);
  EXPECT_THAT(failure_of(*group.devices[0]),
              HasSubstr("cpu:0, action start: cannot pin a thread to core " +
                        std::to_string(CPU_SETSIZE - 1)));
}

}  // namespace
}  // namespace stratagem::backends::device_test
