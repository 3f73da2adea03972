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
  return make_environment({}, interrupt, notes, /*verbose=*/false, /*cluster=*/nullptr).identity;
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
  for (const char* key :
       {"build", "torch", "cpu_model", "available_cores", "kernel", "microcode"}) {
    EXPECT_TRUE(own.contains(key)) << key;
  }
}

}  // namespace
}  // namespace stratagem::bench::environment_test
