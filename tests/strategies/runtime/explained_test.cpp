#include "strategies/runtime/explained.h"

#include <gtest/gtest.h>

#include <new>
#include <system_error>

namespace stratagem::runtime::explained_test {
namespace {

TEST(Explained, MessagesOfTheLibraryNameTheCauseOrTheRemedy) {
  EXPECT_EQ(explained("rank 1: " + std::string(std::bad_alloc().what())), "rank 1: out of memory");
  const std::system_error error(EMFILE, std::generic_category(), "cannot start a worker");
  EXPECT_EQ(explained(error.what()),
            "cannot start a worker: too many open files; raise the limit: ulimit -n");
  EXPECT_EQ(explained("anything else"), "anything else");
}

}  // namespace
}  // namespace stratagem::runtime::explained_test
