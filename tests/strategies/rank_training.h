// One rank's part of a training that is spread over several: its devices and its process groups.
#pragma once

#include <functional>
#include <memory>
#include <numeric>
#include <vector>

#include "strategies/presets/staged.h"
#include "strategies/ranks/mesh.h"
#include "strategies/schedules/registry.h"
#include "strategies/stages/layer_groups.h"
#include "strategies/stages/partition.h"
#include "strategies/stages/staged_strategy.h"
#include "tests/strategies/in_order_backend.h"
#include "tests/strategies/rank_threads.h"
#include "tests/strategies/training.h"

namespace stratagem::strategies {

struct Spread {
  int replicas = 1;
  int pipeline_ranks = 1;
  int devices_per_rank = 1;
  int tensor_ranks = 1;
  int context_ranks = 1;
  bool in_order = false;  // over a backend that behaves as NCCL does
  bool sharded = false;   // gradients are, over the replicas
  int shard_groups = 1;   // of replicas, over each of which they are
  backends::DeviceGroup (*devices)(int) = unpinned_devices;

  int ranks_per_replica() const { return pipeline_ranks * context_ranks * tensor_ranks; }
  int ranks() const { return replicas * ranks_per_replica(); }
  int stages() const { return pipeline_ranks * devices_per_rank; }
};

/// Runs a test of what has a Spread over Gloo and, where it has ranks, over a backend that behaves
/// as NCCL does.
template <class Case, class Test>
void over_both_backends(Case of, const Test& test) {
  for (const bool in_order : {false, true}) {
    if (in_order && of.spread.ranks() == 1) return;
    of.spread.in_order = in_order;
    SCOPED_TRACE(in_order ? "in order" : "over Gloo");
    test(of);
  }
}

/// Over a backend that behaves as NCCL does, for what a Gloo without order has shown elsewhere.
template <class Case, class Test>
void over_the_backend_in_order(Case of, const Test& test) {
  of.spread.in_order = of.spread.ranks() > 1;
  SCOPED_TRACE("in order");
  test(of);
}

/// Returns the ranks of which `holds` is true.
inline std::vector<int> those(std::vector<int> ranks, const std::function<bool(int)>& holds) {
  std::erase_if(ranks, [&](int rank) { return !holds(rank); });
  return ranks;
}

struct RankTraining : Training {
  RankTraining(distributed::RankContext& ranks, const models::WorkloadOptions& options,
               const Spread& of)
      : Training(options, of.devices(of.devices_per_rank)), spread(of), rank(ranks.info().rank) {
    std::vector<int> everyone(static_cast<std::size_t>(of.ranks()));
    std::iota(everyone.begin(), everyone.end(), 0);
    all = make(ranks, "all", everyone);
    const stratagem::ranks::Mesh mesh({{"data", of.replicas},
                                       {"pipeline", of.pipeline_ranks},
                                       {"context", of.context_ranks},
                                       {"tensor", of.tensor_ranks}});
    const std::vector<int> counterparts = mesh.group(rank, {"data", "context"});
    const int each = of.replicas / of.shard_groups;
    const auto replica = [&](int other) { return mesh.coordinate(other, "data"); };
    const auto shards_with = [&](int other) {
      return replica(other) / each == replica(rank) / each;
    };
    const auto has_the_same_shard = [&](int other) {
      return replica(other) % each == replica(rank) % each &&
             mesh.coordinate(other, "context") == mesh.coordinate(rank, "context");
    };
    for (int device = 0; counterparts.size() > 1 && device < of.devices_per_rank; ++device) {
      const std::string number = std::to_string(device);
      data.push_back(make(ranks, "data" + number, counterparts));
      if (of.shard_groups == 1) continue;
      shards.push_back(make(ranks, "shards" + number, those(counterparts, shards_with)));
      copies.push_back(make(ranks, "copies" + number, those(counterparts, has_the_same_shard)));
    }
    if (of.tensor_ranks > 1) tensor = make(ranks, "tensor", mesh.group(rank, {"tensor"}));
    if (of.context_ranks > 1) context_group = make(ranks, "context", mesh.group(rank, {"context"}));
    const std::vector<int> with_gradients =
        of.sharded ? those(everyone, shards_with) : mesh.group(rank, {"pipeline", "tensor"});
    const bool needs_norm = options.optimizer.clip_norm > 0 || options.loss_scale != 1;
    if (needs_norm && with_gradients.size() > 1) {
      norm = make(ranks, "norm", with_gradients);
    }
    if (of.pipeline_ranks == 1) return;
    const std::vector<int> own = mesh.group(rank, {"pipeline"});
    activations = make(ranks, "activations", own);
    gradients = make(ranks, "gradients", own);
    activations_around = make(ranks, "activations around", own);
    gradients_around = make(ranks, "gradients around", own);
  }
  ~RankTraining() { strategy.reset(); }

  StrategyContext rank_context(StrategyOptions options = {}) {
    cut_if_missing(options, spread.stages());
    options.replicas_of_shards = spread.shard_groups;
    StrategyContext own = context(options);
    own.groups.all = all.get();
    own.groups.replica = rank / spread.ranks_per_replica();
    own.groups.replicas = spread.replicas;
    for (const auto& each : data) own.groups.data.push_back(each.get());
    for (const auto& each : shards) own.groups.shards.push_back(each.get());
    for (const auto& each : copies) own.groups.copies.push_back(each.get());
    own.groups.activations = activations.get();
    own.groups.gradients = gradients.get();
    own.groups.activations_around = activations_around.get();
    own.groups.gradients_around = gradients_around.get();
    own.groups.tensor = tensor.get();
    own.groups.context = context_group.get();
    own.groups.norm = norm.get();
    return own;
  }

  void reset_counts() {
    for (distributed::ProcessGroup* each : groups()) each->reset_counts();
  }

  distributed::CommunicationCounts counts() {
    distributed::CommunicationCounts total;
    for (distributed::ProcessGroup* each : groups()) add(total, each->counts());
    return total;
  }

  Spread spread;
  int rank;
  std::unique_ptr<distributed::ProcessGroup> all;
  std::vector<std::unique_ptr<distributed::ProcessGroup>> data;
  std::vector<std::unique_ptr<distributed::ProcessGroup>> shards;
  std::vector<std::unique_ptr<distributed::ProcessGroup>> copies;
  std::unique_ptr<distributed::ProcessGroup> activations;
  std::unique_ptr<distributed::ProcessGroup> gradients;
  std::unique_ptr<distributed::ProcessGroup> activations_around;
  std::unique_ptr<distributed::ProcessGroup> gradients_around;
  std::unique_ptr<distributed::ProcessGroup> tensor;
  std::unique_ptr<distributed::ProcessGroup> context_group;
  std::unique_ptr<distributed::ProcessGroup> norm;

 private:
  std::unique_ptr<distributed::ProcessGroup> make(distributed::RankContext& ranks,
                                                  const std::string& name,
                                                  const std::vector<int>& members) {
    distributed::BackendOptions backend;
    backend.timeout = std::chrono::seconds(20);
    auto made = ranks.make_group(name, members, "gloo", *group.devices[0], backend);
    if (!spread.in_order) return made;
    return distributed::in_order(*made, name, *group.devices[0]);
  }

  std::vector<distributed::ProcessGroup*> groups() {
    std::vector<distributed::ProcessGroup*> present;
    for (const auto* each : {&all, &activations, &gradients, &activations_around, &gradients_around,
                             &tensor, &context_group, &norm}) {
      if (*each) present.push_back(each->get());
    }
    for (const auto* of_devices : {&data, &shards, &copies}) {
      for (const auto& each : *of_devices) present.push_back(each.get());
    }
    return present;
  }
};

/// Plans of this outline, as presets make them.
inline stages::Planner planner_of(const StrategyContext& context, const PlanOutline& outline) {
  return [request = stages::plan_request(context), outline](std::int64_t samples) {
    PlanRequest of_batch = request;
    of_batch.samples = samples;
    return plan_of(of_batch, outline);
  };
}

/// The plans of presets with replicas and one stage.
inline stages::Planner planner_of_replicas(const StrategyContext& context) {
  return planner_of(context, {.cut_by = MicroBatchOption::accumulation_steps});
}

}  // namespace stratagem::strategies
