#include "bench/machine/noise_sources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace stratagem::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// A machine made of files.
class NoiseSourcesTest : public ::testing::Test {
 protected:
  NoiseSourcesTest() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    root_ = std::filesystem::temp_directory_path() /
            (std::string("stratagem_") + test->name() + std::to_string(::getpid()));
    paths_ = {.sys = root_ / "sys", .proc = root_ / "proc"};
    write("sys/devices/system/cpu/cpu0/online", "1");
    facts_.logical_cpus = 2;
    facts_.available_cores = 2;
    facts_.huge_pages = "madvise";
    facts_.governor = "performance";
    facts_.load_average = {0.1, 0.1, 0.1};
  }
  ~NoiseSourcesTest() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text << "\n";
  }
  /// `seconds` of processor time, all of it in user mode.
  void write_process(int number, const std::string& name, int parent, double seconds) const {
    const auto ticks = seconds * static_cast<double>(::sysconf(_SC_CLK_TCK));
    write("proc/" + std::to_string(number) + "/stat",
          std::to_string(number) + " (" + name + ") R " + std::to_string(parent) +
              " 1 1 0 -1 0 0 0 0 0 " + std::to_string(static_cast<long>(ticks)) + " 0 0 0");
  }
  NoiseCounters reading_at(double seconds) const {
    NoiseCounters reading = read_noise(paths_);
    reading.seconds = seconds;
    return reading;
  }

  std::filesystem::path root_;
  SystemPaths paths_;
  MachineFacts facts_;
};

TEST_F(NoiseSourcesTest, AQuietMachineHasNone) {
  EXPECT_THAT(standing_noise_sources(facts_, paths_), IsEmpty());
  EXPECT_THAT(noise_sources_between(reading_at(0), reading_at(1)), IsEmpty());
}

TEST_F(NoiseSourcesTest, EverySettingIsNamedWithItsRemedy) {
  facts_.governor = "powersave";
  facts_.huge_pages = "never";
  write("sys/devices/system/cpu/cpufreq/boost", "1");
  write("sys/fs/cgroup/cpu.max", "150000 100000");
  std::vector<std::string> lines;
  for (const NoiseSource& found : standing_noise_sources(facts_, paths_)) {
    EXPECT_FALSE(found.remedy.empty()) << found.what;
    lines.push_back(to_string(found));
  }
  EXPECT_THAT(lines,
              ElementsAre(HasSubstr("governor: powersave"), HasSubstr("turbo: on"),
                          HasSubstr("huge pages: never"), HasSubstr("limited to 1.50 of 2 cores")));
}

TEST_F(NoiseSourcesTest, AContainerWithoutALimitAndTurboOffAreFine) {
  write("sys/fs/cgroup/cpu.max", "max 100000");
  write("sys/devices/system/cpu/intel_pstate/no_turbo", "1");
  EXPECT_THAT(standing_noise_sources(facts_, paths_), IsEmpty());
}

TEST_F(NoiseSourcesTest, TheTightestLimitOfTheGroupsAboveHolds) {
  write("proc/self/cgroup", "0::/system.slice/runner.service");
  write("sys/fs/cgroup/system.slice/cpu.max", "150000 100000");
  write("sys/fs/cgroup/system.slice/runner.service/cpu.max", "max 100000");
  write("sys/fs/cgroup/system.slice/cpu.stat", "nr_periods 9\nnr_throttled 2");
  write("sys/fs/cgroup/system.slice/runner.service/cpu.stat", "nr_periods 9\nnr_throttled 1");
  const auto found = standing_noise_sources(facts_, paths_);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(found[0].found, HasSubstr("limited to 1.50 of 2 cores"));
  EXPECT_EQ(read_noise(paths_).limited_periods, 3);
}

TEST_F(NoiseSourcesTest, LimitsOfTheOldKindOfGroupsAreRead) {
  write("proc/self/cgroup", "7:memory:/m\n4:cpu,cpuacct:/docker/abc\n0::/docker/abc");
  write("sys/fs/cgroup/unified/cgroup.controllers", "");
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1");
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000");
  write("sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "50000");
  write("sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us", "100000");
  write("sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.stat", "nr_periods 9\nnr_throttled 4");
  const auto found = standing_noise_sources(facts_, paths_);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(found[0].found, HasSubstr("limited to 0.50 of 2 cores"));
  EXPECT_EQ(read_noise(paths_).limited_periods, 4);
}

TEST_F(NoiseSourcesTest, WhatDoesNotDisturbIsSaidInWords) {
  const auto state_of = [&](const std::string& what) {
    for (const NominalSetting& calm : nominal_settings(facts_, paths_)) {
      if (calm.what == what) return calm.state;
    }
    return std::string("not there");
  };
  EXPECT_EQ(state_of("governor"), "performance");
  EXPECT_EQ(state_of("turbo"), "unknown: the kernel does not say");
  EXPECT_EQ(state_of("container"), "no limit on time");
  EXPECT_EQ(state_of("temperature"), "unknown: the kernel does not count throttling");
  write("sys/devices/system/cpu/cpufreq/boost", "0");
  write("sys/fs/cgroup/cpu.max", "400000 100000");
  write("sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "3");
  EXPECT_EQ(state_of("turbo"), "off");
  EXPECT_EQ(state_of("container"), "4.00 cores' time");
  EXPECT_EQ(state_of("temperature"), "not throttled in this second");
}

// A new kind of disturbance is a new line of the doctor, warn or ok.
TEST_F(NoiseSourcesTest, EveryDisturbanceHasItsWordsForWhereItIsAbsent) {
  facts_.governor = "powersave";
  facts_.huge_pages = "never";
  write("sys/devices/system/cpu/cpufreq/boost", "1");
  write("sys/fs/cgroup/cpu.max", "150000 100000");
  std::vector<std::string> words;
  for (const NominalSetting& calm : nominal_settings(facts_, paths_)) words.push_back(calm.what);
  NoiseCounters later;
  later.seconds = 1;
  later.processor_ticks = 100;
  later.stolen_ticks = 50;
  later.thermal_throttles = 1;
  later.process_seconds = {{1, 1.0}};
  later.process_names = {{1, "other"}};
  NoiseCounters before;
  before.process_seconds = {{1, 0.0}};
  auto found = standing_noise_sources(facts_, paths_);
  for (const NoiseSource& one : noise_sources_at_rest(before, later)) found.push_back(one);
  EXPECT_THAT(found, SizeIs(8));
  for (const NoiseSource& one : found) EXPECT_THAT(words, ::testing::Contains(one.what));
}

TEST_F(NoiseSourcesTest, StolenTimeIsAShareOfAll) {
  write("proc/stat", "cpu  100 0 100 800 0 0 0 0 0 0");
  const NoiseCounters before = reading_at(0);
  write("proc/stat", "cpu  150 0 120 810 0 0 0 20 50 0");
  const auto found = noise_sources_between(before, reading_at(1));
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(to_string(found[0]), HasSubstr("20.0% of the processors"));
}

TEST_F(NoiseSourcesTest, BusyProcessorsCountOnlyWhileThisProcessRests) {
  write("proc/stat", "cpu  100 0 100 800 10 0 0 0 0 0");
  const NoiseCounters before = reading_at(0);
  write("proc/stat", "cpu  150 0 100 840 20 0 0 0 0 0");
  const NoiseCounters after = reading_at(1);
  EXPECT_THAT(noise_sources_between(before, after), IsEmpty());
  const auto found = noise_sources_at_rest(before, after);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(to_string(found[0]), HasSubstr("load: processors 50% busy"));
}

TEST_F(NoiseSourcesTest, ThrottlingIsCounted) {
  write("sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "3");
  write("sys/fs/cgroup/cpu.stat", "usage_usec 1\nnr_periods 9\nnr_throttled 2");
  const NoiseCounters before = reading_at(0);
  write("sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "7");
  write("sys/fs/cgroup/cpu.stat", "usage_usec 2\nnr_periods 19\nnr_throttled 5");
  const NoiseCounters after = reading_at(1);
  const auto found = noise_sources_between(before, after);
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_THAT(found[0].found, HasSubstr("4 times"));
  EXPECT_THAT(found[1].found, HasSubstr("3 periods"));
  const reports::Values figures = noise_figures(facts_, before, after, paths_);
  EXPECT_THAT(figures, ::testing::Contains(
                           ::testing::Pair("thermal_throttles", reports::Value(std::int64_t{4}))));
}

TEST_F(NoiseSourcesTest, BusyOthersAreNamedAndOurOwnAreNot) {
  write_process(::getpid(), "stratagem", 1, 10);
  write_process(900001, "worker", ::getpid(), 10);
  write_process(900002, "a (strange) name", 1, 10);
  write_process(900003, "idle", 1, 10);
  write_process(900004, "rank", 1, 10);
  for (const int number : {::getpid(), 900004}) {
    std::filesystem::create_symlink(root_ / "stratagem",
                                    root_ / "proc" / std::to_string(number) / "exe");
  }
  const NoiseCounters before = reading_at(100);
  write_process(::getpid(), "stratagem", 1, 12);
  write_process(900001, "worker", ::getpid(), 12);
  write_process(900002, "a (strange) name", 1, 12);
  write_process(900003, "idle", 1, 10.1);
  write_process(900004, "rank", 1, 14);
  const auto found = noise_sources_between(before, reading_at(104));
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].found, "a (strange) name (process 900002) used 50% of a core");
}

TEST(NoiseSource, ThisMachineCanBeRead) {
  const NoiseCounters reading = read_noise();
  EXPECT_GT(reading.processor_ticks, 0);
  EXPECT_FALSE(reading.process_seconds.contains(::getpid()));
}

}  // namespace
}  // namespace stratagem::bench
