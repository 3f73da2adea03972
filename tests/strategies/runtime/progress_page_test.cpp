#include "strategies/runtime/progress_page.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <system_error>
#include <thread>

namespace stratagem::runtime::progress_page_test {
namespace {

TEST(ProgressPage, KeepsOneTextASlot) {
  ProgressPage page(-1, 3);
  page.write(0, "0F0");
  page.write(2, "2B1");
  page.write(0, "0F13");
  page.write(0, "0F1");  // shorter than the last: nothing of it stays
  EXPECT_EQ(page.read(0), "0F1");
  EXPECT_EQ(page.read(1), "");
  EXPECT_EQ(page.read(2), "2B1");
  EXPECT_EQ(page.summary(), "device 0: 0F1, device 2: 2B1");
}

TEST(ProgressPage, IsEmptyAtFirst) { EXPECT_EQ(ProgressPage().summary(), ""); }

TEST(ProgressPage, CutsLongTexts) {
  ProgressPage page;
  const std::string text = "0123456789012345678901234567890123456789012345678901234567890123456789";
  page.write(0, text);
  EXPECT_EQ(page.read(0), text.substr(0, 47));
  page.write(0, text.substr(0, 47));
  EXPECT_EQ(page.read(0), text.substr(0, 47));
}

TEST(ProgressPage, IgnoresSlotsOutOfRange) {
  ProgressPage page(-1, 2);
  page.write(-1, "x");
  page.write(2, "x");
  EXPECT_EQ(page.read(-1), "");
  EXPECT_EQ(page.read(2), "");
  EXPECT_EQ(page.summary(), "");
}

TEST(ProgressPage, IsSharedAcrossFork) {
  const ProgressPage page;
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ProgressPage own(page.fd());
    own.write(1, "1B0");
    _exit(0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(page.summary(), "device 1: 1B0");
}

TEST(ProgressPage, OutlivesItsWriterWithoutClosingTheCallersDescriptor) {
  ProgressPage page;
  { ProgressPage(page.fd()).write(0, "0O"); }
  page.write(1, "1O");
  EXPECT_EQ(ProgressPage(page.fd()).summary(), "device 0: 0O, device 1: 1O");
}

TEST(ProgressPage, ADescriptorThatIsNoMemoryIsRefused) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_THROW(ProgressPage{ends[0]}, std::system_error);
  close(ends[0]);
  close(ends[1]);
}

TEST(ProgressPage, MayBeReadWhileItIsWritten) {
  ProgressPage page;
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (int i = 0; i < 20'000; ++i) page.write(0, i % 2 == 0 ? "aaaa" : "bbbb");
    stop = true;
  });
  while (!stop) {
    const std::string text = page.read(0);  // one word long, so never a mixture
    ASSERT_TRUE(text.empty() || text == "aaaa" || text == "bbbb") << text;
  }
  writer.join();
}

}  // namespace
}  // namespace stratagem::runtime::progress_page_test
