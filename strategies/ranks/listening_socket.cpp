#include "strategies/ranks/listening_socket.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>
#include <thread>

#include "strategies/ranks/key_value_store.h"
#include "strategies/runtime/communication_error.h"

namespace stratagem::ranks {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

struct Resolution {
  Addresses addresses{nullptr, &::freeaddrinfo};
  int error = 0;
};

Resolution resolve(const std::string& address) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(address.c_str(), nullptr, &hints, &found);
  return {Addresses(found, &::freeaddrinfo), error};
}

[[noreturn]] void fail_to_resolve(const std::string& address, int error) {
  throw runtime::CommunicationError(
      fmt::format("the host \"{}\" cannot be resolved: {}", address, ::gai_strerror(error)));
}

std::uint16_t& port_of(sockaddr_storage& address) {
  return address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                       : reinterpret_cast<sockaddr_in&>(address).sin_port;
}

/// Returns a socket bound to the address, or none with errno set.
ListeningSocket bound_to(const addrinfo& address, std::uint16_t port) {
  ListeningSocket place;
  place.socket = runtime::UniqueFd(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!place.socket) return place;
  sockaddr_storage bound{};
  socklen_t length = address.ai_addrlen;
  std::memcpy(&bound, address.ai_addr, length);
  port_of(bound) = htons(port);
  // A port that an earlier run has just left can be reused. If any port will do, it has to be one
  // that no other process gets before somebody listens.
  const int on = port == 0 ? 0 : 1;
  ::setsockopt(place.socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  auto* const name = reinterpret_cast<sockaddr*>(&bound);
  if (::bind(place.socket.get(), name, length) != 0 ||
      ::getsockname(place.socket.get(), name, &length) != 0) {
    const int error = errno;
    place.socket.reset();
    errno = error;
    return place;
  }
  place.port = ntohs(port_of(bound));
  return place;
}

}  // namespace

void await_resolution(const std::string& address, std::chrono::milliseconds timeout) {
  constexpr auto interval = std::chrono::milliseconds(200);
  const auto limit = std::chrono::steady_clock::now() + timeout;
  while (true) {
    const int error = resolve(address).error;
    if (error == 0) return;
    if (std::chrono::steady_clock::now() + interval > limit) fail_to_resolve(address, error);
    std::this_thread::sleep_for(interval);
  }
}

ListeningSocket listen_on(const std::string& address, std::uint16_t port) {
  const Resolution found = resolve(address);
  if (found.error != 0) fail_to_resolve(address, found.error);
  int error = 0;
  for (const int family : {AF_INET, AF_INET6}) {
    for (const addrinfo* one = found.addresses.get(); one != nullptr; one = one->ai_next) {
      if (one->ai_family != family) continue;
      ListeningSocket place = bound_to(*one, port);
      if (place.socket) return place;
      if (error == 0) error = errno;
    }
  }
  throw std::system_error(error, std::generic_category(),
                          port == 0 ? "address " + address : host_and_port(address, port));
}

}  // namespace stratagem::ranks
