#include "bench/launch/launch.h"

#include <memory>

#include "bench/launch/local_rank.h"
#include "bench/launch/rank_supervisor.h"
#include "strategies/ranks/listening_socket.h"

namespace stratagem::bench {

LaunchResult launch(const Job& job, const LaunchOptions& options) {
  const int count = header_of(job).ranks;
  const std::chrono::duration<double> patience(header_of(job).timeout);
  RankHandles ranks;
  if (count == 1) {
    ranks.push_back(std::make_unique<LocalRank>(0, job, options, -1));
    return RankSupervisor(ranks, options, patience).run();
  }
  ranks::ListeningSocket place = ranks::listen_on("127.0.0.1");
  Job own = job;
  for (int rank = 0; rank < count; ++rank) {
    RendezvousPoint& point = header_of(own).rendezvous.emplace();
    point.info = {rank, count, rank, count};
    point.port = place.port;
    if (rank == 0) point.listening_fd = inherited_store_fd;
    ranks.push_back(
        std::make_unique<LocalRank>(rank, own, options, rank == 0 ? place.socket.get() : -1));
  }
  place.socket.reset();
  return RankSupervisor(ranks, options, patience).run();
}

}  // namespace stratagem::bench
