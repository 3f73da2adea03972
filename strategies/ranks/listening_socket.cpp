#include "strategies/ranks/listening_socket.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>
#include <system_error>

namespace stratagem::ranks {
namespace {

[[noreturn]] void fail(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

sockaddr_in resolved(const std::string& address) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(address.c_str(), nullptr, &hints, &found);
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  if (error != 0 || found == nullptr) {
    errno = EADDRNOTAVAIL;
    fail("address " + address);
  }
  return *reinterpret_cast<const sockaddr_in*>(found->ai_addr);
}

}  // namespace

ListeningSocket listen_on(const std::string& address, std::uint16_t port) {
  ListeningSocket place;
  place.socket = runtime::UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!place.socket) fail("socket");
  sockaddr_in bound = resolved(address);
  bound.sin_port = htons(port);
  // A port that an earlier run has just left can be had again. Where any will do it has to be one
  // that nobody else is given until somebody listens.
  const int on = port == 0 ? 0 : 1;
  ::setsockopt(place.socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  socklen_t length = sizeof(bound);
  if (::bind(place.socket.get(), reinterpret_cast<sockaddr*>(&bound), length) != 0) {
    fail("bind to " + address);
  }
  if (::getsockname(place.socket.get(), reinterpret_cast<sockaddr*>(&bound), &length) != 0) {
    fail("getsockname");
  }
  place.port = ntohs(bound.sin_port);
  return place;
}

}  // namespace stratagem::ranks
