#include "strategies/runtime/activity_board.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <system_error>
#include <thread>

namespace stratagem::runtime {
namespace {

TEST(ActivityBoard, KeepsOneTextASlot) {
  ActivityBoard board(-1, 3);
  board.write(0, "0F0");
  board.write(2, "2B1");
  board.write(0, "0F13");
  board.write(0, "0F1");  // shorter than the last: nothing of it stays
  EXPECT_EQ(board.read(0), "0F1");
  EXPECT_EQ(board.read(1), "");
  EXPECT_EQ(board.read(2), "2B1");
  EXPECT_EQ(board.summary(), "device 0: 0F1, device 2: 2B1");
}

TEST(ActivityBoard, IsEmptyAtFirst) { EXPECT_EQ(ActivityBoard().summary(), ""); }

TEST(ActivityBoard, CutsLongTexts) {
  ActivityBoard board;
  const std::string text = "0123456789012345678901234567890123456789012345678901234567890123456789";
  board.write(0, text);
  EXPECT_EQ(board.read(0), text.substr(0, 47));
  board.write(0, text.substr(0, 47));
  EXPECT_EQ(board.read(0), text.substr(0, 47));
}

TEST(ActivityBoard, IgnoresSlotsOutOfRange) {
  ActivityBoard board(-1, 2);
  board.write(-1, "x");
  board.write(2, "x");
  EXPECT_EQ(board.read(-1), "");
  EXPECT_EQ(board.read(2), "");
  EXPECT_EQ(board.summary(), "");
}

TEST(ActivityBoard, IsSharedAcrossFork) {
  const ActivityBoard board;
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ActivityBoard own(board.fd());
    own.write(1, "1B0");
    _exit(0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(board.summary(), "device 1: 1B0");
}

TEST(ActivityBoard, OutlivesItsWriterWithoutClosingTheCallersDescriptor) {
  ActivityBoard board;
  { ActivityBoard(board.fd()).write(0, "0O"); }
  board.write(1, "1O");
  EXPECT_EQ(ActivityBoard(board.fd()).summary(), "device 0: 0O, device 1: 1O");
}

TEST(ActivityBoard, ADescriptorThatIsNoMemoryIsRefused) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_THROW(ActivityBoard{ends[0]}, std::system_error);
  close(ends[0]);
  close(ends[1]);
}

TEST(ActivityBoard, MayBeReadWhileItIsWritten) {
  ActivityBoard board;
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (int i = 0; i < 20'000; ++i) board.write(0, i % 2 == 0 ? "aaaa" : "bbbb");
    stop = true;
  });
  while (!stop) {
    const std::string text = board.read(0);  // one word long, so never a mixture
    ASSERT_TRUE(text.empty() || text == "aaaa" || text == "bbbb") << text;
  }
  writer.join();
}

}  // namespace
}  // namespace stratagem::runtime
