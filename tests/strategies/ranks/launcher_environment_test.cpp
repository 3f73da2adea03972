#include "strategies/ranks/launcher_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <stdexcept>

namespace stratagem::ranks::launcher_environment_test {
namespace {

using ::testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

LauncherEnvironment detect(const Variables& variables) {
  return detect_launcher([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

std::string refusal(const Variables& variables) {
  try {
    detect(variables);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

const std::string not_set =
    " is not set in the environment; set it, or start the ranks by hand with --init-method, --rank "
    "and --world-size";

const Variables torchrun = {{"TORCHELASTIC_RUN_ID", "abc"},
                            {"TORCHELASTIC_RESTART_COUNT", "2"},
                            {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                            {"RANK", "3"},
                            {"WORLD_SIZE", "4"},
                            {"LOCAL_RANK", "1"},
                            {"LOCAL_WORLD_SIZE", "2"},
                            {"MASTER_ADDR", "10.0.0.1"},
                            {"MASTER_PORT", "29400"}};
const Variables mpirun = {{"OMPI_COMM_WORLD_RANK", "1"},
                          {"OMPI_COMM_WORLD_SIZE", "2"},
                          {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                          {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                          {"PMIX_NAMESPACE", "12345"}};
const Variables srun = {{"SLURM_JOB_ID", "7"},
                        {"SLURM_STEP_ID", "0"},
                        {"SLURM_PROCID", "2"},
                        {"SLURM_STEP_NUM_TASKS", "4"},
                        {"SLURM_LOCALID", "0"},
                        {"SLURM_STEP_NUM_NODES", "2"},
                        {"SLURM_STEP_NODELIST", "n[04-05]"},
                        {"SLURM_NODEID", "1"},
                        {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"}};
const Variables mpiexec = {
    {"PMI_RANK", "1"}, {"PMI_SIZE", "3"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}};

TEST(Launcher, NoneIsOneProcess) {
  const auto found = detect({});
  EXPECT_EQ(found.launcher, Launcher::none);
  EXPECT_EQ(found.info, RankInfo{});
}

TEST(Launcher, TorchrunSaysWhereTheStoreIs) {
  const auto found = detect(torchrun);
  EXPECT_EQ(found.launcher, Launcher::torchrun);
  EXPECT_EQ(found.info, (RankInfo{3, 4, 1, 2}));
  EXPECT_EQ(found.master_address, "10.0.0.1");
  EXPECT_EQ(found.master_port, 29400);
  EXPECT_TRUE(found.launcher_serves_store);
  EXPECT_EQ(found.run_id, "abc.2") << "the store outlives a restart";
}

TEST(Launcher, RankAndWorldSizeByHand) {
  const auto found = detect({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}});
  EXPECT_EQ(found.launcher, Launcher::environment);
  EXPECT_EQ(found.info, (RankInfo{1, 2, 1, 2}));
  EXPECT_FALSE(found.launcher_serves_store);
  EXPECT_EQ(found.master_port, std::nullopt);
}

TEST(Launcher, MpirunsRanksAgreeOnAPort) {
  const auto found = detect(mpirun);
  EXPECT_EQ(found.launcher, Launcher::mpirun);
  EXPECT_EQ(found.info, (RankInfo{1, 2, 1, 2}));
  EXPECT_EQ(found.master_address, "");
  auto other = mpirun;
  other["OMPI_COMM_WORLD_RANK"] = other["OMPI_COMM_WORLD_LOCAL_RANK"] = "0";
  EXPECT_EQ(detect(other).master_port, found.master_port);
  other["PMIX_NAMESPACE"] = "12346";
  EXPECT_NE(detect(other).master_port, found.master_port) << "two runs of one host must not meet";
}

TEST(Launcher, ADerivedPortIsNoneOfThoseThatLinuxGivesToConnections) {
  for (int run = 0; run < 1000; ++run) {
    const auto port = port_from("mpirun " + std::to_string(run));
    EXPECT_GE(port, 12000);
    EXPECT_LT(port, 32000);
  }
}

TEST(Launcher, SrunsMasterIsTheFirstHostOfTheStep) {
  const auto found = detect(srun);
  EXPECT_EQ(found.launcher, Launcher::srun);
  EXPECT_EQ(found.info, (RankInfo{2, 4, 0, 2}));
  EXPECT_EQ(found.master_address, "n04");
  EXPECT_EQ(found.run_id, "7.0");
}

TEST(Launcher, SlurmsNodesMayHaveDifferentNumbersOfTasks) {
  Variables uneven = srun;
  uneven["SLURM_STEP_NUM_TASKS"] = "3";
  uneven["SLURM_STEP_TASKS_PER_NODE"] = "2,1";
  EXPECT_EQ(detect(uneven).info, (RankInfo{2, 3, 0, 1}));
  uneven["SLURM_PROCID"] = uneven["SLURM_LOCALID"] = "1";
  uneven["SLURM_NODEID"] = "0";
  EXPECT_EQ(detect(uneven).info, (RankInfo{1, 3, 1, 2}));
  uneven["SLURM_STEP_TASKS_PER_NODE"] = "2";
  EXPECT_EQ(refusal(uneven), "srun: SLURM_STEP_TASKS_PER_NODE=2 is not a list of 3 tasks");
  uneven.erase("SLURM_STEP_TASKS_PER_NODE");
  EXPECT_EQ(refusal(uneven), "srun: SLURM_STEP_TASKS_PER_NODE" + not_set);
}

TEST(Launcher, TasksPerNodeAsSlurmWritesThem) {
  using ::testing::ElementsAre;
  EXPECT_THAT(slurm_tasks_per_node("4", 4), ElementsAre(4));
  EXPECT_THAT(slurm_tasks_per_node("2(x3),1", 7), ElementsAre(2, 2, 2, 1));
  EXPECT_THAT(slurm_tasks_per_node("1,16(x2)", 33), ElementsAre(1, 16, 16));
  for (const char* wrong : {"", "2", "2(x3", "2(x),1", "2x3,1", "2(x3),", "-2,9", "2(x0),7",
                            "2(x2147483647),1", "2147483647(x2)"}) {
    EXPECT_THAT(slurm_tasks_per_node(wrong, 7), ElementsAre()) << wrong;
  }
}

TEST(Launcher, MpiexecOfMpichAndIntelMpi) {
  const auto found = detect(mpiexec);
  EXPECT_EQ(found.launcher, Launcher::mpiexec);
  EXPECT_EQ(found.info, (RankInfo{1, 3, 1, 2}));
  EXPECT_EQ(found.master_port, std::nullopt) << "nothing is known to the ranks of this run alone";
  const auto bare = detect({{"PMI_RANK", "1"}, {"PMI_SIZE", "3"}});
  EXPECT_EQ(bare.info, (RankInfo{1, 3, 1, 3}));
}

TEST(Launcher, MpiexecsNumbersGoBeforeThoseOfTheStepThatStartedItsProxy) {
  Variables both = srun;
  both.insert(mpiexec.begin(), mpiexec.end());
  EXPECT_EQ(detect(both).launcher, Launcher::mpiexec);
  both["PMI_RANK"] = both["SLURM_PROCID"];
  both["PMI_SIZE"] = both["SLURM_STEP_NUM_TASKS"];
  EXPECT_EQ(detect(both).launcher, Launcher::srun) << "srun --mpi=pmi2";
}

TEST(Launcher, AnMpiThatIsNotUnderstoodIsNoProcessAlone) {
  EXPECT_EQ(detect({{"PMIX_RANK", "1"}, {"PMIX_NAMESPACE", "x"}}).unknown_rank, "PMIX_RANK=1");
  EXPECT_EQ(detect({{"PMI_RANK", "0"}}).unknown_rank, "PMI_RANK=0") << "without a size";
  EXPECT_EQ(detect({}).unknown_rank, "");
  Variables known = srun;
  known["PMIX_RANK"] = "2";
  EXPECT_EQ(detect(known).unknown_rank, "") << "srun --mpi=pmix";
}

TEST(Launcher, ABatchScriptIsNoRank) {
  EXPECT_EQ(detect({{"SLURM_JOB_ID", "7"}, {"SLURM_PROCID", "0"}}).launcher, Launcher::none);
}

TEST(Launcher, TheInnermostLauncherIsAsked) {
  Variables both = srun;
  both.insert(mpirun.begin(), mpirun.end());
  EXPECT_EQ(detect(both).launcher, Launcher::mpirun) << "mpirun inside sbatch";
  both.insert(torchrun.begin(), torchrun.end());
  EXPECT_EQ(detect(both).launcher, Launcher::torchrun);
}

TEST(Launcher, RefusesWhatCannotBe) {
  auto variables = torchrun;
  variables["RANK"] = "4";
  EXPECT_EQ(refusal(variables), "torchrun: rank 4 of 4, local rank 1 of 2: out of range");
  variables["RANK"] = "two";
  EXPECT_EQ(refusal(variables), "torchrun: RANK=two is not a whole number of 0 or more");
  variables.erase("RANK");
  EXPECT_EQ(refusal(variables), "torchrun: RANK" + not_set);
  variables = torchrun;
  variables["MASTER_PORT"] = "70000";
  EXPECT_EQ(refusal(variables), "torchrun: MASTER_PORT=70000 is not a port from 1 to 65535");
}

TEST(Launcher, TheFirstOfSlurmsHosts) {
  EXPECT_EQ(first_slurm_host("n0"), "n0");
  EXPECT_EQ(first_slurm_host("n0,n1"), "n0");
  EXPECT_EQ(first_slurm_host("n[0-1],m3"), "n0");
  EXPECT_EQ(first_slurm_host("n[008,010]"), "n008");
  EXPECT_EQ(first_slurm_host("login,n[1-2]"), "login");
}

}  // namespace
}  // namespace stratagem::ranks::launcher_environment_test
