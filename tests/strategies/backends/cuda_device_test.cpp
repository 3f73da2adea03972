// What devices on GPUs must do beyond device_test.cpp: with two GPUs, and with kernels that go on
// when the host does not wait.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>

#include "strategies/backends/backend.h"

namespace stratagem::backends::cuda_device_test {
namespace {

using ::testing::HasSubstr;

constexpr std::chrono::milliseconds ample{60'000};

DeviceGroup devices_on(std::vector<int> ordinals) {
  DeviceGroupOptions options;
  options.kind = runtime::DeviceKind::cuda;
  options.ordinals = std::move(ordinals);
  return make_device_group(options);
}

std::string timeout_of(runtime::Device& device, std::chrono::milliseconds limit) {
  try {
    device.synchronize(limit);
  } catch (const runtime::DeviceTimeout& error) {
    return error.what();
  }
  return {};
}

/// Keeps the calling thread's device busy for some hundredths of a second, and not the thread.
void keep_busy(const runtime::DeviceDescription& device) {
  at::Tensor matrix = at::full({4096, 4096}, 1e-4, at::TensorOptions(torch_device(device)));
  for (int product = 0; product < 20; ++product) matrix = at::mm(matrix, matrix);
}

/// Frees a tensor of `owner` while `reader` has still to read it, and overwrites the memory that
/// the owner is given next. What was read.
at::Tensor read_what_is_freed(runtime::Device& owner, runtime::Device& reader,
                              runtime::Stream stream) {
  constexpr std::int64_t size = std::int64_t{1} << 20;
  const at::TensorOptions options(torch_device(owner.description()));
  at::Tensor made;
  at::Tensor read;
  at::Tensor next;
  std::atomic<bool> read_is_launched{false};
  owner.enqueue(runtime::Stream::compute, "make", [&] { made = at::full({size}, 1.0, options); });
  reader.wait(stream, owner.record(runtime::Stream::compute));
  reader.enqueue(stream, "read", [&] {
    keep_busy(reader.description());
    read = copy_to(made, reader.description());
    read_is_launched = true;
  });
  owner.enqueue(runtime::Stream::compute, "overwrite", [&] {
    while (!read_is_launched) std::this_thread::yield();
    made.reset();
    next = at::full({size}, 2.0, options);
  });
  reader.synchronize(ample);
  owner.synchronize(ample);
  return read.cpu();
}

/// Devices that share no GPU.
class TwoGpus : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() < 2) GTEST_SKIP() << "needs a GPU for each of two devices";
    group = devices_on({0, 1});
  }

  runtime::Device& first() { return *group.devices[0]; }
  runtime::Device& second() { return *group.devices[1]; }

  DeviceGroup group;
};

TEST_F(TwoGpus, ACopyWaitsForTheEventOfTheOtherGpu) {
  const at::Tensor expected =
      at::randn({8, 3, 64, 64}).contiguous(at::MemoryFormat::ChannelsLast) * 2;
  at::Tensor made;
  at::Tensor copy;
  at::Tensor returned;
  first().enqueue(runtime::Stream::compute, "make", [&] {
    const at::Tensor source = expected.to(torch_device(first().description()));
    made = at::zeros_like(source);
    keep_busy(first().description());
    made.copy_(source);
  });
  second().wait(runtime::Stream::copy, first().record(runtime::Stream::compute));
  second().enqueue(runtime::Stream::copy, "there",
                   [&] { copy = copy_to(made, second().description()); });
  first().wait(runtime::Stream::compute, second().record(runtime::Stream::copy));
  first().enqueue(runtime::Stream::compute, "back",
                  [&] { returned = copy_to(copy, first().description()); });
  runtime::synchronize_all(group.devices, ample);
  EXPECT_EQ(copy.device(), torch_device(second().description()));
  EXPECT_EQ(copy.strides(), expected.strides());
  EXPECT_TRUE(at::equal(copy.cpu(), expected));
  EXPECT_TRUE(at::equal(returned.cpu(), expected));
}

TEST_F(TwoGpus, MemoryIsKeptForTheOtherGpuThatStillReadsIt) {
  for (const auto stream : {runtime::Stream::compute, runtime::Stream::copy}) {
    const at::Tensor read = read_what_is_freed(first(), second(), stream);
    EXPECT_TRUE(at::equal(read, at::ones_like(read)));
  }
}

TEST(CudaDevice, MemoryIsKeptForAStreamThatStillReadsIt) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "needs a GPU";
  const DeviceGroup group = devices_on({0});
  const at::Tensor read =
      read_what_is_freed(*group.devices[0], *group.devices[0], runtime::Stream::copy);
  EXPECT_TRUE(at::equal(read, at::ones_like(read)));
}

TEST(CudaDevice, KernelsThatTakeTooLongAreATimeoutOfTheGroup) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "needs a GPU";
  const DeviceGroup group = devices_on({0, 0});
  const auto enqueue = [&](int times) {
    group.devices[0]->enqueue_timed(runtime::Stream::compute, "0F0", [&group, times] {
      for (int time = 0; time < times; ++time) keep_busy(group.devices[0]->description());
    });
  };
  enqueue(1);  // loads the kernels
  group.devices[0]->synchronize(ample);
  enqueue(20);  // as many launches as do not make the thread wait
  const std::string message = timeout_of(*group.devices[0], std::chrono::milliseconds(100));
  EXPECT_THAT(message, HasSubstr("cuda:0 has been in the kernels of 0F0"));
  EXPECT_EQ(timeout_of(*group.devices[1], ample), message);
}

TEST(CudaDevice, AGpuThatDoesNotExistIsRefusedInOneLine) {
  try {
    devices_on({cuda_device_count()});
    FAIL() << "accepted";
  } catch (const std::invalid_argument& error) {
    const std::string message = error.what();
    EXPECT_THAT(message, HasSubstr("--device"));
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace stratagem::backends::cuda_device_test
