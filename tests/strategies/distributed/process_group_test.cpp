#include "strategies/distributed/process_group.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "strategies/backends/backend.h"
#include "strategies/distributed/library_environment.h"
#include "tests/environment_variable.h"
#include "tests/strategies/rank_threads.h"
#include "tests/strategies/training.h"

namespace stratagem::distributed::process_group_test {
namespace {

using ::testing::HasSubstr;

/// A backend on a kind of device; every one must do the same.
struct Backend {
  distributed::Backend name;
  runtime::DeviceKind device = runtime::DeviceKind::cpu;
};

std::ostream& operator<<(std::ostream& out, const Backend& backend) {
  return out << backend.name.name()
             << (backend.device == runtime::DeviceKind::cpu ? " on CPU" : " on CUDA");
}

class ProcessGroupConformance : public testing::TestWithParam<Backend> {
 protected:
  void SetUp() override {
    if (GetParam().device == runtime::DeviceKind::cuda && backends::cuda_device_count() == 0) {
      GTEST_SKIP() << "needs a GPU";
    }
  }

  /// NCCL wants a GPU for each rank; Gloo's ranks may share one.
  int most_ranks() const {
    return GetParam().name == "nccl" ? std::min(backends::cuda_device_count(), 3) : 3;
  }

  /// Runs `work` on every rank of a group over all of them; with fewer ranks where the backend
  /// cannot have so many here.
  void in_group(int wanted, const std::function<void(ProcessGroup&)>& work) {
    with_device(wanted, [&](ProcessGroup& group, runtime::Device& /*device*/) { work(group); });
  }

  /// The same with the rank's device.
  void with_device(int wanted, const std::function<void(ProcessGroup&, runtime::Device&)>& work) {
    const int ranks = std::min(wanted, most_ranks());
    runtime::on_ranks(ranks, [&](RankContext& context) {
      const int rank = context.info().rank;
      const backends::DeviceGroup devices = device_of(rank);
      std::vector<int> members;
      for (int member = 0; member < ranks; ++member) members.push_back(member);
      BackendOptions options;
      options.timeout = std::chrono::seconds(10);
      const auto group =
          context.make_group("all", members, GetParam().name, *devices.devices[0], options);
      work(*group, *devices.devices[0]);
    });
  }

  /// Of the group's kind: [size] of one more than the rank.
  at::Tensor ranks_tensor(const ProcessGroup& group, std::int64_t size) const {
    return at::full({size}, group.rank() + 1.0, options(group));
  }

  at::TensorOptions options(const ProcessGroup& group) const {
    const at::TensorOptions on_host(at::kDouble);
    if (GetParam().device == runtime::DeviceKind::cpu) return on_host;
    return on_host.device(at::Device(at::kCUDA, ordinal(group.rank())));
  }

 private:
  at::DeviceIndex ordinal(int rank) const {
    return static_cast<at::DeviceIndex>(GetParam().name == "nccl" ? rank : 0);
  }

  backends::DeviceGroup device_of(int rank) const {
    if (GetParam().device == runtime::DeviceKind::cpu) return strategies::unpinned_devices(1);
    backends::DeviceGroupOptions group;
    group.kind = runtime::DeviceKind::cuda;
    group.ordinals = {ordinal(rank)};
    return backends::make_device_group(group);
  }
};

TEST_P(ProcessGroupConformance, AllReduceSumsTensorsOfAnySize) {
  for (const int ranks : {1, 2, 3}) {
    in_group(ranks, [&](ProcessGroup& group) {
      for (const std::int64_t elements : {1, 5, 50'000}) {
        const at::Tensor tensor = ranks_tensor(group, elements);
        group.all_reduce(tensor)->wait();
        const double sum = group.size() * (group.size() + 1) / 2.0;
        EXPECT_TRUE(at::equal(tensor, at::full({elements}, sum, options(group))));
      }
    });
  }
}

TEST_P(ProcessGroupConformance, AllReduceFindsTheMaximumOfTensorsOfAnySize) {
  in_group(3, [&](ProcessGroup& group) {
    for (const std::int64_t elements : {1, 5, 50'000}) {
      const at::Tensor tensor = -ranks_tensor(group, elements);
      group.all_reduce(tensor, Reduction::maximum)->wait();
      EXPECT_TRUE(at::equal(tensor, at::full({elements}, -1.0, options(group))));
    }
  });
}

TEST_P(ProcessGroupConformance, BroadcastGivesTheRootsTensor) {
  in_group(3, [&](ProcessGroup& group) {
    const at::Tensor tensor = ranks_tensor(group, 4);
    const int root = group.size() - 1;
    group.broadcast(tensor, root)->wait();
    EXPECT_TRUE(at::equal(tensor, at::full({4}, root + 1.0, options(group))));
  });
}

TEST_P(ProcessGroupConformance, GatherAndScatterAreEachOthersReverse) {
  in_group(2, [&](ProcessGroup& group) {
    const at::Tensor all = at::empty({3 * group.size()}, options(group));
    group.all_gather(all, ranks_tensor(group, 3))->wait();
    for (int rank = 0; rank < group.size(); ++rank) {
      EXPECT_TRUE(at::equal(all.narrow(0, 3 * rank, 3), at::full({3}, rank + 1.0, options(group))));
    }
    const at::Tensor own = at::empty({3}, options(group));
    group.reduce_scatter(own, all)->wait();
    EXPECT_TRUE(at::equal(own, group.size() * ranks_tensor(group, 3)));
  });
}

TEST_P(ProcessGroupConformance, AllGatherTakesAPartWhereItLies) {
  for (const int ranks : {1, 2, 3}) {
    in_group(ranks, [&](ProcessGroup& group) {
      const at::Tensor all = at::zeros({5 * group.size()}, options(group));
      const at::Tensor own = all.narrow(0, 5 * group.rank(), 5).copy_(ranks_tensor(group, 5));
      group.all_gather(all, own)->wait();
      for (int rank = 0; rank < group.size(); ++rank) {
        EXPECT_TRUE(
            at::equal(all.narrow(0, 5 * rank, 5), at::full({5}, rank + 1.0, options(group))));
      }
      const auto bytes = static_cast<std::int64_t>(own.nbytes());
      const CollectiveCount sent{1, bytes, bytes * (group.size() - 1)};
      EXPECT_EQ(group.counts().at("all_gather"), sent);
    });
  }
}

TEST_P(ProcessGroupConformance, AllGatherRefusesAnotherFormat) {
  in_group(2, [&](ProcessGroup& group) {
    const at::Tensor wide = at::empty({6}, options(group).dtype(at::kDouble));
    const at::Tensor narrow = at::empty({3}, options(group).dtype(at::kFloat));
    EXPECT_THROW(group.all_gather(wide, narrow), runtime::CommunicationError);
  });
}

TEST_P(ProcessGroupConformance, ReduceGivesTheRootTheSum) {
  for (const int ranks : {1, 2, 3}) {
    in_group(ranks, [&](ProcessGroup& group) {
      const at::Tensor tensor = ranks_tensor(group, 6);
      const int size = group.size();
      group.reduce(tensor, size - 1)->wait();
      if (group.rank() + 1 < size) return;
      EXPECT_TRUE(at::equal(tensor, at::full({6}, size * (size + 1) / 2.0, options(group))));
    });
  }
}

TEST_P(ProcessGroupConformance, OneRankGathersAndScattersTheParts) {
  in_group(3, [&](ProcessGroup& group) {
    const int root = group.size() - 1;
    const at::Tensor all = at::zeros({2 * group.size()}, options(group));
    group.gather(all, ranks_tensor(group, 2), root)->wait();
    for (int rank = 0; group.rank() == root && rank < group.size(); ++rank) {
      EXPECT_TRUE(at::equal(all.narrow(0, 2 * rank, 2), at::full({2}, rank + 1.0, options(group))));
    }
    const at::Tensor own = at::zeros({2}, options(group));
    group.scatter(own, all, root)->wait();
    EXPECT_TRUE(at::equal(own, ranks_tensor(group, 2)));
    const auto counts = group.counts();
    const bool is_root = group.rank() == root;
    EXPECT_EQ(counts.at("gather"), (CollectiveCount{1, 16, is_root ? 0 : 16}));
    const std::int64_t whole = 16 * group.size();
    EXPECT_EQ(counts.at("scatter"),
              is_root ? (CollectiveCount{1, whole, whole - 16}) : (CollectiveCount{1, 0, 0}));
  });
}

TEST_P(ProcessGroupConformance, AllToAllTransposesRanksAndParts) {
  in_group(3, [&](ProcessGroup& group) {
    const std::int64_t size = group.size();
    const at::Tensor input = at::arange(size, options(group)) + 10.0 * group.rank();
    const at::Tensor output = at::zeros({size}, options(group));
    group.all_to_all(output, input)->wait();
    EXPECT_TRUE(at::equal(output, 10.0 * at::arange(size, options(group)) + group.rank()));
    EXPECT_EQ(group.counts().at("all_to_all"), (CollectiveCount{1, 8 * size, 8 * (size - 1)}));
  });
}

TEST_P(ProcessGroupConformance, ASendMeetsTheReceiveOfItsTag) {
  in_group(2, [&](ProcessGroup& group) {
    if (group.size() < 2) return;  // one GPU: nobody to send to
    const auto number = [&](double value) { return at::full({3}, value, options(group)); };
    if (group.rank() == 0) {
      const auto first = group.send(number(1), 1);
      const auto second = group.send(number(2), 1);
      first->wait();
      second->wait();
    } else {
      const at::Tensor one = number(0);
      const at::Tensor two = number(0);
      const auto first = group.receive(one, 0);
      const auto second = group.receive(two, 0);
      second->wait();
      first->wait();
      EXPECT_TRUE(at::equal(one, number(1)));
      EXPECT_TRUE(at::equal(two, number(2)));
    }
    const auto counts = group.counts();
    EXPECT_EQ(counts.at(group.rank() == 0 ? "send" : "receive").calls, 2);
    EXPECT_EQ(counts.at(group.rank() == 0 ? "send" : "receive").payload_bytes, 48);
  });
}

TEST_P(ProcessGroupConformance, ABarrierWaitsForEveryRankAndIsCounted) {
  std::atomic<int> arrived = 0;
  in_group(3, [&](ProcessGroup& group) {
    // The last rank comes late; the others must still be in the barrier then.
    if (group.rank() == group.size() - 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    ++arrived;
    group.barrier();
    EXPECT_EQ(arrived, group.size());
    EXPECT_EQ(group.counts().at("barrier"), (CollectiveCount{1, 0, 0}));
  });
}

TEST_P(ProcessGroupConformance, ATransferThatWasWaitedForKeepsNoTensor) {
  in_group(2, [&](ProcessGroup& group) {
    const at::Tensor tensor = ranks_tensor(group, 100);
    const auto transfer = group.all_reduce(tensor);
    transfer->wait();
    transfer->wait();  // there is nothing left to wait for
    // The backend's own thread may not have let go yet.
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    while (tensor.use_count() > 1 && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(tensor.use_count(), 1U);
    EXPECT_LE(transfer->start()->time(), std::chrono::steady_clock::now());
  });
}

TEST_P(ProcessGroupConformance, CountsCallsPayloadAndWireBytes) {
  in_group(2, [&](ProcessGroup& group) {
    const at::Tensor tensor = ranks_tensor(group, 100);
    group.all_reduce(tensor)->wait();
    group.all_reduce(tensor)->wait();
    group.broadcast(tensor, 0)->wait();
    const auto counts = group.counts();
    const std::int64_t wire = group.size() == 2 ? 1 : 0;
    EXPECT_EQ(counts.at("all_reduce"), (CollectiveCount{2, 1600, 1600 * wire}));
    EXPECT_EQ(counts.at("broadcast").payload_bytes, 800);
    if (GetParam().name == "gloo") {
      EXPECT_EQ(counts.at("broadcast").wire_bytes, group.rank() == 0 ? 800 : 0);
    }
    group.reset_counts();
    EXPECT_TRUE(group.counts().empty());
  });
}

TEST_P(ProcessGroupConformance, StampsBeginAndEndOfATransfer) {
  with_device(2, [&](ProcessGroup& group, runtime::Device& device) {
    device.synchronize_clock();
    const auto before = std::chrono::steady_clock::now();
    TransferPointer transfer;
    device.enqueue(runtime::Stream::compute, "all_reduce", [&] {
      transfer = group.all_reduce(ranks_tensor(group, 1'000'000));
      transfer->wait();
    });
    device.synchronize(std::chrono::seconds(20));
    // A GPU's clock is tied to the host's at one moment only.
    const std::chrono::milliseconds slack(GetParam().device == runtime::DeviceKind::cpu ? 0 : 20);
    EXPECT_GE(transfer->start()->time(), before - slack);
    EXPECT_GT(transfer->end()->time(), transfer->start()->time());
    EXPECT_LE(transfer->end()->time(), std::chrono::steady_clock::now() + slack);
  });
}

TEST_P(ProcessGroupConformance, AReceiveThatStillWaitsDelaysNoStampOfACollective) {
  in_group(2, [&](ProcessGroup& group) {
    if (group.size() < 2) return;  // one GPU: nobody to receive from
    const at::Tensor message = ranks_tensor(group, 4);
    const at::Tensor summed = ranks_tensor(group, 4);
    const auto exchange = [&] {
      return group.rank() == 0 ? group.send(message, 1) : group.receive(message, 0);
    };
    exchange()->wait();  // NCCL connects two ranks at their first message
    if (group.rank() == 0) {
      const auto sum = group.all_reduce(summed);
      sum->wait();
      sum->end()->time();  // has ended
      exchange()->wait();
    } else {
      const auto receive = exchange();
      const auto sum = group.all_reduce(summed);
      sum->wait();
      receive->wait();
      EXPECT_LT(sum->end()->time(), receive->end()->time());
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Backends, ProcessGroupConformance,
                         testing::Values(Backend{"gloo", runtime::DeviceKind::cpu},
                                         Backend{"gloo", runtime::DeviceKind::cuda},
                                         Backend{"nccl", runtime::DeviceKind::cuda}),
                         [](const auto& test) {
                           return test.param.name.name() +
                                  (test.param.device == runtime::DeviceKind::cpu ? "_cpu"
                                                                                 : "_cuda");
                         });

// Over NCCL alone: calls over Gloo end at their time limit.
TEST(NcclGroup, AbortFreesAGpuThatWaitsForARank) {
  if (backends::cuda_device_count() < 2) GTEST_SKIP() << "needs a GPU for each of two ranks";
  runtime::on_ranks(2, [](RankContext& context) {
    backends::DeviceGroupOptions options;
    options.kind = runtime::DeviceKind::cuda;
    options.ordinals = {context.info().rank};
    const backends::DeviceGroup devices = backends::make_device_group(options);
    const auto group = context.make_group("all", {0, 1}, "nccl", *devices.devices[0], {});
    const at::Device gpu(at::kCUDA, static_cast<at::DeviceIndex>(context.info().rank));
    const at::Tensor tensor = at::ones({1000}, gpu);
    group->all_reduce(tensor)->wait();
    const auto unanswered = context.info().rank == 0 ? group->all_reduce(tensor) : nullptr;
    group->abort();
    EXPECT_EQ(at::ones({1}, gpu).item<float>(), 1) << "the GPU takes further work";
  });
}

TEST(ProcessGroup, ARankThatNeverComesIsAnErrorThatNamesTheCall) {
  runtime::on_ranks(2, [](RankContext& context) {
    const backends::DeviceGroup devices = strategies::unpinned_devices(1);
    BackendOptions options;
    options.timeout = std::chrono::seconds(3);  // of the store too, on a busy machine
    const auto group = context.make_group("all", {0, 1}, "gloo", *devices.devices[0], options);
    if (context.info().rank == 1) {
      context.all_gather("late");  // until the other has given up
      return;
    }
    try {
      group->all_reduce(at::ones({4}))->wait();
      ADD_FAILURE() << "ended without its peer";
    } catch (const runtime::CommunicationError& error) {
      EXPECT_THAT(error.what(), HasSubstr("all_reduce of 16 bytes in group all (ranks 0, 1)"));
    }
    context.all_gather("gave up");
  });
}

TEST(ProcessGroup, ARankThatDropsItsGroupAtOnceClosesNoConnectionTooEarly) {
  runtime::on_ranks(6, [&](RankContext& context) {
    const backends::DeviceGroup devices = strategies::unpinned_devices(1);
    for (int time = 0; time < 30; ++time) {
      context.make_group("short", {0, 1, 2, 3, 4, 5}, "gloo", *devices.devices[0], {});
    }
  });
}

TEST(ProcessGroup, BarriersOnSeveralThreadsShareNothing) {
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([] {
      runtime::on_ranks(1, [](RankContext& context) {
        const backends::DeviceGroup devices = strategies::unpinned_devices(1);
        const auto group = context.make_group("all", {0}, "gloo", *devices.devices[0], {});
        for (int round = 0; round < 5000; ++round) group->barrier();
      });
    });
  }
}

TEST(LibraryEnvironment, LeavesFailuresToTheWorkerAndNamesTheInterface) {
  using ::testing::Contains;
  using ::testing::Key;
  using ::testing::Not;
  using ::testing::Pair;
  const auto usual = library_environment("", /*over_nccl=*/false);
  EXPECT_THAT(usual, Contains(Pair("TORCH_NCCL_ASYNC_ERROR_HANDLING", "0")));
  EXPECT_THAT(usual, Not(Contains(Key("NCCL_SOCKET_IFNAME"))));
  EXPECT_THAT(usual, Not(Contains(Key("CUDA_MODULE_LOADING"))));
  const auto over_nccl = library_environment("eth0", /*over_nccl=*/true);
  EXPECT_THAT(over_nccl, Contains(Pair("NCCL_SOCKET_IFNAME", "eth0")));
  EXPECT_THAT(over_nccl, Contains(Pair("CUDA_MODULE_LOADING", "EAGER")));
}

TEST(ProcessGroup, AnInterfaceThatIsNotThereIsRefusedByTheNameOfWhatChoseIt) {
  const auto refusal = [](const std::string& by_option) -> std::string {
    try {
      runtime::on_ranks(1, [&](RankContext& context) {
        const backends::DeviceGroup devices = strategies::unpinned_devices(1);
        context.make_group("all", {0}, "gloo", *devices.devices[0], {.interface_name = by_option});
      });
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(refusal(""), "accepted");
  const EnvironmentVariable chosen("GLOO_SOCKET_IFNAME", "^lo,docker");
  EXPECT_THAT(refusal(""), HasSubstr("GLOO_SOCKET_IFNAME=^lo,docker: this network interface "
                                     "does not exist; choices: lo"));
  EXPECT_THAT(refusal("nosuch0"), HasSubstr("--interface nosuch0: this network"));
  EXPECT_EQ(refusal("lo"), "accepted") << "the option goes before the variable";
}

TEST(RankContext, EveryRankLearnsWhatEverySays) {
  runtime::on_ranks(3, [](RankContext& context) {
    const std::string own = std::to_string(context.info().rank);
    EXPECT_THAT(context.all_gather(own), ::testing::ElementsAre("0", "1", "2"));
    EXPECT_THAT(context.all_gather(own + "b"), ::testing::ElementsAre("0b", "1b", "2b"));
  });
}

TEST(RankContext, AStoreThatIsNotThereIsAnErrorInTime) {
  Rendezvous rendezvous;
  rendezvous.info = {1, 2, 1, 2};
  rendezvous.port = 1;
  rendezvous.timeout = std::chrono::milliseconds(500);
  try {
    const RankContext context(rendezvous);
    ADD_FAILURE() << "connected to nothing";
  } catch (const runtime::CommunicationError& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 1 cannot reach the store at 127.0.0.1:1"));
  }
}

}  // namespace
}  // namespace stratagem::distributed::process_group_test
