#include "bench/machine/noise_sources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/temporary_folder.h"

namespace stratagem::bench::noise_sources_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// A machine made of files.
class NoiseSourcesTest : public ::testing::Test {
 protected:
  NoiseSourcesTest() {
    paths_ = {.sys = root_ / "sys", .proc = root_ / "proc"};
    write("sys/devices/system/cpu/cpu0/online", "1");
    facts_.logical_cpus = 2;
    facts_.available_cores = 2;
    facts_.huge_pages = "madvise";
    facts_.governor = "performance";
    facts_.load_average = {0.1, 0.1, 0.1};
  }

  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text << "\n";
  }
  NoiseCounters reading_at(double seconds) const {
    NoiseCounters reading = read_noise(paths_, {0, 1});
    reading.seconds = seconds;
    reading.own_seconds = 0;
    return reading;
  }

  const TemporaryFolder root_;
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
  later.busy_seconds = 0.4;
  later.stolen_seconds = 0.5;
  later.thermal_throttles = 1;
  auto found = standing_noise_sources(facts_, paths_);
  for (const NoiseSource& one : noise_sources_between({}, later)) found.push_back(one);
  EXPECT_THAT(found, SizeIs(7));
  for (const NoiseSource& one : found) EXPECT_THAT(words, ::testing::Contains(one.what));
}

/// Columns of /proc/stat in seconds: user, nice, system, idle, iowait, irq, softirq, steal, guest.
std::string processor(const std::string& name, const std::vector<double>& seconds) {
  std::string line = name + " ";
  for (const double each : seconds) {
    line += " " + std::to_string(std::lround(each * static_cast<double>(::sysconf(_SC_CLK_TCK))));
  }
  return line + "\n";
}

TEST_F(NoiseSourcesTest, StolenTimeIsAShareOfAll) {
  const NoiseCounters before = reading_at(0);
  write("proc/stat", processor("cpu0", {0, 0, 0, 8, 0, 0, 0, 2, 0}) +
                         processor("cpu1", {0, 0, 0, 8, 0, 0, 0, 2, 0}));
  const auto found = noise_sources_between(before, reading_at(10));
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(to_string(found[0]), HasSubstr("20.0% of the processors"));
}

// Whoever they are, and however short each of them lives.
TEST_F(NoiseSourcesTest, OtherProgramsAreWhatIsBusyBeyondOurOwn) {
  const NoiseCounters before = reading_at(0);
  write("proc/stat", processor("cpu", {99, 99, 99, 99, 99, 99, 99, 0, 0}) +
                         processor("cpu0", {6, 1, 1, 0, 1, 0.5, 0.5, 0, 3}) +
                         processor("cpu1", {2, 0, 0, 8, 0, 0, 0, 0, 0}) +
                         processor("cpu2", {9, 0, 0, 0, 0, 0, 0, 0, 0}) +
                         processor("cpu10", {9, 0, 0, 0, 0, 0, 0, 0, 0}));
  NoiseCounters after = reading_at(10);
  after.own_seconds = 7;
  EXPECT_NEAR(*other_processes_cores(before, after), 0.4, 1e-9);
  const auto found = noise_sources_between(before, after);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(to_string(found[0]), HasSubstr("other programs: used 0.40 cores' time"));
}

TEST_F(NoiseSourcesTest, ALittleOfOtherProgramsIsQuiet) {
  NoiseCounters after;
  after.seconds = 10;
  after.processors = 2;
  after.busy_seconds = 8;
  after.own_seconds = 7.1;
  EXPECT_THAT(noise_sources_between({}, after), IsEmpty());
  after.busy_seconds = 8.2;
  EXPECT_THAT(noise_sources_between({}, after), SizeIs(1));
}

TEST_F(NoiseSourcesTest, BesideRanksOfAnotherParentNothingIsKnownOfOtherPrograms) {
  NoiseCounters after;
  after.seconds = 10;
  after.busy_seconds = 10;
  after.own_are_all = false;
  EXPECT_FALSE(other_processes_cores({}, after));
  EXPECT_THAT(noise_sources_between({}, after), IsEmpty());
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

TEST(NoiseSource, WhatThisProcessAndItsEndedChildrenUseIsTheirOwn) {
  const NoiseCounters before = read_noise();
  const pid_t child = ::fork();
  if (child == 0) {
    while (std::clock() < CLOCKS_PER_SEC / 4) ::getppid();  // of this process, which has just begun
    ::_exit(0);
  }
  ASSERT_GT(child, 0);
  ::waitpid(child, nullptr, 0);
  const NoiseCounters after = read_noise();
  EXPECT_GT(after.own_seconds - before.own_seconds, 0.22);
  EXPECT_GT(after.busy_seconds - before.busy_seconds, 0.12);
}

}  // namespace
}  // namespace stratagem::bench::noise_sources_test
