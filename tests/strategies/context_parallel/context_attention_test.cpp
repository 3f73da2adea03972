// Attention over positions that ranks share: equal to that of one device, by the calls of the
// formula.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/cpu_kernels/attention.h"
#include "strategies/context_parallel/attention_form.h"
#include "tests/strategies/rank_threads.h"
#include "tests/strategies/tensor_parallel/tensor_rank.h"

namespace stratagem::context_parallel::context_attention_test {
namespace {

constexpr std::int64_t samples = 2;
constexpr std::int64_t heads = 4;
constexpr std::int64_t head_features = 3;
constexpr std::int64_t features = heads * head_features;

at::Tensor values(at::IntArrayRef sizes, double frequency, at::ScalarType type) {
  return at::arange(c10::multiply_integers(sizes), at::kDouble)
      .mul(frequency)
      .sin()
      .view(sizes)
      .to(type);
}

at::Tensor own_positions(const at::Tensor& whole, const SharedPositions& shared) {
  std::vector<at::Tensor> parts;
  const auto& group = shared.group;
  for (const Run& run : positions_of(shared.order, group.size(), group.rank(), whole.size(1))) {
    parts.push_back(whole.slice(1, run.start, run.start + run.count * run.stride, run.stride));
  }
  return at::cat(parts, 1);
}

/// Gives the query heads of a group equal keys and values.
at::Tensor with_equal_keys(const at::Tensor& qkv, const models::GroupedHeads& of) {
  const at::Tensor heads_apart = qkv.unflatten(2, {3, of.groups, of.queries, -1});
  const at::Tensor keys = heads_apart.narrow(2, 1, 2).narrow(4, 0, 1);
  return at::cat({heads_apart.narrow(2, 0, 1), keys.expand({-1, -1, -1, -1, of.queries, -1})}, 2)
      .flatten(2);
}

/// Sums the gradients of a group's equal keys and values.
at::Tensor by_group(const at::Tensor& gradient, const models::GroupedHeads& of) {
  const at::Tensor heads_apart = gradient.unflatten(2, {3, of.groups, of.queries, -1});
  const at::Tensor keys = heads_apart.narrow(2, 1, 2).sum(4);
  return at::cat({heads_apart.select(2, 0).flatten(2), keys.flatten(2)}, 2);
}

struct Case {
  std::string form;
  ContextOrder order = "contiguous";
  int ranks = 1;
  bool overlap = true;
  bool keep_gathered = false;
  std::int64_t queries = 1;  // of a key head
  at::ScalarType type = at::kDouble;
  double tolerance = 1e-12;
};

std::ostream& operator<<(std::ostream& out, const Case& of) {
  return out << of.form << ' ' << of.order << " on " << of.ranks << ' ' << of.type;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const int ranks : {1, 2, 3, 4}) {
    for (const ContextOrder order :
         {ContextOrder("zigzag"), ContextOrder("contiguous"), ContextOrder("striped")}) {
      for (const char* form : {"ring", "gather"}) {
        all.push_back({.form = form, .order = order, .ranks = ranks, .overlap = ranks != 3});
      }
    }
    if (heads % ranks == 0) all.push_back({.form = "heads", .ranks = ranks});
  }
  all.push_back({.form = "gather", .order = "zigzag", .ranks = 3, .keep_gathered = true});
  for (const int ranks : {1, 2, 4}) {  // two key heads: each rank has one, or none of its own
    all.push_back({.form = "heads", .ranks = ranks, .queries = 2});
    for (const char* form : {"ring", "gather"}) {
      all.push_back({.form = form, .order = "zigzag", .ranks = ranks, .queries = 2});
    }
  }
  all.push_back(
      {.form = "ring", .order = "zigzag", .ranks = 2, .type = at::kFloat, .tolerance = 1e-6});
  for (const char* form : {"heads", "ring", "gather"}) {
    all.push_back({.form = form, .ranks = 2, .type = at::kBFloat16, .tolerance = 0.03});
  }
  return all;
}

class SharedAttention : public ::testing::TestWithParam<Case> {};

TEST_P(SharedAttention, IsThatOfOneDevice) {
  const Case& of = GetParam();
  constexpr std::int64_t length = 24;
  const models::GroupedHeads grouped{.groups = heads / of.queries, .queries = of.queries};
  const at::Tensor whole =
      with_equal_keys(values({samples, length, 3 * features}, 0.37, of.type), grouped);
  const at::Tensor gradient = values({samples, length, features}, 0.71, of.type);
  const at::Tensor input = whole.clone().requires_grad_(true);
  const at::Tensor output = models::causal_attention(input, heads);
  output.backward(gradient);

  runtime::on_ranks(of.ranks, [&](distributed::RankContext& ranks) {
    tensor_parallel::Rank rank(ranks, {.overlap = of.overlap, .keep_gathered = of.keep_gathered});
    const SharedPositions shared{*rank.group, of.order};
    const AttentionForm& form = AttentionForm::registry().find(of.form);
    const at::Tensor own = own_positions(whole, shared).requires_grad_(true);
    const auto difference = [&](const at::Tensor& found, const at::Tensor& of_all) {
      return (found - own_positions(of_all, shared)).abs().max().item<double>();
    };
    const at::Tensor found = form.attention(own, grouped, shared);
    const auto forward_counts = rank.processes->counts();
    EXPECT_LE(difference(found.detach(), output.detach()), of.tolerance);
    found.backward(own_positions(gradient, shared));
    EXPECT_LE(difference(by_group(own.grad(), grouped), by_group(input.grad(), grouped)),
              of.tolerance);

    const auto bytes = static_cast<std::int64_t>(found.nbytes());
    AttentionPass pass{.output_bytes = bytes,
                       .gradient_bytes = of.type == at::kBFloat16 ? 2 * bytes : bytes,
                       .heads = grouped,
                       .ranks = of.ranks,
                       .keep_gathered = of.keep_gathered};
    auto expected = form.calls(pass);
    const auto expect_counts = [&](const distributed::CommunicationCounts& counted) {
      for (const auto& [name, count] : expected) {
        if (count.calls == 0) continue;
        ASSERT_TRUE(counted.contains(name)) << name;
        EXPECT_EQ(counted.at(name).calls, count.calls) << name;
        EXPECT_EQ(counted.at(name).payload_bytes, count.payload_bytes) << name;
      }
    };
    expect_counts(forward_counts);
    pass.is_backward = true;
    for (const auto& [name, count] : form.calls(pass)) expected[name] += count;
    expect_counts(rank.processes->counts());
  });
}

INSTANTIATE_TEST_SUITE_P(Every, SharedAttention, ::testing::ValuesIn(cases()));

TEST(ContextPositions, ArePartsOfEachSequence) {
  for (const ContextOrder order :
       {ContextOrder("zigzag"), ContextOrder("contiguous"), ContextOrder("striped")}) {
    for (int ranks = 1; ranks <= 8; ++ranks) {
      const std::int64_t length = 3 * parts_of(order, ranks);
      std::vector<int> seen(static_cast<std::size_t>(length), 0);
      std::int64_t pairs = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        for (const auto& [start, count, stride] : positions_of(order, ranks, rank, length)) {
          for (std::int64_t index = 0; index < count; ++index) {
            ++seen.at(static_cast<std::size_t>(start + index * stride));
          }
        }
        pairs += visible_pairs(order, ranks, rank, length);
      }
      EXPECT_THAT(seen, ::testing::Each(1)) << order << ' ' << ranks;
      EXPECT_EQ(pairs, length * (length + 1) / 2) << order << ' ' << ranks;
    }
  }
}

TEST(ContextPositions, GiveEachRankTheSameWorkInZigzagOrder) {
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(visible_pairs("zigzag", 4, rank, 64), 64 * 65 / 2 / 4);
  }
  EXPECT_EQ(visible_pairs("contiguous", 2, 1, 64), 32 * 32 + 32 * 33 / 2);
  EXPECT_EQ(visible_pairs("striped", 2, 1, 64), 2 * 32 * 33 / 2);
}

}  // namespace
}  // namespace stratagem::context_parallel::context_attention_test
