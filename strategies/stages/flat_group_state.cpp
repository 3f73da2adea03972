// A group's part of a strategy's state, gathered on request and sharded on loading.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <stdexcept>

#include "strategies/backends/backend.h"
#include "strategies/backends/memory_accounting.h"
#include "strategies/distributed/state_pieces.h"
#include "strategies/stages/flat_group.h"

namespace stratagem::stages {
namespace {

constexpr std::string_view of_optimizer = "optimizer.";

const at::Tensor& entry_of(const strategies::StateDictionary& state, const std::string& name) {
  const auto found = state.find(name);
  if (found != state.end()) return found->second;
  throw std::invalid_argument(fmt::format("the state has no entry \"{}\"", name));
}

/// Returns the state's prefixes for this parameter, "optimizer.exp_avg." and so on.
std::vector<std::string> optimizer_prefixes(const strategies::StateDictionary& state,
                                            const std::string& parameter) {
  std::vector<std::string> prefixes;
  for (const auto& [name, tensor] : state) {
    if (!name.starts_with(of_optimizer) || !name.ends_with("." + parameter)) continue;
    const std::string prefix = name.substr(0, name.size() - parameter.size());
    const std::string kind = prefix.substr(of_optimizer.size());
    if (kind.find('.') + 1 == kind.size()) prefixes.push_back(prefix);
  }
  return prefixes;
}

at::Tensor copy_on_host(const at::Tensor& tensor) {
  return tensor.detach().to(at::kCPU, tensor.scalar_type(), false, /*copy=*/true);
}

}  // namespace

at::Tensor FlatGroup::whole_of(const at::Tensor& shard) const {
  if (!is_sharded()) return shard;
  const at::Tensor whole = at::empty({layout_.size()}, shard.options().requires_grad(false));
  options_.ranks->all_gather(whole, shard.detach())->wait();
  return whole;
}

void FlatGroup::add_views(const std::string& prefix, const at::Tensor& shard,
                          strategies::StateDictionary& all) const {
  const at::Tensor whole = whole_of(shard);
  for (std::size_t index = 0; index < parameters_.size(); ++index) {
    all[prefix + parameters_[index].name] = copy_on_host(view_of(whole, index));
  }
}

void FlatGroup::add_state(strategies::StateDictionary& all) const {
  for (const auto& [name, tensor] : models::buffers(stage_.layers())) {
    all[name] = copy_on_host(tensor);
  }
  if (empty()) return;
  add_views("", shard_, all);
  if (shard_.grad().defined()) add_views("gradient.", shard_.grad(), all);
  for (const auto& [prefix, tensor] : stage_.optimizer().state()) {
    if (tensor.dim() > 0) {
      add_views(prefix, tensor, all);
      continue;
    }
    for (const auto& [name, parameter] : parameters_) all[prefix + name] = copy_on_host(tensor);
  }
}

void FlatGroup::add_runs(const std::string& prefix, const at::Tensor& shard,
                         strategies::StatePieces& all) const {
  const at::Tensor values = shard.detach();
  for (std::size_t index = 0; index < parameters_.size(); ++index) {
    const Range part = layout_.part_of(index, own());
    if (part.count == 0) continue;
    const std::int64_t start =
        layout_.shard(own()).start + part.start - layout_.parameters()[index].start;
    const auto& [name, tensor] = parameters_[index];
    all.push_back(distributed::run_of(prefix + name, tensor,
                                      values.narrow(0, part.start, part.count), start));
  }
}

void FlatGroup::add_pieces(bool first_replica, bool with_gradients,
                           strategies::StatePieces& all) const {
  const auto add = [&](const std::string& name, const at::Tensor& tensor) {
    all.push_back(distributed::piece_of(name, tensor));
  };
  if (first_replica) {
    for (const auto& [name, tensor] : models::buffers(stage_.layers())) add(name, tensor);
  }
  const bool is_a_copy = options_.copies != nullptr && options_.copies->rank() != 0;
  if (empty()) return;
  if (!is_a_copy) add_runs("", shard_, all);
  if (!is_a_copy && with_gradients && shard_.grad().defined()) {
    add_runs("gradient.", shard_.grad(), all);
  }
  for (const auto& [prefix, tensor] : stage_.optimizer().state()) {
    if (tensor.dim() > 0) {
      if (!is_a_copy) add_runs(prefix, tensor, all);
    } else if (first_replica) {
      for (const auto& [name, parameter] : parameters_) add(prefix + name, tensor);
    }
  }
}

at::Tensor FlatGroup::flattened(const strategies::StateDictionary& state,
                                const std::string& prefix) const {
  const at::Tensor flat =
      at::zeros({layout_.size()},
                entry_of(state, prefix + parameters_.front().name).options().device(at::kCPU));
  for (std::size_t index = 0; index < parameters_.size(); ++index) {
    const auto& [name, tensor] = parameters_[index];
    const at::Tensor entry = entry_of(state, prefix + name);
    if (entry.sizes() != tensor.sizes()) {
      throw std::invalid_argument(
          fmt::format("the state's \"{}\" has another shape", prefix + name));
    }
    view_of(flat, index).copy_(entry);
  }
  return flat;
}

void FlatGroup::load(const strategies::StateDictionary& state) {
  const at::NoGradGuard no_gradient;
  for (const auto& [name, tensor] : models::buffers(stage_.layers())) {
    tensor.detach().copy_(entry_of(state, name));
  }
  if (empty()) return;
  shard_.copy_(own_shard_of(flattened(state, "")));
  strategies::StateDictionary own;
  const std::string& first = parameters_.front().name;
  for (const std::string& prefix : optimizer_prefixes(state, first)) {
    const at::Tensor& entry = state.at(prefix + first);
    own[prefix] = entry.dim() == 0 && prefix.ends_with(".step.")
                      ? entry
                      : own_shard_of(flattened(state, prefix));
  }
  const backends::MemoryAccountGuard charged(backends::account_of(stage_.device()));
  stage_.optimizer().load(own);
  for (const auto& entry : stage_.optimizer().state()) {
    backends::retag(entry.tensor, backends::MemoryCategory::optimizer);
  }
  publish();
  backends::finish(shard_);
}

}  // namespace stratagem::stages
