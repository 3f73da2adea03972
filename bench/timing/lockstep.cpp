#include "bench/timing/lockstep.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace stratagem::bench {
namespace {

constexpr char ready = 'r';
constexpr char go = 'g';
constexpr char finished = 'd';

std::runtime_error failure(const std::string& path, const std::string& what) {
  return std::runtime_error(fmt::format("--turns {}: {}", path, what));
}

runtime::UniqueFd connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) throw failure(path, "too long for a socket's path");
  std::ranges::copy(path, address.sun_path);
  runtime::UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto* place = reinterpret_cast<const sockaddr*>(&address);  // NOLINT: sockets require it
  if (socket.get() < 0 || ::connect(socket.get(), place, sizeof(address)) != 0) {
    throw failure(path, fmt::format("cannot connect: {}", std::strerror(errno)));
  }
  return socket;
}

}  // namespace

Lockstep::Lockstep(const std::string& path, std::chrono::duration<double> timeout)
    : path_(path), timeout_(timeout), socket_(connect_to(path)) {
  send(ready);
}

void Lockstep::wait() {
  pollfd waiting{.fd = socket_.get(), .events = POLLIN, .revents = 0};
  const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(timeout_);
  int found = 0;
  do {
    found = ::poll(&waiting, 1, static_cast<int>(limit.count()));
  } while (found < 0 && errno == EINTR);
  if (found == 0) throw failure(path_, fmt::format("no turn within {:g} s", timeout_.count()));
  char message = 0;
  if (found < 0 || ::recv(socket_.get(), &message, 1, 0) != 1 || message != go) {
    throw failure(path_, "the other end closed the socket");
  }
}

void Lockstep::done() { send(finished); }

void Lockstep::send(char message) {
  if (::send(socket_.get(), &message, 1, MSG_NOSIGNAL) == 1) return;
  throw failure(path_, "the other end closed the socket");
}

}  // namespace stratagem::bench
