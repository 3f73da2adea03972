// From one start, every strategy on every mesh has the losses of one device at every step, tails
// and evaluations included, and ends with its state.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "models/datasets/dataset.h"
#include "models/datasets/random_bits.h"
#include "models/token_data.h"
#include "strategies/distributed/gather_state.h"
#include "tests/strategies/rank_training.h"
#include "training/epoch.h"
#include "training/loop/trainer.h"

namespace stratagem::training::one_curve_test {
namespace {

using strategies::Spread;
using strategies::StrategyOptions;
using testing::DoubleNear;
using testing::Pointwise;

/// A strategy on a mesh.
struct Mesh {
  std::string strategy = "single";
  Spread spread = {};
  StrategyOptions options = {};
};

std::ostream& operator<<(std::ostream& stream, const Mesh& of) {
  return stream << of.strategy << ", " << of.options.schedule << ", " << of.spread.replicas << "x"
                << of.spread.pipeline_ranks << "x" << of.spread.tensor_ranks << " ranks of "
                << of.spread.devices_per_rank << " devices, accumulation "
                << of.options.accumulation_steps << (of.spread.in_order ? ", in order" : "");
}

/// What is trained, and how a batch is shared.
struct Work {
  models::WorkloadOptions workload = {};
  datasets::Datasets data = {};
  TrainingOptions options = {};
  std::int64_t replicas = 0;  // that share a batch; 0: the mesh's
};

struct Curve {
  std::vector<double> losses = {};
  std::vector<double> evaluations = {};
  std::vector<std::int64_t> correct = {};
  strategies::StateDictionary state = {};
  std::vector<schedules::Slice> partition = {};  // of a whole batch
  std::vector<schedules::Slice> half = {};       // of half a batch

  void add(const nlohmann::ordered_json& line) {
    if (line.at("event") == "step") losses.push_back(line.at("loss"));
    if (line.at("event") != "evaluation") return;
    evaluations.push_back(line.at("loss"));
    correct.push_back(line.at("correct"));
  }
};

Curve trained_rank(distributed::RankContext& ranks, const Mesh& mesh, const Work& work) {
  strategies::RankTraining training(ranks, work.workload, mesh.spread);
  training.strategy =
      strategies::find_strategy(mesh.strategy).make(training.rank_context(mesh.options));
  const std::chrono::seconds limit(60);
  const auto sum = [&](std::span<double> numbers) {
    for (double& number : numbers) {
      number = distributed::sum_over_ranks(number, *training.all, at::kCPU);
    }
  };
  Curve curve;
  train({.workload = training.workload,
         .strategy = *training.strategy,
         .devices = training.group.devices,
         .replicas = work.replicas == 0 ? mesh.spread.replicas : work.replicas,
         .sum_over_ranks = sum,
         .timeout = limit},
        work.data, work.options, [&](const nlohmann::ordered_json& line) { curve.add(line); });
  curve.state = training.strategy->state();
  curve.partition = training.strategy->batch_partition(work.workload.batch);
  curve.half = training.strategy->batch_partition(work.workload.batch / 2);
  return curve;
}

/// [rank]
std::vector<Curve> trained(const Mesh& mesh, const Work& work) {
  std::vector<Curve> curves(static_cast<std::size_t>(mesh.spread.ranks()));
  runtime::on_ranks(mesh.spread.ranks(), [&](distributed::RankContext& ranks) {
    curves.at(static_cast<std::size_t>(ranks.info().rank)) = trained_rank(ranks, mesh, work);
  });
  return curves;
}

void expect_one_curve(const std::vector<Curve>& found, const Curve& expected) {
  for (const Curve& curve : found) {
    EXPECT_THAT(curve.losses, Pointwise(DoubleNear(1e-9), expected.losses));
    EXPECT_THAT(curve.evaluations, Pointwise(DoubleNear(1e-9), expected.evaluations));
    EXPECT_EQ(curve.correct, expected.correct);
  }
  // Running statistics are those of the first replica.
  EXPECT_LT(strategies::largest_difference(found.front().state, expected.state), 1e-9);
}

std::vector<Mesh> meshes_of_a_gpt() {
  std::vector<Mesh> all = {
      {"data_parallel", {.devices_per_rank = 2}},
      {"data_parallel", {.devices_per_rank = 3}},
      {"ddp", {.replicas = 2}},
      {"ddp", {.replicas = 3}},
      {"ddp", {.replicas = 2}, {.accumulation_steps = 2}},
      {"ddp", {.replicas = 4}, {.accumulation_steps = 2}},
      {"model_parallel", {.devices_per_rank = 2}},
      {"model_parallel", {.pipeline_ranks = 2}},
      {"pipeline", {.pipeline_ranks = 3}, {.split_size = 5}},
      {"ddp_model_parallel", {.replicas = 2, .devices_per_rank = 2}, {.schedule = "naive"}},
      {"ddp_model_parallel", {.replicas = 2, .pipeline_ranks = 2}, {.schedule = "zb_h1"}},
      {"tensor_parallel", {.replicas = 2, .tensor_ranks = 2}},
      {"zero1", {.replicas = 2, .sharded = true}},
      {"zero2", {.replicas = 3, .sharded = true}, {.accumulation_steps = 2}},
      {"zero3", {.replicas = 2, .sharded = true}, {.accumulation_steps = 2}},
      {"zero3", {.replicas = 2, .pipeline_ranks = 2, .sharded = true}, {.schedule = "1f1b"}},
  };
  all.push_back({"context_parallel", {.context_ranks = 2}});
  all.push_back({"context_parallel", {.context_ranks = 2}, {.context_exchange = "ring"}});
  all.push_back({"context_parallel", {.context_ranks = 4}, {.context_exchange = "gather"}});
  all.push_back({"context_parallel", {.replicas = 2, .context_ranks = 2, .sharded = true}});
  for (const char* schedule : {"gpipe", "1f1b", "interleaved_1f1b", "zb_h1", "zb_v"}) {
    all.push_back({"pipeline", {.devices_per_rank = 2}, {.schedule = schedule}});
    all.push_back({"pipeline", {.pipeline_ranks = 2}, {.schedule = schedule}});
  }
  for (const char* strategy : {"tensor_parallel", "sequence_parallel"}) {
    all.push_back({strategy, {.tensor_ranks = 2}});
    all.push_back({strategy, {.pipeline_ranks = 2, .tensor_ranks = 2}, {.schedule = "zb_h1"}});
    all.push_back({strategy, {.pipeline_ranks = 2, .tensor_ranks = 2}, {.schedule = "zb_v"}});
  }
  for (Mesh& mesh : all) {
    if (mesh.options.split_size == StrategyOptions{}.split_size) mesh.options.split_size = 3;
  }
  return all;
}

/// How an epoch ends concerns those who share its batches.
std::vector<Mesh> meshes_that_share_batches() {
  return {{"data_parallel", {.devices_per_rank = 2}, {.split_size = 3}},
          {"ddp", {.replicas = 3}, {.split_size = 3}},
          {"ddp", {.replicas = 4}, {.split_size = 3, .accumulation_steps = 2}},
          {"ddp_model_parallel",
           {.replicas = 2, .pipeline_ranks = 2},
           {.split_size = 3, .schedule = "zb_h1"}},
          {"zero3", {.replicas = 2, .sharded = true}, {.split_size = 3, .accumulation_steps = 2}}};
}

/// 43 windows of a text and 11 to validate, in batches of 12: of an epoch's four the last has 7.
Work text(const std::string& tail) {
  models::WorkloadOptions workload = strategies::small_workload("gpt-tiny", 12);
  workload.optimizer = {.kind = models::OptimizerOptions::Kind::adamw,
                        .learning_rate = 0.01,
                        .weight_decay = 0.1,
                        .clip_norm = 1};
  Work work{.workload = workload};
  work.data = datasets::make_datasets({.name = "text", .sequence = 8, .validation = 0.2},
                                      models::training_text().substr(0, 8 * 54 + 1));
  work.options.tail = tail;
  work.options.epochs = 2;
  work.options.learning_rate_schedule = "cosine";
  work.options.warmup_steps = 3;
  work.options.loader_threads = 2;
  work.options.log_every = 3;  // steps are in flight while the next are enqueued
  return work;
}

class OneCurveOfATail : public testing::TestWithParam<const char*> {};

TEST_P(OneCurveOfATail, AGptTrainsAlongOneCurveOnEveryMesh) {
  Work work = text(GetParam());
  std::map<int, Curve> expected;
  const bool exact = work.options.tail == "exact";
  for (const Mesh& mesh : exact ? meshes_of_a_gpt() : meshes_that_share_batches()) {
    SCOPED_TRACE(testing::Message() << mesh);
    // One device has the samples of as many replicas in each of its steps.
    work.replicas = mesh.spread.replicas;
    if (!expected.contains(mesh.spread.replicas)) {
      expected[mesh.spread.replicas] = trained({}, work).front();
    }
    const Curve& one_device = expected.at(mesh.spread.replicas);
    EXPECT_EQ(one_device.losses.size(), work.options.tail == "drop" ? 3U : 5U);
    EXPECT_EQ(one_device.evaluations.size(), 3U);
    strategies::over_the_backend_in_order(
        mesh, [&](const Mesh& each) { expect_one_curve(trained(each, work), one_device); });
  }
}

TEST(OneCurve, AGptTrainsAlongItOverGloo) {
  const Work work = text("exact");
  const Curve one_device = trained({}, work).front();
  for (const Mesh& mesh :
       std::vector<Mesh>{{"ddp", {.replicas = 2}, {.split_size = 3}},
                         {"pipeline", {.pipeline_ranks = 2}, {.split_size = 3, .schedule = "zb_v"}},
                         {"zero3", {.replicas = 2, .sharded = true}, {.split_size = 3}},
                         {"sequence_parallel", {.tensor_ranks = 2}, {.split_size = 3}}}) {
    SCOPED_TRACE(testing::Message() << mesh);
    Work own = work;
    own.replicas = mesh.spread.replicas;
    expect_one_curve(trained(mesh, own), own.replicas == 1 ? one_device : trained({}, own).front());
  }
}

TEST(OneCurve, ASampleHasTheDropoutOfOneDeviceWhicheverReplicaTakesIt) {
  Work work = text("exact");
  work.workload.dropout = 0.2;
  const Curve one_device = trained({}, work).front();
  for (const Mesh& mesh :
       std::vector<Mesh>{{"data_parallel", {.devices_per_rank = 2}},
                         {"ddp", {.replicas = 3}},
                         {"context_parallel", {.context_ranks = 2}},
                         {"context_parallel", {.context_ranks = 2}, {.context_exchange = "ring"}},
                         {"zero3", {.replicas = 2, .sharded = true}, {.accumulation_steps = 2}},
                         {"pipeline", {.devices_per_rank = 2}, {.split_size = 3}}}) {
    SCOPED_TRACE(testing::Message() << mesh);
    expect_one_curve(trained(mesh, work), one_device);
  }
}

INSTANTIATE_TEST_SUITE_P(Tails, OneCurveOfATail, testing::Values("pad", "drop", "exact"));

TEST(OneCurve, NoStrategyIsLeftOut) {
  std::set<std::string> tried = {"single"};
  for (const Mesh& mesh : meshes_of_a_gpt()) tried.insert(mesh.strategy);
  const std::vector<std::string> names = strategies::strategy_names();
  EXPECT_EQ(tried, std::set<std::string>(names.begin(), names.end()));
}

/// Images of 36x36, where every normalisation is over eight numbers and more.
class Pictures final : public datasets::Dataset {
 public:
  explicit Pictures(std::int64_t count) : pixels_(static_cast<std::size_t>(count * bytes)) {
    datasets::RandomBits random(1, 1);
    for (std::uint8_t& pixel : pixels_) pixel = static_cast<std::uint8_t>(random.next());
  }
  const datasets::SampleFormat& format() const override { return format_; }
  std::int64_t size() const override { return std::ssize(pixels_) / bytes; }
  datasets::Sample sample(std::int64_t index) const override {
    return {.bytes = std::span(pixels_).subspan(static_cast<std::size_t>(index * bytes), bytes),
            .label = index % 10};
  }

 private:
  static constexpr std::int64_t bytes = 3L * 36 * 36;
  std::vector<std::uint8_t> pixels_;
  datasets::SampleFormat format_{
      .kind = datasets::SampleKind::image, .channels = 3, .height = 36, .width = 36, .classes = 10};
};

/// Another set's samples in the order in which the replicas of a batch read them.
class InOrderOfReplicas final : public datasets::Dataset {
 public:
  InOrderOfReplicas(datasets::DatasetPointer whole, std::int64_t batch, std::int64_t replicas)
      : whole_(std::move(whole)) {
    std::vector<std::int64_t> order(static_cast<std::size_t>(whole_->size()));
    std::iota(order.begin(), order.end(), 0);
    const EpochShape shape{
        .samples = whole_->size(), .batch = batch, .replicas = replicas, .tail = Tail::exact};
    for (const BatchIndices& each : batches_of_an_epoch(order, shape)) {
      order_.insert(order_.end(), each.begin(), each.end());
    }
  }
  const datasets::SampleFormat& format() const override { return whole_->format(); }
  std::int64_t size() const override { return whole_->size(); }
  datasets::Sample sample(std::int64_t index) const override {
    return whole_->sample(order_.at(static_cast<std::size_t>(index)));
  }

 private:
  datasets::DatasetPointer whole_;
  std::vector<std::int64_t> order_;
};

/// 36 pictures in batches of 8, unshuffled: of an epoch's five the last has 4.
Work pictures() {
  Work work{.workload = strategies::small_workload("resnet18", 8)};
  work.workload.loss = models::Loss::cross_entropy;
  work.workload.optimizer = {.learning_rate = 0.02, .momentum = 0.9};
  work.data.training = std::make_shared<Pictures>(36);
  work.data.validation = std::make_shared<Pictures>(8);
  work.options.tail = "exact";
  work.options.shuffle = false;
  work.options.epochs = 2;
  work.options.evaluate_first = false;
  work.options.log_every = 3;
  return work;
}

// BatchNorm's statistics are those of a part of the batch, so that the curves are one where the
// parts are.
TEST(OneCurve, AResnetTrainsAlongItWhereTheSameSamplesAreNormalisedTogether) {
  const std::vector<std::vector<Mesh>> alike = {
      {{"single"},
       {"model_parallel", {.devices_per_rank = 2}},
       {"model_parallel", {.pipeline_ranks = 2}},
       {"pipeline", {.devices_per_rank = 2}, {.split_size = 8}}},
      {{"pipeline", {}, {.split_size = 4, .schedule = "gpipe"}},
       {"pipeline", {.devices_per_rank = 2}, {.split_size = 4, .schedule = "gpipe"}},
       {"pipeline", {.devices_per_rank = 2}, {.split_size = 4, .schedule = "1f1b"}},
       {"pipeline", {.devices_per_rank = 2}, {.split_size = 4, .schedule = "interleaved_1f1b"}},
       {"pipeline", {.pipeline_ranks = 2}, {.split_size = 4, .schedule = "zb_h1"}}},
      {{"ddp", {.replicas = 2}},
       {"data_parallel", {.devices_per_rank = 2}},
       {"ddp_model_parallel", {.replicas = 2, .devices_per_rank = 2}, {.split_size = 4}},
       {"ddp_model_parallel", {.replicas = 2, .pipeline_ranks = 2}, {.split_size = 4}}},
      {{"ddp_model_parallel", {.replicas = 2}, {.split_size = 2, .schedule = "gpipe"}},
       {"ddp_model_parallel", {.replicas = 2, .pipeline_ranks = 2}, {.split_size = 2}},
       {"ddp_model_parallel",
        {.replicas = 2, .devices_per_rank = 2},
        {.split_size = 2, .schedule = "zb_h1"}}},
  };
  for (const std::vector<Mesh>& meshes : alike) {
    const Curve expected = trained(meshes.front(), pictures()).front();
    EXPECT_EQ(expected.losses.size(), 6U);
    for (const Mesh& mesh : std::span(meshes).subspan(1)) {
      SCOPED_TRACE(testing::Message() << mesh);
      Work work = pictures();
      if (mesh.strategy == "data_parallel") {
        work.data.training = std::make_shared<InOrderOfReplicas>(work.data.training, 8, 2);
      }
      strategies::over_the_backend_in_order(mesh, [&](const Mesh& each) {
        const std::vector<Curve> found = trained(each, work);
        EXPECT_EQ(found.front().partition, expected.partition);
        EXPECT_EQ(found.front().half, expected.half);  // the last of an epoch
        expect_one_curve(found, expected);
      });
    }
  }
}

// 1001 samples are no multiple of any number of ranks here: padded, one would count twice.
TEST(OneCurve, EvaluationIsTheSameNumbersOnEveryMesh) {
  Work work{.workload = strategies::small_workload("toy", 144)};
  work.workload.loss = models::Loss::cross_entropy;
  work.data = datasets::make_datasets(
      {.samples = 1001, .features = 10, .outputs = 5, .seed = 3, .validation = -1}, "");
  work.options.max_steps = 1;
  work.options.epochs = 1;
  const Curve expected = trained({}, work).front();
  ASSERT_EQ(expected.evaluations.size(), 2U);
  for (const Mesh& mesh : std::vector<Mesh>{
           {"ddp", {.replicas = 2}},
           {"ddp", {.replicas = 3}},
           {"ddp", {.replicas = 4}},
           {"data_parallel", {.devices_per_rank = 2}},
           {"pipeline", {.devices_per_rank = 2}, {.split_size = 5}},
           {"pipeline", {.pipeline_ranks = 2}, {.split_size = 7, .schedule = "zb_h1"}},
           {"ddp_model_parallel", {.replicas = 2, .pipeline_ranks = 2}, {.split_size = 7}},
           {"tensor_parallel", {.tensor_ranks = 2}}}) {
    SCOPED_TRACE(testing::Message() << mesh);
    strategies::over_the_backend_in_order(mesh, [&](const Mesh& each) {
      for (const Curve& found : trained(each, work)) {
        EXPECT_NEAR(found.evaluations.front(), expected.evaluations.front(), 1e-12);
        EXPECT_EQ(found.correct.front(), expected.correct.front());
      }
    });
  }
}

}  // namespace
}  // namespace stratagem::training::one_curve_test
