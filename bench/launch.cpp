#include "bench/launch.h"

#include <memory>

#include "bench/conversation.h"
#include "bench/rank_process.h"
#include "strategies/runtime/listening_socket.h"

namespace stratagem::bench {

using nlohmann::json;

LaunchResult launch(const json& job, const LaunchOptions& options) {
  RankHandles ranks;
  if (options.ranks == 1) {
    ranks.push_back(std::make_unique<RankProcess>(0, job, options, -1));
    return Conversation(ranks, options).run();
  }
  runtime::ListeningSocket place = runtime::listen_on("127.0.0.1");
  for (int rank = 0; rank < options.ranks; ++rank) {
    json own = job;
    own["rendezvous"] = {{"place", {rank, options.ranks, rank, options.ranks}},
                         {"address", "127.0.0.1"},
                         {"port", place.port},
                         {"timeout", options.rendezvous_timeout.count()}};
    if (rank == 0) own["rendezvous"]["listening_fd"] = inherited_store_fd;
    ranks.push_back(
        std::make_unique<RankProcess>(rank, own, options, rank == 0 ? place.socket.get() : -1));
  }
  place.socket.reset();
  return Conversation(ranks, options).run();
}

}  // namespace stratagem::bench
