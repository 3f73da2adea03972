// ProcessGroup::reduce_scatter: the bits of a sum in the order of the ranks, what it sends, and
// what it leaves behind.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "strategies/distributed/rank_order_sum.h"
#include "tests/strategies/in_order_backend.h"
#include "tests/strategies/rank_threads.h"
#include "tests/strategies/training.h"

namespace stratagem::distributed::reduce_scatter_test {
namespace {

using ::testing::HasSubstr;

/// More than a block of a running sum, and not a multiple of it.
constexpr std::int64_t many = 150'001;

/// Runs `work` on every rank, over Gloo and over the backend that keeps the order of the calls.
void on_both_backends(int ranks, const std::function<void(ProcessGroup&)>& work) {
  runtime::on_ranks(ranks, [&](RankContext& context) {
    const backends::DeviceGroup devices = strategies::unpinned_devices(1);
    std::vector<int> everyone;
    for (int rank = 0; rank < ranks; ++rank) everyone.push_back(rank);
    BackendOptions options;
    options.timeout = std::chrono::seconds(20);
    const auto gloo = context.make_group("all", everyone, "gloo", *devices.devices[0], options);
    work(*gloo);
    work(*in_order(*gloo, "all", *devices.devices[0]));
  });
}

/// What a rank hands in: of several magnitudes, so that sums depend on their order.
at::Tensor input_of(int rank, std::int64_t elements, at::ScalarType type = at::kFloat) {
  const at::Tensor steps = at::arange(elements, at::kDouble) + 31.0 * rank;
  return (steps.mul(0.37).sin() * steps.mul(1.7).cos().mul(9).exp()).to(type);
}

/// Element by element, in the order of the ranks: [elements] of `Value`, from inputs of any type.
template <class Value>
at::Tensor summed_by_loop(const std::vector<at::Tensor>& parts) {
  const auto type = c10::CppTypeToScalarType<Value>::value;
  at::Tensor sum = parts[0].to(type).clone();
  Value* sums = sum.data_ptr<Value>();
  for (std::size_t rank = 1; rank < parts.size(); ++rank) {
    const at::Tensor part = parts[rank].to(type);
    const Value* values = part.const_data_ptr<Value>();
    for (std::int64_t index = 0; index < sum.numel(); ++index) sums[index] += values[index];
  }
  return sum;
}

/// Each rank's part `rank` of what all hand in.
std::vector<at::Tensor> parts_for(const ProcessGroup& group, std::int64_t share,
                                  at::ScalarType type = at::kFloat) {
  std::vector<at::Tensor> parts;
  for (int rank = 0; rank < group.size(); ++rank) {
    const at::Tensor whole = input_of(rank, share * group.size(), type);
    parts.push_back(whole.narrow(0, group.rank() * share, share));
  }
  return parts;
}

TEST(ReduceScatter, AddsInTheOrderOfTheRanksBitForBit) {
  for (const int ranks : {1, 2, 3, 4}) {
    on_both_backends(ranks, [&](ProcessGroup& group) {
      for (const std::int64_t share : {std::int64_t{1}, std::int64_t{5}, many}) {
        const at::Tensor input = input_of(group.rank(), share * ranks);
        const at::Tensor before = input.clone();
        const at::Tensor output = at::empty({share});
        group.reduce_scatter(output, input)->wait();
        auto parts = parts_for(group, share);
        EXPECT_TRUE(at::equal(output, summed_by_loop<float>(parts))) << ranks << ", " << share;
        EXPECT_TRUE(at::equal(input, before));
        std::ranges::reverse(parts);
        if (ranks > 2 && share == many) {
          EXPECT_FALSE(at::equal(output, summed_by_loop<float>(parts))) << "any order would do";
        }
      }
    });
  }
}

TEST(ReduceScatter, SumsSixteenBitsInFloat) {
  for (const int ranks : {1, 2, 3, 4}) {
    on_both_backends(ranks, [&](ProcessGroup& group) {
      for (const auto type : {at::kBFloat16, at::kHalf}) {
        const at::Tensor input = input_of(group.rank(), many * ranks, type);
        const auto parts = parts_for(group, many, type);
        const at::Tensor expected = summed_by_loop<float>(parts);
        const at::Tensor wide = at::empty({many});
        group.reduce_scatter(wide, input)->wait();
        EXPECT_TRUE(at::equal(wide, expected)) << ranks << " ranks, " << type;
        const at::Tensor rounded = at::empty({many}, type);
        group.reduce_scatter(rounded, input)->wait();
        EXPECT_TRUE(at::equal(rounded, expected.to(type))) << ranks << " ranks, " << type;
        if (ranks > 2 && type == at::kBFloat16) {
          EXPECT_FALSE(at::equal(rounded, summed_by_loop<at::BFloat16>(parts)))
              << "sums of 16 bits would do";
        }
      }
    });
  }
}

TEST(ReduceScatter, TheOutputMayBeTheRanksPartOfTheInput) {
  for (const int ranks : {2, 3, 4}) {
    on_both_backends(ranks, [&](ProcessGroup& group) {
      const at::Tensor input = input_of(group.rank(), many * ranks);
      const at::Tensor output = input.narrow(0, group.rank() * many, many);
      group.reduce_scatter(output, input)->wait();
      EXPECT_TRUE(at::equal(output, summed_by_loop<float>(parts_for(group, many)))) << ranks;
    });
  }
}

TEST(ReduceScatter, TheLibrarysOwnHasTheSameSum) {
  on_both_backends(3, [&](ProcessGroup& group) {
    const at::Tensor input = at::arange(3 * 7, at::kDouble) * (1 + group.rank());
    const at::Tensor own = at::empty({7}, at::kDouble);
    const at::Tensor librarys = at::empty({7}, at::kDouble);
    group.reduce_scatter(own, input)->wait();
    group.reduce_scatter(librarys, input, ReduceScatter("library"))->wait();
    EXPECT_TRUE(at::equal(own, librarys));
  });
}

TEST(ReduceScatter, CountsWhatItSends) {
  for (const int ranks : {2, 3, 4}) {
    on_both_backends(ranks, [&](ProcessGroup& group) {
      const at::Tensor input = at::ones({100 * ranks}, at::kBFloat16);
      group.reset_counts();
      group.reduce_scatter(at::empty({100}), input)->wait();
      const std::int64_t bytes = 200 * ranks;
      EXPECT_EQ(group.counts().at("reduce_scatter"), (CollectiveCount{1, bytes, bytes - 200}));
      group.reset_counts();
      const at::Tensor output = at::empty({100}, at::kBFloat16);
      group.reduce_scatter(output, input, ReduceScatter("library"))->wait();
      EXPECT_EQ(group.counts().at("reduce_scatter"),
                (CollectiveCount{1, bytes, 2 * (bytes - 200)}));
    });
  }
}

TEST(ReduceScatter, KeepsNothingThatItWasGivenOrReceived) {
  on_both_backends(2, [](ProcessGroup& group) {
    const at::Tensor input = at::ones({200});
    const at::Tensor output = at::empty({100});
    const auto transfer = group.reduce_scatter(output, input);
    transfer->wait();
    // The backend's own thread may not have let go yet. The sum's parts lie in one tensor with what
    // was received, so that of the input tells of both.
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    while (input.storage().use_count() > 1 && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(input.storage().use_count(), 1U);
    EXPECT_EQ(output.storage().use_count(), 1U);
    EXPECT_GT(transfer->end()->time(), transfer->start()->time());
  });
}

template <class Call>
std::string refusal(const Call& call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "was done";
}

TEST(ReduceScatter, RefusesSizesAndTypesThatDoNotFit) {
  on_both_backends(2, [](ProcessGroup& group) {
    const auto reduce = [&](const at::Tensor& output, const at::Tensor& input, ReduceScatter by) {
      return refusal([&] { group.reduce_scatter(output, input, by)->wait(); });
    };
    EXPECT_EQ(reduce(at::empty({3}), at::ones({4}), ReduceScatter("exchange")),
              "reduce_scatter in group all (ranks 0, 1): output has 3 elements for an input of 4; "
              "expected 2");
    EXPECT_THAT(reduce(at::empty({2}), at::ones({4}, at::kDouble), ReduceScatter("exchange")),
                HasSubstr("Float for an input of Double; expected Double"));
    EXPECT_THAT(reduce(at::empty({2}), at::ones({4}, at::kHalf), ReduceScatter("library")),
                HasSubstr("Float for an input of Half; expected Half"));
  });
}

}  // namespace
}  // namespace stratagem::distributed::reduce_scatter_test
