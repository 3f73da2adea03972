// A socket bound to a free port in advance. It is passed to rank 0's worker, whose store listens on
// it, so that no other program can take the port in between.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "strategies/runtime/unique_fd.h"

namespace stratagem::ranks {

struct ListeningSocket {
  runtime::UniqueFd socket;
  std::uint16_t port = 0;
};

/// Waits until a host's address or name resolves. Throws CommunicationError with the resolver's
/// reason if it still does not after `timeout`.
void await_resolution(const std::string& address, std::chrono::milliseconds timeout);

/// Binds an IPv4 or IPv6 address or a name of this host; of a name's addresses IPv4 goes first.
/// Port 0 means any free one. Throws std::system_error, and CommunicationError for a name without
/// address.
ListeningSocket listen_on(const std::string& address, std::uint16_t port = 0);

}  // namespace stratagem::ranks
