#include "strategies/ranks/listening_socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <system_error>

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

}  // namespace
}  // namespace stratagem::ranks::listening_socket_test
