#include "strategies/ranks/listening_socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <system_error>

#include "strategies/runtime/communication_error.h"

namespace stratagem::ranks::listening_socket_test {
namespace {

TEST(ListeningSocket, AFreePortIsSharedWithNobody) {
  const ListeningSocket place = listen_on("127.0.0.1");
  // Whoever asks for that very port may share it with those alone who allow it.
  EXPECT_THROW(listen_on("127.0.0.1", place.port), std::system_error);
  EXPECT_EQ(::listen(place.socket.get(), 1), 0);
}

TEST(ListeningSocket, APortThatIsServedIsRefused) {
  const ListeningSocket first = listen_on("127.0.0.1");
  ASSERT_EQ(::listen(first.socket.get(), 1), 0);
  EXPECT_THROW(listen_on("127.0.0.1", first.port), std::system_error);
}

TEST(ListeningSocket, ListensOnIpv6) {
  const ListeningSocket place = listen_on("::1");
  sockaddr_in6 bound{};
  socklen_t length = sizeof(bound);
  ASSERT_EQ(::getsockname(place.socket.get(), reinterpret_cast<sockaddr*>(&bound), &length), 0);
  EXPECT_EQ(bound.sin6_family, AF_INET6);
  EXPECT_EQ(ntohs(bound.sin6_port), place.port);
  EXPECT_THROW(listen_on("::1", place.port), std::system_error);
}

TEST(ListeningSocket, ANameWithoutAnAddressIsNamedWithTheReason) {
  const auto message_of = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const runtime::CommunicationError& error) {
      return error.what();
    }
    return "accepted";
  };
  const std::string start = "the host \"256.0.0.1.invalid\" cannot be resolved: ";
  EXPECT_THAT(message_of([] { listen_on("256.0.0.1.invalid"); }), ::testing::StartsWith(start));
  EXPECT_THAT(
      message_of([] { await_resolution("256.0.0.1.invalid", std::chrono::milliseconds(1)); }),
      ::testing::StartsWith(start));
  await_resolution("127.0.0.1", std::chrono::milliseconds(1));
}

}  // namespace
}  // namespace stratagem::ranks::listening_socket_test
