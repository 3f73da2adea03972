// A socket bound to a free port before anybody needs it: it is handed to rank 0's worker, whose
// store listens on it, so that no other program can take the port in between.
#pragma once

#include <cstdint>
#include <string>

#include "strategies/runtime/unique_fd.h"

namespace stratagem::ranks {

struct ListeningSocket {
  runtime::UniqueFd socket;
  std::uint16_t port = 0;
};

/// Of an address of this host; port 0: any that is free. Throws std::system_error.
ListeningSocket listen_on(const std::string& address, std::uint16_t port = 0);

}  // namespace stratagem::ranks
