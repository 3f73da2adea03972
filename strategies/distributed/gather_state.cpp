#include "strategies/distributed/gather_state.h"

#include <ATen/ATen.h>
#include <ATen/core/Dict.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <string>

namespace stratagem::distributed {
namespace {

using Entries = c10::Dict<std::string, at::Tensor>;

std::vector<char> to_bytes(const strategies::StateDictionary& state) {
  Entries entries;
  for (const auto& [name, tensor] : state) entries.insert(name, tensor);
  return torch::jit::pickle_save(entries);
}

void add_bytes(const std::vector<char>& bytes, strategies::StateDictionary& state) {
  for (const auto& entry : torch::jit::pickle_load(bytes).toGenericDict()) {
    state[entry.key().toStringRef()] = entry.value().toTensor();
  }
}

/// Returns `bytes` of rank `root` on every rank.
std::vector<char> broadcast(std::vector<char> bytes, int root, distributed::ProcessGroup& group,
                            const at::Device& device) {
  const at::Tensor size =
      at::full({1}, static_cast<std::int64_t>(bytes.size()), at::TensorOptions(at::kLong))
          .to(device);
  group.broadcast(size, root)->wait();
  bytes.resize(static_cast<std::size_t>(size.item<std::int64_t>()));
  const at::Tensor host =
      at::from_blob(bytes.data(), {static_cast<std::int64_t>(bytes.size())}, at::kByte);
  const at::Tensor moved = host.to(device);  // a CPU's own tensor
  group.broadcast(moved, root)->wait();
  if (!moved.is_alias_of(host)) host.copy_(moved);
  return bytes;
}

}  // namespace

std::vector<strategies::StateDictionary> gather_states(const strategies::StateDictionary& own,
                                                       distributed::ProcessGroup& group,
                                                       const at::Device& device) {
  std::vector<strategies::StateDictionary> all(static_cast<std::size_t>(group.size()));
  for (int root = 0; root < group.size(); ++root) {
    auto& state = all[static_cast<std::size_t>(root)];
    if (root == group.rank()) {
      broadcast(to_bytes(own), root, group, device);
      state = own;
    } else {
      add_bytes(broadcast({}, root, group, device), state);
    }
  }
  return all;
}

strategies::StateDictionary gather_state(const strategies::StateDictionary& own,
                                         distributed::ProcessGroup& group,
                                         const at::Device& device) {
  strategies::StateDictionary all;
  for (auto& part : gather_states(own, group, device)) all.merge(part);
  return all;
}

void sum_over_ranks(std::span<double> values, distributed::ProcessGroup& group,
                    const at::Device& device) {
  const auto count = static_cast<std::int64_t>(values.size());
  const at::Tensor host = at::from_blob(values.data(), {count}, at::kDouble);
  const at::Tensor sums = host.to(device, /*non_blocking=*/false, /*copy=*/true);
  group.all_reduce(sums)->wait();
  host.copy_(sums);
}

double sum_over_ranks(double value, distributed::ProcessGroup& group, const at::Device& device) {
  sum_over_ranks(std::span(&value, 1), group, device);
  return value;
}

}  // namespace stratagem::distributed
