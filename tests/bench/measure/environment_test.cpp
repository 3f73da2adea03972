// What a real measurement runs in.
#include "bench/measure/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/bench/fake_workers.h"
#include "tests/environment_variable.h"

namespace stratagem::bench::environment_test {
namespace {

using testing::HasSubstr;

nlohmann::json identity() {
  const Interrupt interrupt;
  Notes notes;
  return make_environment({}, interrupt, notes, /*verbose=*/false, /*worker=*/nullptr).identity;
}

TEST(MakeEnvironment, AnAnswerIsKeptForTheVariablesThatLibrariesObey) {
  const nlohmann::json plain = identity();
  EXPECT_EQ(plain, identity());
  const EnvironmentVariable example("ONEDNN_EXAMPLE", "AVX2");
  const nlohmann::json changed = identity();
  EXPECT_NE(plain, changed);
  EXPECT_THAT(changed.at("environment").get<std::string>(), HasSubstr("ONEDNN_EXAMPLE=AVX2"));
}

TEST(MakeEnvironment, AnAnswerIsKeptForOneKindOfMachine) {
  const nlohmann::json own = identity();
  for (const char* key : {"build", "torch", "torch_build_id", "cpu_model", "instruction_sets",
                          "available_cores", "kernel", "microcode"}) {
    EXPECT_TRUE(own.contains(key)) << key;
  }
}

Job job_on(Job job, decltype(Config::device) device) {
  std::visit(
      [&](auto& one) {
        if constexpr (requires { one.config; }) one.config.device = device;
        if constexpr (requires { one.configs; }) one.configs = {Config(), Config()};
        if constexpr (requires { one.configs; }) one.configs.back().device = device;
      },
      job);
  return job;
}

TEST(MayFork, WhatIsNotTimed) {
  for (const Job& job : {Job(CheckJob()), Job(VerifyJob())}) {
    EXPECT_TRUE(may_fork(job_on(job, "cpu"), /*untimed=*/false));
  }
  for (const Job& job : {Job(MeasureJob()), Job(CalibrateDeviceJob()), Job(CalibrateStagesJob()),
                         Job(CollectivesJob()), Job(TrainJob()), Job(CanaryJob())}) {
    EXPECT_FALSE(may_fork(job_on(job, "cpu"), /*untimed=*/false));
    EXPECT_TRUE(may_fork(job_on(job, "cpu"), /*untimed=*/true));
  }
}

TEST(MayFork, NothingOnAGpu) {
  for (const Job& job : {Job(CheckJob()), Job(VerifyJob()), Job(MeasureJob())}) {
    EXPECT_FALSE(may_fork(job_on(job, "cuda"), /*untimed=*/true));
  }
}

}  // namespace
}  // namespace stratagem::bench::environment_test
