#include "bench/launch/cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "strategies/runtime/communication_error.h"
#include "tests/bench/launch/shell_workers.h"

namespace stratagem::bench::cluster_test {
namespace {

using runtime::CommunicationError;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

/// A page that all threads of the test share.
struct Board {
  std::mutex mutex;
  std::map<std::string, std::string> texts;
  std::map<std::string, std::int64_t> numbers;
};

class MemoryStore final : public ranks::KeyValueStore {
 public:
  explicit MemoryStore(Board& page) : page_(page) {}
  void set(const std::string& key, const std::string& text) override {
    const std::lock_guard lock(page_.mutex);
    page_.texts[key] = text;
  }
  std::optional<std::string> find(const std::string& key) override {
    const std::lock_guard lock(page_.mutex);
    const auto found = page_.texts.find(key);
    return found == page_.texts.end() ? std::nullopt : std::optional(found->second);
  }
  std::int64_t add(const std::string& key, std::int64_t amount) override {
    const std::lock_guard lock(page_.mutex);
    return page_.numbers[key] += amount;
  }

 private:
  Board& page_;
};

ClusterOptions place_of(int rank, int world, const std::string& worker = say_ok) {
  ClusterOptions options;
  options.info = {rank, world, rank, world};
  options.launcher = "a test";
  options.timeout = 5s;
  options.worker_command = script(worker);
  return options;
}

LaunchOptions launch_options(const std::string& worker = say_ok) {
  LaunchOptions options;
  options.command = script(worker);
  options.limit = 10s;
  return options;
}

/// Runs `lead` as rank 0 among `world` ranks whose workers are `worker`; the others' exit codes.
std::vector<int> with_followers(int world, const std::string& worker,
                                const std::function<void(Cluster&)>& lead) {
  Board page;
  std::vector<int> codes(static_cast<std::size_t>(world - 1), -1);
  std::vector<std::thread> followers;
  for (int rank = 1; rank < world; ++rank) {
    followers.emplace_back([&, rank] {
      Cluster cluster(std::make_unique<MemoryStore>(page), place_of(rank, world, worker));
      codes[static_cast<std::size_t>(rank - 1)] = cluster.follow();
    });
  }
  {
    Cluster cluster(std::make_unique<MemoryStore>(page), place_of(0, world));
    lead(cluster);
  }
  for (std::thread& follower : followers) follower.join();
  return codes;
}

TEST(Cluster, EveryRankRunsItsWorkerOfEachJob) {
  const auto codes = with_followers(3, say_ok, [](Cluster& cluster) {
    for (int job = 0; job < 2; ++job) {
      const LaunchResult launched = cluster.launch(some_job(3, 5), launch_options());
      EXPECT_EQ(launched.status, LaunchStatus::ok) << launched.error.message;
      EXPECT_EQ(launched.result, 0);
    }
    cluster.lead([] { return 0; });
  });
  EXPECT_THAT(codes, ::testing::ElementsAre(0, 0));
}

TEST(Cluster, ALostRankIsWaitedForOnce) {
  Board page;
  MemoryStore own(page);
  own.set("arrival/1", R"({"world_size": 2, "host": "there"})");
  Cluster cluster(std::make_unique<MemoryStore>(page), place_of(0, 2));
  const LaunchOptions options = launch_options();
  const Job job = some_job(2, 0.5);
  const LaunchResult first = cluster.launch(job, options);
  EXPECT_EQ(first.status, LaunchStatus::hung);
  EXPECT_THAT(first.error.message, HasSubstr("did not respond for"));

  const auto start = std::chrono::steady_clock::now();
  const LaunchResult second = cluster.launch(job, options);
  EXPECT_EQ(second.status, LaunchStatus::hung);
  EXPECT_EQ(second.error.rank, 1);
  EXPECT_EQ(second.error.message, "rank 1 is lost: it did not respond in an earlier launch");
  EXPECT_LT(std::chrono::steady_clock::now() - start, 2500ms);
  EXPECT_FALSE(own.find("job/1").has_value());

  // It is there again: the next job is made for it too.
  own.set("heartbeat/1", R"({"count": 1, "host": "there"})");
  EXPECT_THAT(cluster.launch(job, options).error.message, HasSubstr("did not respond for"));
  EXPECT_TRUE(own.find("job/1").has_value());
}

TEST(Cluster, AFollowerThatLosesTheStoreSaysWhoItIs) {
  class LostStore final : public ranks::KeyValueStore {
   public:
    explicit LostStore(Board& page) : page_(page) {}
    void set(const std::string& key, const std::string& text) override { page_.set(key, text); }
    std::optional<std::string> find(const std::string& key) override {
      if (key.starts_with("job/")) throw CommunicationError("the store is gone");
      return page_.find(key);
    }
    std::int64_t add(const std::string& key, std::int64_t amount) override {
      return page_.add(key, amount);
    }

   private:
    MemoryStore page_;
  };
  Board page;
  page.texts["arrival/0"] = R"({"world_size": 2, "host": "there"})";
  Cluster cluster(std::make_unique<LostStore>(page), place_of(1, 2));
  try {
    cluster.follow();
    ADD_FAILURE() << "followed nobody";
  } catch (const CommunicationError& error) {
    EXPECT_STREQ(error.what(), "rank 1 of 2 (a test): the store is gone");
  }
}

TEST(Cluster, TheWorkersLearnWhereToMeet) {
  const std::string check = R"(case "$job" in *'"address":"127.0.0.1"'*'"port":'*) ;;
      *) exit 9;; esac; if [ -e /proc/self/fd/6 ]; then exit 8; fi; )";
  with_followers(2, check + say_ok, [](Cluster& cluster) {
    const LaunchResult launched = cluster.launch(
        some_job(2, 5), launch_options(R"(printf '{"ok":true,"result":%s}' "$job" >&4)"));
    ASSERT_EQ(launched.status, LaunchStatus::ok) << launched.error.message;
    EXPECT_EQ(header_of(job_from_json(launched.result)).rendezvous.value().info,
              (ranks::RankInfo{0, 2, 0, 2}));
    cluster.lead([] { return 0; });
  });
}

TEST(Cluster, AWorkerThatCrashesElsewhereIsTheCause) {
  const std::string gone =
      R"(printf '{"ok":false,"kind":"communication","message":"lost rank 1"}' >&4; exit 4)";
  const auto codes = with_followers(2, "kill -KILL $$", [&](Cluster& cluster) {
    const LaunchResult launched = cluster.launch(some_job(2, 5), launch_options(gone));
    EXPECT_EQ(launched.status, LaunchStatus::failure);
    EXPECT_EQ(launched.error.rank, 1);
    EXPECT_THAT(launched.error.message, HasSubstr("rank 1 was killed"));
    cluster.lead([] { return 4; });
  });
  EXPECT_THAT(codes, ::testing::ElementsAre(4));
}

TEST(Cluster, TheNextJobRunsAfterAFailedOne) {
  // Rank 1's worker goes on alone where rank 0's has failed, and is ended.
  with_followers(2, R"(case "$job" in *sleep*) sleep 100;; esac; )" + std::string(say_ok),
                 [&](Cluster& cluster) {
                   const LaunchResult failed =
                       cluster.launch(some_job(2, 5, "sleep"), launch_options("kill -KILL $$"));
                   EXPECT_THAT(failed.error.message, HasSubstr("rank 0 was killed"));
                   const LaunchResult next = cluster.launch(some_job(3, 5), launch_options());
                   EXPECT_EQ(next.status, LaunchStatus::ok) << next.error.message;
                   cluster.lead([] { return 4; });
                 });
}

TEST(Cluster, WithoutAWordOfRankZeroTheExitCodeIsThatOfALoss) {
  const auto codes = with_followers(2, say_ok, [](Cluster&) {});
  EXPECT_THAT(codes, ::testing::ElementsAre(4));
}

TEST(Cluster, ARankThatNeverComesIsNamed) {
  Board page;
  ClusterOptions options = place_of(0, 2);
  options.timeout = 300ms;
  try {
    Cluster cluster(std::make_unique<MemoryStore>(page), options);
    FAIL() << "did not wait";
  } catch (const CommunicationError& error) {
    EXPECT_STREQ(error.what(), "rank 0 of 2 (a test) waited 0.3 s, but rank 1 did not connect");
  }
}

TEST(Cluster, ARankThatLeavesIsNamed) {
  Board page;
  MemoryStore store(page);
  store.set("arrival/1", R"({"world_size": 2, "host": "h"})");
  store.set("heartbeat/1", R"({"count": 1, "host": "h", "activity": "0F0"})");
  Cluster cluster(std::make_unique<MemoryStore>(page), place_of(0, 2));
  LaunchOptions options = launch_options("sleep 100");
  options.limit = 4s;
  const LaunchResult launched = cluster.launch(some_job(2, 5), options);
  EXPECT_EQ(launched.status, LaunchStatus::hung);
  EXPECT_EQ(launched.error.rank, 1);
  EXPECT_EQ(launched.error.last_action, "0F0");
  EXPECT_THAT(launched.error.message, HasSubstr("rank 1 on h did not respond for"));
}

TEST(Cluster, AFollowerLeavesWhenRankZeroFallsSilent) {
  Board page;
  MemoryStore store(page);
  store.set("arrival/0", R"({"world_size": 2, "host": "h"})");
  ClusterOptions options = place_of(1, 2);
  options.timeout = 500ms;
  Cluster cluster(std::make_unique<MemoryStore>(page), options);
  try {
    cluster.follow();
    FAIL() << "waits on";
  } catch (const CommunicationError& error) {
    EXPECT_STREQ(error.what(), "rank 1 of 2 (a test): rank 0 did not respond for 0.5 s");
  }
}

TEST(Cluster, TwoOfTheSameRankAreRefused) {
  Board page;
  MemoryStore store(page);
  store.add("claim/0", 1);
  EXPECT_THROW(Cluster(std::make_unique<MemoryStore>(page), place_of(0, 2)), std::invalid_argument);
}

TEST(Cluster, AnotherWorldSizeIsRefused) {
  Board page;
  MemoryStore store(page);
  store.set("arrival/1", R"({"world_size": 3, "host": "h"})");
  try {
    Cluster cluster(std::make_unique<MemoryStore>(page), place_of(0, 2));
    FAIL() << "accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 1 has --world-size 3"));
  }
}

}  // namespace
}  // namespace stratagem::bench::cluster_test
