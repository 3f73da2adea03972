#include "reports/anonymous.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "reports/json_writer.h"

namespace stratagem::reports::anonymous_test {
namespace {

ResultFile results() {
  ResultFile file;
  file.context.host_name = "node-7";
  file.context.executable = "/data/somebody/build/bin/stratagem_torch";
  file.context.command_line =
      "stratagem run --mesh data=2/pipeline=2 --only single/mlp/devices:1 --out secret/out.json "
      "--plugin=./secret/own.so --data ~/secret/images";
  file.context.software = {{"torch", "2.11.0"},
                           {"environment", "OMP_PROC_BIND=secret"},
                           {"plugins", "/secret/own.so@1234"}};
  Row row;
  row.name = "single/mlp/devices:1";
  row.config = {{"plugin", "../secret/own.so"}, {"mesh", "data=2/pipeline=2"}};
  Repetition failed;
  failed.error = Error{.host = "node-8",
                       .last_action = "1F0",
                       .message = "rank 1 on node-8: /secret/x.bin: no space / no memory"};
  row.repetitions = {failed};
  file.rows = {row};
  return file;
}

TEST(Anonymise, RemovesHostsFoldersAndVariables) {
  ResultFile file = results();
  anonymise(file);
  const std::string text = results_json(file).dump();
  for (const char* word : {"secret", "somebody", "node-7", "node-8", "PROC_BIND"}) {
    EXPECT_EQ(text.find(word), std::string::npos) << word << " in " << text;
  }
}

TEST(Anonymise, KeepsWhatDescribesTheMeasurement) {
  ResultFile file = results();
  anonymise(file);
  EXPECT_EQ(file.context.executable, "stratagem_torch");
  EXPECT_EQ(file.context.command_line,
            "stratagem run --mesh data=2/pipeline=2 --only single/mlp/devices:1 --out out.json "
            "--plugin=own.so --data images");
  EXPECT_EQ(file.rows.front().name, "single/mlp/devices:1");
  EXPECT_EQ(std::get<std::string>(file.rows.front().config[0].second), "own.so");
  EXPECT_EQ(std::get<std::string>(file.rows.front().config[1].second), "data=2/pipeline=2");
  EXPECT_EQ(file.rows.front().repetitions.front().error->message,
            "rank 1 on HOST: x.bin: no space / no memory");
  EXPECT_EQ(std::get<std::string>(file.context.software.back().second), "own.so@1234");
}

TEST(Anonymise, ReplacesAHostOnlyAsAWholeWord) {
  ResultFile file;
  file.context.host_name = "a";
  file.context.command_line = "stratagem run --strategy data_parallel a";
  anonymise(file);
  EXPECT_EQ(file.context.command_line, "stratagem run --strategy data_parallel HOST");
}

}  // namespace
}  // namespace stratagem::reports::anonymous_test
