#include "strategies/runtime/process_group.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/strategies/rank_threads.h"
#include "tests/strategies/training.h"

namespace stratagem::runtime {
namespace {

using ::testing::HasSubstr;

/// Runs `work` on every rank of a Gloo group over all of them.
void in_group(int ranks, const std::function<void(ProcessGroup&)>& work) {
  on_ranks(ranks, [&](RankContext& context) {
    const DeviceGroup devices = strategies::unpinned_devices(1);
    std::vector<int> members;
    for (int rank = 0; rank < ranks; ++rank) members.push_back(rank);
    BackendOptions options;
    options.timeout = std::chrono::seconds(10);
    const auto group = context.make_group("all", members, "gloo", *devices.devices[0], options);
    work(*group);
  });
}

at::Tensor ranks_tensor(const ProcessGroup& group, std::int64_t size) {
  return at::full({size}, group.rank() + 1.0, at::kDouble);
}

TEST(ProcessGroup, AllReduceSums) {
  for (const int ranks : {1, 2, 3}) {
    in_group(ranks, [ranks](ProcessGroup& group) {
      const at::Tensor tensor = ranks_tensor(group, 5);
      group.all_reduce(tensor)->wait();
      EXPECT_TRUE(at::equal(tensor, at::full({5}, ranks * (ranks + 1) / 2.0, at::kDouble)));
    });
  }
}

TEST(ProcessGroup, BroadcastGivesTheRootsTensor) {
  in_group(3, [](ProcessGroup& group) {
    const at::Tensor tensor = ranks_tensor(group, 4);
    group.broadcast(tensor, 1)->wait();
    EXPECT_TRUE(at::equal(tensor, at::full({4}, 2.0, at::kDouble)));
  });
}

TEST(ProcessGroup, GatherAndScatterAreEachOthersReverse) {
  in_group(2, [](ProcessGroup& group) {
    const at::Tensor all = at::empty({6}, at::kDouble);
    group.all_gather(all, ranks_tensor(group, 3))->wait();
    EXPECT_TRUE(at::equal(all, at::tensor({1., 1., 1., 2., 2., 2.}, at::kDouble)));
    const at::Tensor own = at::empty({3}, at::kDouble);
    group.reduce_scatter(own, all)->wait();
    EXPECT_TRUE(at::equal(own, 2.0 * ranks_tensor(group, 3)));
  });
}

TEST(ProcessGroup, CountsCallsPayloadAndWireBytes) {
  in_group(2, [](ProcessGroup& group) {
    const at::Tensor tensor = ranks_tensor(group, 100);
    group.all_reduce(tensor)->wait();
    group.all_reduce(tensor)->wait();
    group.broadcast(tensor, 0)->wait();
    const auto counts = group.counts();
    EXPECT_EQ(counts.at("all_reduce"), (CollectiveCount{2, 1600, 1600}));
    EXPECT_EQ(counts.at("broadcast"), (CollectiveCount{1, 800, group.rank() == 0 ? 800 : 0}));
    group.reset_counts();
    EXPECT_TRUE(group.counts().empty());
  });
}

TEST(ProcessGroup, StampsBeginAndEndOfATransfer) {
  in_group(2, [](ProcessGroup& group) {
    const auto before = std::chrono::steady_clock::now();
    const auto transfer = group.all_reduce(ranks_tensor(group, 1'000'000));
    transfer->wait();
    const auto after = std::chrono::steady_clock::now();
    EXPECT_GE(transfer->start()->time(), before);
    EXPECT_GT(transfer->end()->time(), transfer->start()->time());
    EXPECT_LE(transfer->end()->time(), after);
  });
}

TEST(ProcessGroup, ARankThatNeverComesIsAnErrorThatNamesTheCall) {
  on_ranks(2, [](RankContext& context) {
    const DeviceGroup devices = strategies::unpinned_devices(1);
    BackendOptions options;
    options.timeout = std::chrono::milliseconds(500);
    const auto group = context.make_group("all", {0, 1}, "gloo", *devices.devices[0], options);
    if (context.place().rank == 1) {
      context.all_gather("late");  // until the other has given up
      return;
    }
    try {
      group->all_reduce(at::ones({4}))->wait();
      ADD_FAILURE() << "ended without its peer";
    } catch (const CommunicationError& error) {
      EXPECT_THAT(error.what(), HasSubstr("all_reduce of 16 bytes in group all (ranks 0, 1)"));
    }
    context.all_gather("gave up");
  });
}

TEST(ProcessGroup, AnInterfaceThatIsNotThereIsRefused) {
  EXPECT_THROW(on_ranks(1,
                        [](RankContext& context) {
                          const DeviceGroup devices = strategies::unpinned_devices(1);
                          BackendOptions options;
                          options.interface_name = "nosuch0";
                          context.make_group("all", {0}, "gloo", *devices.devices[0], options);
                        }),
               std::invalid_argument);
}

TEST(RankContext, EveryRankLearnsWhatEverySays) {
  on_ranks(3, [](RankContext& context) {
    const std::string own = std::to_string(context.place().rank);
    EXPECT_THAT(context.all_gather(own), ::testing::ElementsAre("0", "1", "2"));
    EXPECT_THAT(context.all_gather(own + "b"), ::testing::ElementsAre("0b", "1b", "2b"));
  });
}

TEST(RankContext, AStoreThatIsNotThereIsAnErrorInTime) {
  Rendezvous rendezvous;
  rendezvous.place = {1, 2, 1, 2};
  rendezvous.port = 1;
  rendezvous.timeout = std::chrono::milliseconds(500);
  try {
    const RankContext context(rendezvous);
    ADD_FAILURE() << "connected to nothing";
  } catch (const CommunicationError& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 1 cannot reach the store at 127.0.0.1:1"));
  }
}

}  // namespace
}  // namespace stratagem::runtime
