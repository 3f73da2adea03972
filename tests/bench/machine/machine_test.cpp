#include "bench/machine/machine.h"
#include "bench/config/core_demand.h"
#include "bench/machine/processor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "strategies/registry.h"
#include "tests/environment_variable.h"
#include "tests/temporary_folder.h"

namespace stratagem::bench::machine_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
namespace fs = std::filesystem;

/// A machine made of files.
class MachineTest : public testing::Test {
 protected:
  void write(const fs::path& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }

  void add_cpu(int cpu, const std::string& siblings, int node) {
    const fs::path folder = "sys/devices/system/cpu/cpu" + std::to_string(cpu);
    write(folder / "topology/core_cpus_list", siblings + "\n");
    fs::create_directories(root_ / folder / ("node" + std::to_string(node)));
    fs::create_directories(root_ / "sys/devices/system/node" / ("node" + std::to_string(node)));
  }

  SystemPaths paths() const { return {.sys = root_ / "sys", .proc = root_ / "proc"}; }

  const TemporaryFolder root_;
};

TEST_F(MachineTest, TakesOneThreadOfEachCore) {
  add_cpu(0, "0,2", 0);
  add_cpu(1, "1,3", 0);
  add_cpu(2, "0,2", 0);
  add_cpu(3, "1,3", 0);
  EXPECT_THAT(one_per_core({0, 1, 2, 3}, paths()), ElementsAre(0, 1));
  EXPECT_THAT(one_per_core({2, 3}, paths()), ElementsAre(2, 3));
}

TEST_F(MachineTest, BeginsWithTheNodeThatHasMostCores) {
  for (const int cpu : {0, 1, 2, 3, 4}) add_cpu(cpu, std::to_string(cpu), cpu < 2 ? 0 : 1);
  EXPECT_THAT(one_per_core({0, 1, 2, 3, 4}, paths()), ElementsAre(2, 3, 4, 0, 1));
  EXPECT_THAT(one_per_core({0, 1, 2, 3}, paths()), ElementsAre(0, 1, 2, 3));
}

TEST_F(MachineTest, CountsProcessorsWithoutTopologyAsCores) {
  EXPECT_THAT(one_per_core({0, 1}, paths()), ElementsAre(0, 1));
}

TEST_F(MachineTest, ReadsTheFacts) {
  add_cpu(0, "0,1", 0);
  add_cpu(1, "0,1", 0);
  write("proc/cpuinfo",
        "processor\t: 0\nmodel name\t: A processor\nmicrocode\t: 0xa1\nbogomips\t: 5192.26\n");
  write("proc/sys/kernel/osrelease", "6.1.0-example\n");
  write("sys/devices/system/cpu/smt/active", "1\n");
  write("proc/meminfo", "MemTotal:       33554432 kB\n");
  write("proc/loadavg", "0.50 0.25 0.10 1/200 4711\n");
  write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
  write("proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun Jul 27\n");
  write("proc/driver/nvidia/gpus/0000:01:00.0/information", "Model: \t\t A graphics card\n");
  const MachineFacts facts = machine_facts(paths());
  EXPECT_EQ(facts.cpu_model, "A processor");
  EXPECT_EQ(facts.logical_cpus, 2);
  EXPECT_EQ(facts.physical_cores, 1);
  EXPECT_EQ(facts.nominal_mhz, 2596);
  EXPECT_EQ(facts.memory_gib, 32);
  EXPECT_EQ(facts.huge_pages, "madvise");
  EXPECT_EQ(facts.governor, "none");
  EXPECT_EQ(facts.kernel, "6.1.0-example");
  EXPECT_EQ(facts.microcode, "0xa1");
  EXPECT_EQ(facts.smt, "on");
  EXPECT_THAT(facts.load_average, ElementsAre(0.5, 0.25, 0.1));
  EXPECT_THAT(facts.gpu_models, ElementsAre("A graphics card"));
  EXPECT_EQ(facts.gpu_driver, "580.65.06");
}

TEST_F(MachineTest, ReadsWhatTheProcessorOffers) {
  write("proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu fma avx2 hypervisor avx512f avx2\n");
  EXPECT_EQ(instruction_sets(paths()), "avx2 fma avx512f");
  EXPECT_EQ(hypervisor(paths()), "unknown");
  write("sys/class/dmi/id/sys_vendor", "A maker\n");
  EXPECT_EQ(hypervisor(paths()), "A maker");
  write("sys/hypervisor/type", "xen\n");
  EXPECT_EQ(hypervisor(paths()), "xen");
}

TEST_F(MachineTest, ReadsAnArmProcessorWithoutHypervisor) {
  write("proc/cpuinfo", "processor\t: 0\nFeatures\t: fp asimd sve bf16\n");
  EXPECT_EQ(instruction_sets(paths()), "asimd sve bf16");
  EXPECT_EQ(hypervisor(paths()), "");
}

TEST_F(MachineTest, ReadsTheCaches) {
  const auto cache = [&](int index, const std::string& type, const std::string& size) {
    const std::string folder =
        "sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/";
    write(folder + "type", type + "\n");
    write(folder + "level", std::to_string(index + 1) + "\n");
    write(folder + "size", size + "\n");
    write(folder + "shared_cpu_list", index == 0 ? "0\n" : "0-2,8\n");
  };
  EXPECT_THAT(caches(paths()), testing::IsEmpty());
  cache(0, "Data", "48K");
  cache(1, "Unified", "2M");
  const std::vector<reports::Cache> found = caches(paths());
  ASSERT_THAT(found, testing::SizeIs(2));
  EXPECT_EQ(found[0].type, "Data");
  EXPECT_EQ(found[0].level, 1);
  EXPECT_EQ(found[0].size, 48 * 1024);
  EXPECT_EQ(found[0].num_sharing, 1);
  EXPECT_EQ(found[1].size, 2 * 1024 * 1024);
  EXPECT_EQ(found[1].num_sharing, 4);
}

TEST_F(MachineTest, PrefersTheBaseFrequency) {
  add_cpu(0, "0", 0);
  write("proc/cpuinfo", "bogomips\t: 5192.26\n");
  write("sys/devices/system/cpu/cpu0/cpufreq/base_frequency", "2800000\n");
  EXPECT_EQ(machine_facts(paths()).nominal_mhz, 2800);
}

TEST_F(MachineTest, SaysWhetherAGovernorSetsTheClockByTheLoad) {
  add_cpu(0, "0", 0);
  EXPECT_FALSE(machine_facts(paths()).clock_scales()) << "the kernel sets no frequency";
  write("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "schedutil\n");
  EXPECT_TRUE(machine_facts(paths()).clock_scales());
  write("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n");
  EXPECT_FALSE(machine_facts(paths()).clock_scales());
}

TEST_F(MachineTest, SurvivesAnEmptyMachine) {
  const MachineFacts facts = machine_facts(paths());
  EXPECT_EQ(facts.cpu_model, "unknown");
  EXPECT_EQ(facts.huge_pages, "unknown");
  EXPECT_THAT(facts.load_average, IsEmpty());
}

STRATAGEM_REGISTER(strategies::StrategyEntry{.name = "test_spreading", .multi_device = true});
STRATAGEM_REGISTER(strategies::StrategyEntry{.name = "test_alone"});

Config config_of(const std::string& strategy, std::int64_t devices, std::int64_t cores) {
  Config config;
  config.strategy = strategy;
  config.devices = devices;
  config.cores_per_device = cores;
  return config;
}

TEST(CoreDemand, RefusesMoreDevicesThanCoresAndSaysWhatFits) {
  try {
    require_cores(config_of("test_spreading", 4, 1), 2);
    FAIL() << "four devices on two cores";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(),
                 "--devices 4 with 1 core each needs 4 cores and 2 are available; use --devices 2, "
                 "or --oversubscribe (the row is marked and not ranked)");
  }
  EXPECT_NO_THROW(require_cores(config_of("test_spreading", 2, 1), 2));
  EXPECT_NO_THROW(require_cores(config_of("test_alone", 4, 1), 2));
}

TEST(CoreDemand, SuggestsFewerCoresForOneDevice) {
  try {
    require_cores(config_of("test_alone", 1, 8), 2);
    FAIL() << "eight cores of two";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), HasSubstr("use --cores-per-device 2"));
  }
}

TEST(CoreDemand, MarksWhatIsOutOfTheOrdinary) {
  Config config = config_of("test_spreading", 4, 1);
  config.oversubscribe = true;
  EXPECT_NO_THROW(require_cores(config, 2));
  EXPECT_THAT(marks_of(config, 2), ElementsAre("oversubscribed"));
  EXPECT_THAT(marks_of(config, 4), IsEmpty());
  config.device_ids = {0, 0};
  EXPECT_THAT(marks_of(config, 4), ElementsAre("shared"));
}

Config row_on(decltype(Config::device) device, bool tf32, Dtype dtype = "float32") {
  Config row;
  row.device = device;
  row.tf32 = tf32;
  row.dtype = dtype;
  return row;
}

TEST(Tf32Note, SaysWhereThePyTorchDefaultIsAnotherOne) {
  EXPECT_THAT(tf32_note(row_on("cuda", false), true), HasSubstr("PyTorch's default is TF32"));
  EXPECT_EQ(tf32_note(row_on("cuda", false), false), "") << "no convolutions";
  for (const bool convolutions : {false, true}) {
    EXPECT_THAT(tf32_note(row_on("cuda", true), convolutions),
                HasSubstr("PyTorch's default is float32"));
    EXPECT_EQ(tf32_note(row_on("cpu", false), convolutions), "");
    EXPECT_EQ(tf32_note(row_on("cuda", false, "float16"), convolutions), "");
  }
}

TEST(CoreDemand, TakesTheFirstCores) {
  EXPECT_THAT(cores_of(config_of("test_spreading", 2, 1), {4, 6, 8}), ElementsAre(4, 6));
  EXPECT_THAT(cores_of(config_of("test_alone", 2, 1), {4, 6, 8}), ElementsAre(4));
  EXPECT_THAT(cores_of(config_of("test_spreading", 4, 1), {4, 6, 8}), ElementsAre(4, 6, 8));
  Config config = config_of("test_spreading", 2, 1);
  config.device = "cuda";
  EXPECT_THAT(cores_of(config, {4, 6, 8}), IsEmpty());
}

TEST(Machine, KnowsTheVariablesThatLibrariesObey) {
  const EnvironmentVariable of_library("MKL_EXAMPLE", "1");
  const EnvironmentVariable of_another("EXAMPLE_MKL", "1");
  const EnvironmentVariable threads("OMP_NUM_THREADS", "1");
  EXPECT_THAT(library_settings(), HasSubstr("MKL_EXAMPLE=1"));
  EXPECT_THAT(library_settings(), testing::Not(HasSubstr("EXAMPLE_MKL")));
  EXPECT_THAT(library_settings(), testing::Not(HasSubstr("OMP_NUM_THREADS")));
  of_library.set({});
  EXPECT_THAT(library_settings(), testing::Not(HasSubstr("MKL_EXAMPLE")));
}

TEST(Machine, IsUntimedWhenTheEnvironmentSaysSo) {
  const EnvironmentVariable untimed("STRATAGEM_UNTIMED", {});
  EXPECT_FALSE(is_untimed());
  untimed.set("");
  EXPECT_FALSE(is_untimed());
  untimed.set("1");
  EXPECT_TRUE(is_untimed());
  EXPECT_THAT(library_settings(), HasSubstr("STRATAGEM_UNTIMED=1"));
}

TEST(Machine, KnowsItself) {
  EXPECT_FALSE(affinity_mask().empty());
  EXPECT_FALSE(available_cores().empty());
  EXPECT_EQ(build_id(), build_id());
  EXPECT_GE(build_id().size(), 8u);
  const reports::Context context = make_context("stratagem run");
  EXPECT_THAT(context.date, testing::MatchesRegex("....-..-..T..:..:..[+-]..:.."));
  EXPECT_GE(context.num_cpus, 1);
  EXPECT_EQ(context.command_line, "stratagem run");
}

TEST(TemporaryFolder, NamesTheVariableOfAFolderThatIsNotThere) {
  EXPECT_TRUE(fs::is_directory(temporary_folder()));
  const EnvironmentVariable variable("TMPDIR", "nosuch/folder");
  try {
    temporary_folder();
    FAIL() << "accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(),
                 "TMPDIR=nosuch/folder: this folder for temporary files does not exist");
  }
}

}  // namespace
}  // namespace stratagem::bench::machine_test
