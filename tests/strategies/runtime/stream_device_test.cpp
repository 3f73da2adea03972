// The devices that stand in for GPUs: that they run apart as streams do, and notice mistakes.
#include "tests/strategies/stream_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <vector>

#include "tests/strategies/cpu_devices.h"
#include "tests/strategies/stream_memory.h"

namespace stratagem::runtime::stream_device_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// One whose streams' work is run by one thread, in the order of the calls.
std::unique_ptr<Device> device_in_order(const std::shared_ptr<Monitor>& monitor) {
  DeviceDescription description;
  description.separate_copy_stream = true;
  StreamDevice::Options options;
  options.apart = false;
  return std::make_unique<StreamDevice>(description, monitor, std::move(options));
}

TEST(StreamDevice, StreamsRunApart) {
  StreamDevices devices(1);
  std::atomic<bool> copied{false};
  devices[0].enqueue(Stream::compute, "0F0", [&] {
    while (!copied) std::this_thread::yield();
  });
  devices[0].enqueue(Stream::copy, "1CF0", [&] { copied = true; });
  devices[0].synchronize(ample);
}

TEST(StreamDevice, AWaitHoldsItsStreamAlone) {
  StreamDevices devices(2);
  std::atomic<bool> may_go{false};
  std::atomic<bool> copied{false};
  devices[1].enqueue(Stream::compute, "gate", [&] {
    while (!may_go) std::this_thread::yield();
  });
  const EventPointer gate = devices[1].record(Stream::compute);
  devices[0].wait(Stream::copy, gate);
  devices[0].enqueue(Stream::copy, "copy", [&] { copied = true; });
  devices[0].enqueue(Stream::compute, "work", [] {});
  const EventPointer work = devices[0].record(Stream::compute);
  devices[0].wait_on_host(*work, ample);
  EXPECT_FALSE(copied);
  may_go = true;
  synchronize_all(devices.all, ample);
  EXPECT_TRUE(copied);
}

TEST(StreamDevice, WithoutStreamsApartTheHostsPartRunsInOrder) {
  const auto device = device_in_order(std::make_shared<Monitor>());
  std::vector<int> order;
  for (int index = 0; index < 20; ++index) {
    device->enqueue(index % 3 == 0 ? Stream::copy : Stream::compute, "work",
                    [&, index] { order.push_back(index); });
  }
  device->synchronize(ample);
  EXPECT_EQ(order.size(), 20U);
  EXPECT_TRUE(std::ranges::is_sorted(order));
}

TEST(StreamDevice, AnEventsTimeCannotBeReadBeforeItHasCome) {
  StreamDevices devices(1);
  std::atomic<bool> may_go{false};
  devices[0].enqueue(Stream::compute, "gate", [&] {
    while (!may_go) std::this_thread::yield();
  });
  const EventPointer event = devices[0].record(Stream::compute);
  EXPECT_THROW(event->time(), std::logic_error);
  may_go = true;
  devices[0].synchronize(ample);
  EXPECT_LE(event->time(), std::chrono::steady_clock::now());
}

TEST(StreamDevice, AnEventBelongsToItsDevice) {
  StreamDevices devices(2);
  const EventPointer event = devices[1].record(Stream::copy);
  EXPECT_THROW(devices[0].wait_on_host(*event, ample), std::logic_error);
  devices[1].wait_on_host(*event, ample);
  EXPECT_TRUE(event->complete());
}

TEST(StreamDevice, AThreadOfTheHostForgetsStreamsThatAreGone) {
  std::vector<std::size_t> known;
  for (int round = 0; round < 3; ++round) {
    StreamDevices devices(2);
    devices[0].enqueue(Stream::compute, "work", [] {});
    devices[1].wait(Stream::copy, devices[0].record(Stream::compute));
    devices[1].enqueue(Stream::copy, "work", [] {});
    synchronize_all(devices.all, ample);
    known.push_back(clock_of_user().streams());
  }
  EXPECT_GE(known[1], 2U);
  EXPECT_EQ(known[2], known[1]);
}

TEST(StreamDevice, AStampIsAtOnceOnItsOwnThreadsAndComesLaterOnOthers) {
  StreamDevices devices(1);
  EventPointer own;
  bool complete = false;
  devices[0].enqueue(Stream::compute, "work", [&] {
    own = devices[0].stamp();
    complete = own->complete();
  });
  const EventPointer of_host = devices[0].stamp();
  devices[0].synchronize(ample);
  EXPECT_TRUE(complete);
  EXPECT_TRUE(of_host->complete());
}

/// Floats that two devices of streams work on; what is done is told to the memory.
class StreamMemoryTest : public ::testing::Test {
 protected:
  void enqueue(int device, Stream stream, std::function<void()> work) {
    devices[device].enqueue(stream, "work", std::move(work));
  }
  float* allocate() { return static_cast<float*>(memory.allocate(count * sizeof(float))); }
  void write(float* data, float value) {
    memory.use(data, Use::write, "fill");
    std::fill_n(data, count, value);
  }
  void read(const float* data) { memory.use(data, Use::read, "sum"); }
  void synchronize() { synchronize_all(devices.all, ample); }
  /// By events, `to` comes after what `from` has done.
  void order(int from, Stream of, int to, Stream then) {
    devices[to].wait(then, devices[from].record(of));
  }

  static constexpr std::size_t count = 100;
  StreamDevices devices{2};
  StreamMemory memory;
};

TEST_F(StreamMemoryTest, FreedMemoryIsOverwrittenAndTheNextOfItsStream) {
  float* first = nullptr;
  float* second = nullptr;
  float seen = 0;
  enqueue(0, Stream::compute, [&] {
    first = allocate();
    write(first, 3);
    memory.free(first);
    seen = *first;
  });
  synchronize();
  enqueue(0, Stream::copy, [&] { EXPECT_NE(allocate(), first) << "it is the other stream's"; });
  synchronize();
  enqueue(0, Stream::compute, [&] { second = allocate(); });
  synchronize();
  EXPECT_TRUE(std::isnan(seen));
  EXPECT_EQ(first, second);
  EXPECT_THAT(memory.take_reports(), IsEmpty());
}

/// What the copy stream sees of memory that the compute stream frees, and asks for again,
/// meanwhile.
class FreedMeanwhile : public StreamMemoryTest {
 protected:
  float seen_by_a_copy(bool records) {
    float* data = nullptr;
    float seen = 0;
    std::atomic<bool> copying{false};
    std::atomic<bool> overwritten{false};
    enqueue(0, Stream::compute, [&] {
      data = allocate();
      write(data, 3);
    });
    order(0, Stream::compute, 0, Stream::copy);
    enqueue(0, Stream::copy, [&] {
      if (records) memory.record_use(data);
      read(data);
      copying = true;
      while (!overwritten) std::this_thread::yield();
      seen = *data;
    });
    enqueue(0, Stream::compute, [&] {
      while (!copying) std::this_thread::yield();
      memory.free(data);
      write(allocate(), 7);
      overwritten = true;
    });
    synchronize();
    return seen;
  }
};

TEST_F(FreedMeanwhile, IsKeptWhereTheUseWasRecorded) {
  EXPECT_EQ(seen_by_a_copy(true), 3);
  EXPECT_THAT(memory.take_reports(), IsEmpty());
}

TEST_F(FreedMeanwhile, IsGivenAwayWhereItWasNot) {
  EXPECT_EQ(seen_by_a_copy(false), 7);
  EXPECT_THAT(
      memory.take_reports(),
      ElementsAre("memory of cpu:0 compute was freed while sum of cpu:0 copy may use it: no "
                  "use was recorded"));
}

TEST_F(StreamMemoryTest, AMissingEventIsReportedHoweverTheWorkRan) {
  float* data = nullptr;
  for (const bool waits : {true, false}) {
    enqueue(0, Stream::compute, [&] { data = allocate(); });
    devices[0].synchronize(ample);
    enqueue(0, Stream::compute, [&] { write(data, 1); });
    if (waits) order(0, Stream::compute, 1, Stream::copy);
    const EventPointer written = devices[0].record(Stream::compute);
    enqueue(1, Stream::copy, [&] {
      while (!written->complete()) std::this_thread::yield();  // luck
      memory.use(data, Use::copy_from, "copy");
    });
    synchronize();
    if (waits) {
      EXPECT_THAT(memory.take_reports(), IsEmpty());
    } else {
      EXPECT_THAT(memory.take_reports(),
                  ElementsAre("copy on cpu:1 copy uses the result of fill of cpu:0 compute, and "
                              "has waited for no event behind that"));
    }
  }
}

TEST_F(StreamMemoryTest, WhatAnotherStreamStillReadsMayNotBeOverwritten) {
  float* data = nullptr;
  enqueue(0, Stream::compute, [&] { data = allocate(); });
  order(0, Stream::compute, 0, Stream::copy);
  enqueue(0, Stream::copy, [&] { read(data); });
  const EventPointer has_read = devices[0].record(Stream::copy);
  enqueue(0, Stream::compute, [&] {
    while (!has_read->complete()) std::this_thread::yield();
    write(data, 1);
  });
  synchronize();
  EXPECT_THAT(memory.take_reports(),
              ElementsAre(HasSubstr("overwrites what is used by sum of cpu:0 copy")));
}

TEST_F(StreamMemoryTest, TheHostWaitsForADeviceToo) {
  float* data = nullptr;
  enqueue(0, Stream::compute, [&] {
    data = allocate();
    write(data, 1);
  });
  const EventPointer written = devices[0].record(Stream::compute);
  while (!written->complete()) std::this_thread::yield();
  read(data);
  EXPECT_THAT(memory.take_reports(), ElementsAre(HasSubstr("sum on the host uses the result")));
  synchronize();
  read(data);
  // What it enqueues from now on comes after that, on every device.
  enqueue(1, Stream::copy, [&] { memory.use(data, Use::copy_from, "copy"); });
  synchronize();
  memory.free(data);
  EXPECT_THAT(memory.take_reports(), IsEmpty());
}

TEST_F(StreamMemoryTest, WorkOnAnotherDevicesMemoryIsReported) {
  float* data = nullptr;
  enqueue(0, Stream::compute, [&] { data = allocate(); });
  order(0, Stream::compute, 1, Stream::compute);
  enqueue(1, Stream::compute, [&] { memory.use(data, Use::copy_from, "copy"); });
  enqueue(1, Stream::compute, [&] { read(data); });
  synchronize();
  EXPECT_THAT(memory.take_reports(),
              ElementsAre("sum on cpu:1 compute works on memory of cpu:0 compute"));
}

}  // namespace
}  // namespace stratagem::runtime::stream_device_test
