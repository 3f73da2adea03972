#include "strategies/distributed/rank_context.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <stdexcept>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>

#include "strategies/ranks/key_value_store.h"
#include "strategies/runtime/first_line.h"

namespace stratagem::distributed {
namespace {

c10::intrusive_ptr<c10d::Store> connect(const Rendezvous& rendezvous) {
  c10d::TCPStoreOptions options;
  options.port = rendezvous.port;
  options.isServer = rendezvous.serve;
  options.timeout = rendezvous.timeout;
  options.waitWorkers = false;
  if (rendezvous.serve && rendezvous.listening_fd) options.masterListenFd = rendezvous.listening_fd;
  try {
    const auto store = c10::make_intrusive<c10d::TCPStore>(rendezvous.address, options);
    store->setTimeout(rendezvous.timeout);
    return c10::make_intrusive<c10d::PrefixStore>(rendezvous.prefix, store);
  } catch (const std::exception& error) {
    throw runtime::CommunicationError(fmt::format(
        "rank {} cannot {} the store at {}: {}", rendezvous.info.rank,
        rendezvous.serve ? "serve" : "reach",
        ranks::host_and_port(rendezvous.address, rendezvous.port), runtime::first_line(error)));
  }
}

}  // namespace

RankContext::RankContext(const Rendezvous& rendezvous)
    : info_(rendezvous.info),
      timeout_(rendezvous.timeout),
      store_(connect(rendezvous)),
      serves_(rendezvous.serve) {}

std::vector<std::string> RankContext::all_gather(const std::string& text) {
  const std::int64_t exchange = exchanges_++;
  const auto key = [&](int rank) { return fmt::format("exchange/{}/{}", exchange, rank); };
  int other = info_.rank;
  try {
    store_->set(key(info_.rank), text);
    std::vector<std::string> texts;
    for (other = 0; other < info_.world_size; ++other) {
      texts.push_back(other == info_.rank ? text : store_->get_to_str(key(other)));
    }
    return texts;
  } catch (const std::exception& error) {
    throw runtime::CommunicationError(fmt::format(
        "rank {} waited {:g} s (--timeout) for rank {} in vain: {}", info_.rank,
        std::chrono::duration<double>(timeout_).count(), other, runtime::first_line(error)));
  }
}

void RankContext::leave() {
  const auto key = [](int rank) { return fmt::format("left/{}", rank); };
  int other = info_.rank;
  try {
    store_->set(key(info_.rank), "1");
    for (other = 0; serves_ && other < info_.world_size; ++other) store_->wait({key(other)});
  } catch (const std::exception& error) {
    throw runtime::CommunicationError(
        fmt::format("rank {} timed out waiting for rank {} to leave: {}", info_.rank, other,
                    runtime::first_line(error)));
  }
}

std::unique_ptr<ProcessGroup> RankContext::make_group(const std::string& name,
                                                      std::vector<int> ranks, Backend backend,
                                                      runtime::Device& device,
                                                      const BackendOptions& options) {
  const auto found = std::ranges::find(ranks, info_.rank);
  if (found == ranks.end()) {
    throw std::logic_error(fmt::format("rank {} is not in group {}", info_.rank, name));
  }
  const int position = static_cast<int>(found - ranks.begin());
  // Two groups of the same name, with other ranks, may form at the same time.
  const auto store = c10::make_intrusive<c10d::PrefixStore>(
      fmt::format("group/{}/{}/{}", groups_++, name, fmt::join(ranks, ",")), store_);
  const int size = static_cast<int>(ranks.size());
  const auto make = backend == "nccl" ? make_nccl_group : make_gloo_group;
  return std::make_unique<ProcessGroup>(name, std::move(ranks), backend, device,
                                        make(store, position, size, options), options.timeout,
                                        gloo_takes_the_loopback(options));
}

}  // namespace stratagem::distributed
