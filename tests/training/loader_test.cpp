#include "training/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

namespace stratagem::training {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

// Whatever the threads and however far they run ahead: batches come in order, whole, and a slot
// keeps its batch until the next one is asked for.
TEST(Loader, GivesTheBatchesInOrder) {
  constexpr std::size_t batches = 200;
  for (const std::size_t threads : {1U, 2U, 5U}) {
    for (const std::size_t prefetch : {1U, 2U, 7U}) {
      std::vector<std::size_t> slots(prefetch + 1);
      Loader loader(batches, {.threads = threads, .prefetch = prefetch},
                    [&slots](std::size_t batch, std::size_t slot) {
                      if (batch % 7 == 0) std::this_thread::yield();
                      slots.at(slot) = batch;
                    });
      ASSERT_EQ(loader.slots(), slots.size());
      for (std::size_t batch = 0; batch < batches; ++batch) {
        const std::size_t slot = loader.next();
        for (int look = 0; look < 3; ++look) {
          EXPECT_EQ(slots.at(slot), batch);
          std::this_thread::yield();
        }
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
                ThrowsMessage<std::runtime_error>(HasSubstr("batch 0 did not come within")));
    EXPECT_GE(loader.waited(), std::chrono::milliseconds(30));
    ended = true;
  }
  Loader none(0, {}, [](std::size_t, std::size_t) {});
  EXPECT_THROW(none.next(), std::runtime_error);
}

TEST(Loader, MayBeLeftAtAnyTime) {
  for (std::size_t taken = 0; taken < 20; ++taken) {
    Loader loader(100, {.threads = 3, .prefetch = 2}, [](std::size_t, std::size_t) {});
    for (std::size_t batch = 0; batch < taken; ++batch) loader.next();
  }
}

}  // namespace
}  // namespace stratagem::training
