// Layers shared by ranks: equal to the whole ones, with the collectives of the formula.
#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <initializer_list>
#include <mutex>
#include <string_view>

#include "models/cpu_kernels/deferred_weight_gradients.h"
#include "models/cpu_kernels/linear.h"
#include "models/transformer.h"
#include "strategies/tensor_parallel/mappings.h"
#include "strategies/tensor_parallel/parallel_linear.h"
#include "strategies/tensor_parallel/shard.h"
#include "strategies/tensor_parallel/vocabulary_parallel.h"
#include "tests/strategies/rank_threads.h"
#include "tests/strategies/tensor_parallel/tensor_rank.h"

namespace stratagem::tensor_parallel::tensor_parallel_test {
namespace {

using distributed::RankContext;

at::Tensor values(at::IntArrayRef sizes, double start = 0) {
  std::int64_t count = 1;
  for (const auto size : sizes) count *= size;
  return at::arange(count, at::kDouble).mul(0.37).add(start).sin().view(sizes);
}

void expect_close(const at::Tensor& found, const at::Tensor& expected, double tolerance = 1e-12) {
  ASSERT_EQ(found.sizes(), expected.sizes());
  EXPECT_LE((found - expected).abs().max().item<double>(), tolerance);
}

struct Passes {
  at::Tensor y;
  at::Tensor x_gradient;
};

/// Forward, and backward with a gradient that differs from place to place.
template <class Function>
Passes passes(const at::Tensor& input, const at::Tensor& y_gradient, const Function& function) {
  const at::Tensor x = input.detach().clone().requires_grad_(true);
  const at::Tensor y = function(x);
  y.backward(y_gradient);
  return {y.detach(), x.grad()};
}

TEST(ConjugateFunctions, BackwardIsTheOtherOfThePair) {
  runtime::on_ranks(2, [](distributed::RankContext& ranks) {
    Rank rank(ranks);
    const double own = 1 + rank.group->rank();
    const at::Tensor x = values({2, 4, 3}) * own;
    const at::Tensor sum = values({2, 4, 3}) * 3;
    const auto reduced =
        passes(x, x, [&](const auto& t) { return reduce_from_ranks(t, *rank.group); });
    expect_close(reduced.y, sum);
    expect_close(reduced.x_gradient, x);

    const at::Tensor part = rank.group->own_part(values({2, 4, 3}), 1);
    const auto scattered =
        passes(x, part, [&](const auto& t) { return scatter_to_ranks(t, *rank.group, 1); });
    expect_close(scattered.y, rank.group->own_part(sum, 1));
    expect_close(scattered.x_gradient, values({2, 4, 3}));

    const at::Tensor last = rank.group->own_part(values({2, 3, 4}), 2).contiguous();
    const auto joined = passes(last, values({2, 3, 4}, 1), [&](const auto& t) {
      return all_gather_whole_gradient(t, *rank.group, -1);
    });
    expect_close(joined.y, values({2, 3, 4}));
    expect_close(joined.x_gradient, rank.group->own_part(values({2, 3, 4}, 1), 2));
  });
}

TEST(Slices, AreWholeAgainTogether) {
  const at::Tensor whole = values({12, 4});
  for (const ShardSpec shared : {ShardSpec{0, 1}, {0, 3}, {1, 1}, {0, 3, 2}, {1, 1, 2}}) {
    for (const int ranks : {1, 2}) {
      std::vector<at::Tensor> slices;
      for (int rank = 0; rank < ranks; ++rank) {
        slices.push_back(slice_of(whole, shared, rank, ranks));
      }
      EXPECT_TRUE(at::equal(assemble(slices, shared), whole));
    }
  }
  // Query, key and value each are sharded.
  const at::Tensor rows = at::arange(12, at::kLong);
  EXPECT_TRUE(at::equal(slice_of(rows, {0, 3}, 1, 2), at::tensor({2, 3, 6, 7, 10, 11}, at::kLong)));
  // Five heads of two features each, over three ranks.
  const at::Tensor heads = at::arange(30, at::kLong);
  std::vector<at::Tensor> slices;
  for (int rank = 0; rank < 3; ++rank) slices.push_back(slice_of(heads, {0, 3, 2}, rank, 3));
  EXPECT_TRUE(at::equal(slices[1], at::tensor({4, 5, 6, 7, 14, 15, 16, 17, 24, 25, 26, 27})));
  EXPECT_TRUE(at::equal(slices[2], at::tensor({8, 9, 18, 19, 28, 29})));
  EXPECT_TRUE(at::equal(assemble(slices, {0, 3, 2}), heads));
  EXPECT_THROW(slice_of(rows, {0, 1}, 0, 13), std::invalid_argument);
  const ShardSpec common{.unit = 6, .common = 2};  // two units, of which four ranks have halves
  slices.clear();
  for (int rank = 0; rank < 4; ++rank) slices.push_back(slice_of(rows, common, rank, 4));
  EXPECT_TRUE(at::equal(slices[1], at::tensor({2, 3, 4, 5}, at::kLong)));
  EXPECT_TRUE(at::equal(slices[2], at::tensor({6, 7, 10, 11}, at::kLong)));
  EXPECT_TRUE(at::equal(assemble(slices, common), rows));
  EXPECT_THROW(slice_of(heads, {0, 3, 2}, 0, 6), std::invalid_argument);
}

struct LinearCase {
  bool gather_output = false;
  Layout layout = Layout::tensor;
  layer_exchange::ExchangeOptions exchange = {};
  bool in_order = false;  // over a backend that behaves as NCCL does
  at::ScalarType dtype = at::kDouble;
  // In float32 enough for oneDNN's products (models/cpu_kernels/linear.h).
  std::int64_t rows = 12;
  std::int64_t features = 4;
  std::int64_t hidden = 8;
};

/// Column then row, as a multi-layer perceptron has them, against the whole layers.
void expect_pair_equals_whole(distributed::RankContext& ranks, const LinearCase& of) {
  Rank rank(ranks, of.exchange, of.in_order);
  const std::int64_t rows = of.rows;
  const std::int64_t features = of.features;
  const std::int64_t hidden = of.hidden;
  const bool rounds = of.dtype == at::kFloat;
  // In either format the same numbers.
  const auto numbers = [](at::IntArrayRef sizes, double start) {
    return values(sizes, start).to(at::kFloat).to(at::kDouble);
  };
  const at::Tensor up = numbers({hidden, features}, 0);
  const at::Tensor up_bias = numbers({hidden}, 1);
  const at::Tensor down = numbers({features, hidden}, 2);
  const at::Tensor down_bias = numbers({features}, 3);
  const at::Tensor x = numbers({1, rows, features}, 4);
  const auto own = [&](const at::Tensor& whole, std::int64_t dimension) {
    return slice_of(whole, {dimension, 1}, rank.group->rank(), rank.group->size()).to(of.dtype);
  };
  const auto expect_own = [&](const at::Tensor& found, const at::Tensor& exact) {
    const double largest = exact.abs().max().item<double>();
    expect_close(found.to(at::kDouble), exact.to(at::kDouble), rounds ? 1e-4 * largest : 1e-12);
  };
  ColumnParallelLinear column("up", own(up, 0), own(up_bias, 0), *rank.group,
                              {of.layout, of.gather_output});
  RowParallelLinear row("down", own(down, 1), down_bias.to(of.dtype, false, true), *rank.group,
                        of.layout);
  const bool by_sequence = of.layout == Layout::sequence;
  const auto part = [&](const at::Tensor& t) {
    return by_sequence ? rank.group->own_part(t, 1).contiguous() : t;
  };
  const at::Tensor gradient = numbers({1, rows, features}, 5);
  const auto shared = passes(part(x).to(of.dtype), part(gradient).to(of.dtype), [&](const auto& t) {
    const at::Tensor middle = column.forward(t);
    return row.forward(of.gather_output ? rank.group->own_part(middle, -1) : middle);
  });

  std::vector<at::Tensor> whole;
  for (const auto& t : {up, up_bias, down, down_bias}) {
    whole.push_back(t.clone().requires_grad_(true));
  }
  const auto expected = passes(x, gradient, [&](const auto& t) {
    return at::linear(at::linear(t, whole[0], whole[1]), whole[2], whole[3]);
  });
  expect_own(shared.y, part(expected.y));
  expect_own(shared.x_gradient, part(expected.x_gradient));
  expect_own(column.parameters()[0].tensor.grad(), own(whole[0].grad(), 0));
  expect_own(column.parameters()[1].tensor.grad(), own(whole[1].grad(), 0));
  expect_own(row.parameters()[0].tensor.grad(), own(whole[2].grad(), 1));
  if (!by_sequence) expect_own(row.parameters()[1].tensor.grad(), whole[3].grad());

  std::int64_t calls = 0;
  for (const auto& [collective, count] : rank.processes->counts()) {
    using Kind = Exchange::Kind;
    std::vector<Exchange> exchanges = {{Kind::input, features}, {Kind::sum, features}};
    if (of.gather_output) exchanges.push_back({Kind::outputs, hidden});
    Communication formula =
        communication_of(exchanges, {of.layout, of.exchange.keep_gathered, rank.group->size()},
                         {.positions = rows, .element_bytes = rounds ? 4 : 8});
    EXPECT_EQ(formula[collective].calls, count.calls) << collective;
    EXPECT_EQ(formula[collective].payload_bytes, count.payload_bytes) << collective;
    calls += count.calls;
  }
  EXPECT_EQ(rank.group->take_collectives().size(), static_cast<std::size_t>(calls));
  EXPECT_TRUE(rank.group->take_collectives().empty());
}

TEST(ParallelLinear, APairEqualsTheWholeLayers) {
  for (const int ranks : {1, 2, 4}) {
    for (const bool overlap : {true, false}) {
      const layer_exchange::ExchangeOptions exchange{.overlap = overlap};
      const layer_exchange::ExchangeOptions keeping{.overlap = overlap, .keep_gathered = true};
      for (const LinearCase of :
           {LinearCase{.exchange = exchange},
            LinearCase{.gather_output = true, .exchange = exchange},
            LinearCase{.layout = Layout::sequence, .exchange = exchange},
            LinearCase{.layout = Layout::sequence, .exchange = keeping},
            LinearCase{.exchange = exchange, .in_order = true},
            LinearCase{.layout = Layout::sequence, .exchange = exchange, .in_order = true}}) {
        runtime::on_ranks(ranks, [&](distributed::RankContext& context) {
          expect_pair_equals_whole(context, of);
        });
      }
    }
  }
}

TEST(ParallelLinear, APairInFloat32IsTheWholeLayersRounded) {
  for (const int ranks : {1, 2, 4}) {
    for (LinearCase of : {LinearCase{}, LinearCase{.gather_output = true},
                          LinearCase{.layout = Layout::sequence}}) {
      of.dtype = at::kFloat;
      of.rows = 60;
      of.features = 264;
      of.hidden = 520;
      runtime::on_ranks(
          ranks, [&](distributed::RankContext& context) { expect_pair_equals_whole(context, of); });
    }
  }
}

/// Counts the matrix products that this thread begins while a collective is in flight, that is
/// between its call and its wait.
class ProductsInFlight {
 public:
  explicit ProductsInFlight(Rank& rank) {
    handle_ = at::addThreadLocalCallback(at::RecordFunctionCallback(
        [](const at::RecordFunction& function) -> std::unique_ptr<at::ObserverContext> {
          const std::string_view name = function.name();
          if (name == "aten::mm" || name.starts_with("aten::addmm")) observed->note();
          return nullptr;
        }));
    rank_ = &rank;
    observed = this;
  }
  ProductsInFlight(const ProductsInFlight&) = delete;
  ProductsInFlight& operator=(const ProductsInFlight&) = delete;
  ~ProductsInFlight() {
    at::removeCallback(handle_);
    observed = nullptr;
  }

  int count() const { return count_; }

 private:
  void note() {
    waited_ += static_cast<std::int64_t>(rank_->group->take_collectives().size());
    std::int64_t begun = 0;
    for (const auto& [collective, calls] : rank_->processes->counts()) begun += calls.calls;
    if (begun > waited_) ++count_;
  }

  static thread_local ProductsInFlight* observed;  // a callback of ATen's captures nothing
  Rank* rank_ = nullptr;
  at::CallbackHandle handle_ = 0;
  std::int64_t waited_ = 0;
  int count_ = 0;
};

thread_local ProductsInFlight* ProductsInFlight::observed = nullptr;

/// Of a column-parallel layer's backward pass: how many of its two products are begun while a
/// collective is in flight.
int products_in_flight(distributed::RankContext& ranks, Layout layout,
                       const layer_exchange::ExchangeOptions& exchange) {
  Rank rank(ranks, exchange);
  ColumnParallelLinear column("up", values({8, 4}), {}, *rank.group, {layout, false});
  const at::Tensor y = column.forward(values({1, 6, 4}).requires_grad_(true)).sum();
  const ProductsInFlight products(rank);
  y.backward();
  const auto counts = rank.processes->counts();
  EXPECT_EQ(counts.at(layout == Layout::tensor ? "all_reduce" : "reduce_scatter").calls, 1);
  return products.count();
}

/// The input's gradient is sent on the way before the weight's is computed, and by sequence the
/// input is gathered again while the former is; without overlap each is waited for first.
TEST(ParallelLinear, CollectivesTravelBesideTheProducts) {
  for (const bool keep_gathered : {false, true}) {
    for (const bool overlap : {true, false}) {
      runtime::on_ranks(2, [&](distributed::RankContext& ranks) {
        const layer_exchange::ExchangeOptions exchange{overlap, keep_gathered};
        EXPECT_EQ(products_in_flight(ranks, Layout::tensor, exchange), overlap ? 1 : 0);
      });
      runtime::on_ranks(2, [&](distributed::RankContext& ranks) {
        const layer_exchange::ExchangeOptions exchange{overlap, keep_gathered};
        EXPECT_EQ(products_in_flight(ranks, Layout::sequence, exchange), !overlap        ? 0
                                                                         : keep_gathered ? 1
                                                                                         : 2);
      });
    }
  }
}

/// Of a backward pass in two halves: only the second makes the gradients of the own slices, and
/// gathers for them.
void expect_deferred(distributed::RankContext& ranks, Layout layout) {
  Rank rank(ranks);
  ColumnParallelLinear column("up", values({8, 4}), values({8}, 1), *rank.group, {layout, false});
  RowParallelLinear row("down", values({4, 8}, 2), values({4}, 3), *rank.group, layout);
  VocabParallelEmbedding embedding("embedding", values({5, 4}, 6), values({6, 4}, 7),
                                   {.vocabulary = 10, .longest_sequence = 6}, *rank.group, layout);
  const at::Tensor ids = at::tensor({0, 4, 5, 9, 7, 2}, at::kLong).view({1, 6});
  std::vector<at::Tensor> all;
  for (models::Layer* layer : std::initializer_list<models::Layer*>{&column, &row, &embedding}) {
    for (const auto& [name, tensor] : layer->parameters()) all.push_back(tensor);
  }
  const auto deferred = c10::make_intrusive<models::DeferredWeightGradients>();
  at::Tensor y;
  {
    const models::DeferWeightGradientsGuard deferring(deferred);
    y = row.forward(column.forward(embedding.forward(ids)));
  }
  y.backward(values(y.sizes(), 5));
  for (const at::Tensor& parameter : all) EXPECT_FALSE(parameter.grad().defined());
  EXPECT_EQ(deferred->size(), all.size());
  const auto gathers = [&] { return rank.processes->counts()["all_gather"].calls; };
  const std::int64_t before = gathers();
  deferred->run();
  for (const at::Tensor& parameter : all) EXPECT_TRUE(parameter.grad().defined());
  EXPECT_EQ(gathers() - before, layout == Layout::sequence ? 1 : 0);
}

TEST(ParallelLayers, DeferTheirWeightGradients) {
  for (const Layout layout : {Layout::tensor, Layout::sequence}) {
    runtime::on_ranks(
        2, [layout](distributed::RankContext& ranks) { expect_deferred(ranks, layout); });
  }
}

/// This rank's columns of logits over a vocabulary, which two ranks may not divide.
at::Tensor own_logits(const at::Tensor& logits, const Rank& rank) {
  return slice_of(logits, {.dimension = 2}, rank.group->rank(), rank.group->size());
}

TEST(VocabParallel, CrossEntropyIsThatOfTheWholeLogits) {
  for (const std::int64_t vocabulary : {10, 11}) {
    runtime::on_ranks(2, [vocabulary](distributed::RankContext& ranks) {
      Rank rank(ranks);
      const at::Tensor logits =
          values({2, 3, vocabulary}) * 30;  // large enough to overflow without a maximum
      const at::Tensor targets = at::tensor({0, 4, 5, 9, 7, 2}, at::kLong).view({2, 3});
      const auto whole = passes(logits, at::scalar_tensor(1.0, at::kDouble), [&](const auto& t) {
        return at::cross_entropy_loss(t.flatten(0, 1), targets.flatten()).mul(0.25);
      });
      const auto shared =
          passes(own_logits(logits, rank), at::scalar_tensor(1.0, at::kDouble), [&](const auto& t) {
            return vocab_parallel_cross_entropy(t, targets, 0.25, vocabulary, at::kDouble,
                                                *rank.group);
          });
      expect_close(shared.y, whole.y);
      expect_close(shared.x_gradient, own_logits(whole.x_gradient, rank));
      const auto counted = rank.processes->counts().at("all_reduce");
      const auto formula = communication_of({{Exchange::Kind::loss, vocabulary}}, {.ranks = 2},
                                            {.positions = 6, .loss_bytes = 8})
                               .at("all_reduce");
      EXPECT_EQ(counted.calls, formula.calls);
      EXPECT_EQ(counted.payload_bytes, formula.payload_bytes);
    });
  }
}

// float16 ends at 65504, which a loss of more than 1 exceeds at the scale that a run starts with.
TEST(VocabParallel, CrossEntropyOfHalfLogitsIsComputedInFloat32) {
  for (const at::ScalarType format : {at::kHalf, at::kBFloat16}) {
    runtime::on_ranks(2, [format](distributed::RankContext& ranks) {
      Rank rank(ranks);
      constexpr double scale = 65536;
      const at::Tensor logits = values({2, 3, 10}).mul(3).to(format);
      const at::Tensor targets = at::tensor({0, 4, 5, 9, 7, 2}, at::kLong).view({2, 3});
      const auto whole = passes(logits, at::scalar_tensor(1.0), [&](const auto& t) {
        return at::cross_entropy_loss(t.to(at::kFloat).flatten(0, 1), targets.flatten()).mul(scale);
      });
      const auto shared =
          passes(own_logits(logits, rank), at::scalar_tensor(1.0), [&](const auto& t) {
            return vocab_parallel_cross_entropy(t, targets, scale, 10, at::kFloat, *rank.group);
          });
      EXPECT_EQ(shared.y.scalar_type(), at::kFloat);
      EXPECT_EQ(shared.x_gradient.scalar_type(), format);
      EXPECT_TRUE(shared.y.isfinite().item<bool>());
      expect_close(shared.y / scale, whole.y / scale, 1e-6);
      const at::Tensor expected = own_logits(whole.x_gradient, rank).to(at::kDouble);
      const double ulp = format == at::kHalf ? 1e-3 : 8e-3;
      expect_close(shared.x_gradient.to(at::kDouble), expected,
                   ulp * expected.abs().max().item<double>());
    });
  }
}

// The largest of some rows lie on either rank, and in one row two are equal.
TEST(VocabParallel, CorrectPredictionsAreThoseOfTheWholeLogits) {
  for (const std::int64_t vocabulary : {10, 11}) {
    runtime::on_ranks(2, [vocabulary](distributed::RankContext& ranks) {
      Rank rank(ranks);
      const at::Tensor logits = values({2, 3, vocabulary});
      logits[0][1][3] = logits[0][1][8] = 100;
      const at::Tensor best = logits.argmax(2);
      for (const std::int64_t off : {0, 5}) {  // the same place of the other rank's half
        const at::Tensor targets = (best + off).remainder(vocabulary);
        EXPECT_EQ(vocab_parallel_correct_predictions(own_logits(logits, rank), targets, vocabulary,
                                                     *rank.group)
                      .item<std::int64_t>(),
                  off == 0 ? 6 : 0);
      }
      EXPECT_LT(best.min().item<std::int64_t>(), 5);
      EXPECT_GE(best.max().item<std::int64_t>(), 5);
    });
  }
}

void expect_embedding_of_the_whole_table(Layout layout, std::int64_t vocabulary) {
  runtime::on_ranks(2, [=](distributed::RankContext& ranks) {
    Rank rank(ranks);
    const at::Tensor table = values({vocabulary, 4});
    const at::Tensor positions = values({6, 4}, 1);
    models::TokenEmbeddingLayer whole("embedding", {vocabulary, 6, 4},
                                      models::InitialValues::constant(0));
    whole.materialise(0, at::kCPU, at::kDouble, at::MemoryFormat::Contiguous);
    whole.token().detach().copy_(table);
    whole.position().detach().copy_(positions);
    VocabParallelEmbedding shared("embedding", slice_of(table, {0, 1}, rank.group->rank(), 2),
                                  positions.clone(), {vocabulary, 6, 4}, *rank.group, layout);
    const at::Tensor ids = at::tensor({0, 4, 5, 9, 7, 2, 2, 5}, at::kLong).view({2, 4});
    const auto part = [&](const at::Tensor& t) {
      return layout == Layout::sequence ? rank.group->own_part(t, 1).contiguous() : t;
    };
    const at::Tensor gradient = values({2, 4, 4}, 2);
    const at::Tensor expected = whole.forward(ids);
    expected.backward(gradient);
    const at::Tensor found = shared.forward(ids);
    found.backward(part(gradient));
    expect_close(found.detach(), part(expected.detach()));
    expect_close(shared.parameters()[0].tensor.grad(),
                 slice_of(whole.parameters()[0].tensor.grad(), {0, 1}, rank.group->rank(), 2));
    EXPECT_EQ(shared.output_shape({2, 4}),
              (models::Shape{2, layout == Layout::sequence ? 2 : 4, 4}));
  });
}

TEST(VocabParallel, EmbeddingIsThatOfTheWholeTable) {
  for (const Layout layout : {Layout::tensor, Layout::sequence}) {
    for (const std::int64_t vocabulary : {10, 11}) {
      expect_embedding_of_the_whole_table(layout, vocabulary);
    }
  }
}

}  // namespace
}  // namespace stratagem::tensor_parallel::tensor_parallel_test
