#include "training/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>

namespace stratagem::training::loader_test {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

// Whatever the threads and however far they run ahead: batches come in order, whole, and a slot
// keeps its batch until as many others have been asked for as may be in use.
TEST(Loader, GivesTheBatchesInOrder) {
  constexpr std::size_t batches = 200;
  for (const std::size_t threads : {0U, 1U, 2U, 5U}) {
    for (const std::size_t prefetch : {1U, 2U, 7U}) {
      for (const std::size_t in_use : {1U, 2U, 3U}) {
        const LoaderOptions options{.threads = threads, .prefetch = prefetch, .in_use = in_use};
        std::vector<std::size_t> slots(Loader::slots(options));
        Loader loader(batches, options, [&slots](std::size_t batch, std::size_t slot) {
          if (batch % 7 == 0) std::this_thread::yield();
          slots.at(slot) = batch;
        });
        std::vector<std::size_t> taken;
        for (std::size_t batch = 0; batch < batches; ++batch) {
          taken.push_back(loader.next());
          for (int look = 0; look < 3; ++look) {
            for (std::size_t back = 0; back < std::min(in_use, batch + 1); ++back) {
              EXPECT_EQ(slots.at(taken[batch - back]), batch - back);
            }
            std::this_thread::yield();
          }
        }
        EXPECT_EQ(loader.worked().batches, batches);
      }
    }
  }
}

TEST(Loader, RunsAheadAsFarAsItMay) {
  std::atomic<std::size_t> begun = 0;
  std::vector<int> slots(4);
  Loader loader(100, {.threads = 2, .prefetch = 3},
                [&begun](std::size_t, std::size_t) { ++begun; });
  loader.next();
  while (begun < 4) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(begun, 4U);  // the one in use, and three
}

TEST(Loader, AnErrorComesWithItsBatch) {
  Loader loader(10, {.threads = 2, .prefetch = 4}, [](std::size_t batch, std::size_t) {
    if (batch == 2) throw std::runtime_error("sample 64 of FILE: gone");
  });
  loader.next();
  loader.next();
  EXPECT_THAT([&] { loader.next(); },
              ThrowsMessage<std::runtime_error>(HasSubstr("sample 64 of FILE: gone")));
}

TEST(Loader, NoWaitIsWithoutLimit) {
  std::atomic<bool> ended = false;
  {
    Loader loader(1, {.timeout = std::chrono::milliseconds(30)}, [&](std::size_t, std::size_t) {
      while (!ended) std::this_thread::yield();
    });
    EXPECT_THAT([&] { loader.next(); },
                ThrowsMessage<std::runtime_error>(HasSubstr("batch 0 was not ready within")));
    ended = true;
  }
  Loader none(0, {}, [](std::size_t, std::size_t) {});
  EXPECT_THROW(none.next(), std::runtime_error);
}

// Sleep is no work of a processor.
TEST(Loader, SaysWhatItsThreadsNeeded) {
  constexpr std::chrono::milliseconds each{20};
  for (const std::size_t threads : {0U, 1U}) {
    Loader loader(3, {.threads = threads},
                  [each](std::size_t, std::size_t) { std::this_thread::sleep_for(each); });
    for (int batch = 0; batch < 3; ++batch) loader.next();
    const LoaderWork work = loader.worked();
    EXPECT_EQ(work.batches, 3U);
    EXPECT_GE(work.elapsed, 3 * each);
    EXPECT_LT(work.processor, work.elapsed / 2);
  }
}

TEST(Loader, MayBeLeftAtAnyTime) {
  for (std::size_t taken = 0; taken < 20; ++taken) {
    Loader loader(100, {.threads = 3, .prefetch = 2}, [](std::size_t, std::size_t) {});
    for (std::size_t batch = 0; batch < taken; ++batch) loader.next();
  }
}

}  // namespace
}  // namespace stratagem::training::loader_test
