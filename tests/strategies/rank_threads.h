// Several ranks in one process, each a thread: what tests of collectives and data parallelism run
// on. They meet at a store on a free port of loopback, as processes would.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "strategies/distributed/library_environment.h"
#include "strategies/distributed/rank_context.h"

namespace stratagem::runtime {

/// The variables that the libraries read, for all tests of the program.
class LibraryEnvironment : public ::testing::Environment {
 public:
  void SetUp() override {
    for (const auto& [name, value] : distributed::library_environment({}, /*over_nccl=*/false)) {
      ::setenv(name.c_str(), value.c_str(), /*overwrite=*/1);
    }
  }
};
[[maybe_unused]] inline const auto* const environment_of_libraries =
    ::testing::AddGlobalTestEnvironment(std::make_unique<LibraryEnvironment>().release());

/// Runs `work` for every rank and throws the first rank's exception, if any threw.
inline void on_ranks(int count, const std::function<void(distributed::RankContext&)>& work,
                     std::chrono::milliseconds timeout = std::chrono::seconds(30)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  const int listening = ::socket(AF_INET, SOCK_STREAM, 0);
  ::bind(listening, reinterpret_cast<sockaddr*>(&address), length);
  ::getsockname(listening, reinterpret_cast<sockaddr*>(&address), &length);

  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(count));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < count; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        distributed::Rendezvous rendezvous;
        rendezvous.info = {rank, count, rank, count};
        rendezvous.port = ntohs(address.sin_port);
        rendezvous.serve = rank == 0;
        if (rendezvous.serve) rendezvous.listening_fd = listening;
        rendezvous.timeout = timeout;
        distributed::RankContext context(rendezvous);
        work(context);
        context.leave();
      } catch (...) {
        errors[static_cast<std::size_t>(rank)] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace stratagem::runtime
