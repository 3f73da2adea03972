#include "bench/config/run_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <system_error>

#include "bench/config/grid.h"
#include "tests/bench/error_of.h"
#include "tests/bench/example_catalogue.h"
#include "tests/temporary_folder.h"

namespace stratagem::bench::run_options_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class RunOptionsTest : public testing::Test {
 protected:
  Selection parse(std::vector<std::string> arguments) const {
    CLI::App app;
    CLI::App* run = app.add_subcommand("run");
    RunOptions options;
    const Catalogue catalogue = example_catalogue();
    add_run_options(*run, options, catalogue);
    arguments.insert(arguments.begin(), "run");
    std::reverse(arguments.begin(), arguments.end());
    app.parse(arguments);
    return select(options);
  }

  Selection with_file(const std::string& text, std::vector<std::string> arguments = {}) const {
    std::ofstream(path_) << text;
    arguments.insert(arguments.end(), {"--config", path_});
    return parse(arguments);
  }

  std::string refusal_of_file(const std::string& text) const {
    const std::string message = error_of([&] { with_file(text); });
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    const std::size_t start = message.find(path_);
    return start == 0 ? "FILE" + message.substr(path_.size()) : message;
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_ / "options.json";
};

TEST_F(RunOptionsTest, TakesListsSwitchesAndFiles) {
  const Selection selection =
      parse({"--strategy", "single,pipeline", "--split-size=4,8", "--no-verify", "--oversubscribe",
             "--tf32", "on", "--out", "r.json", "--resume", "--quiet", "--anonymous"});
  EXPECT_THAT(selection.options.at("strategy").texts, ElementsAre("single", "pipeline"));
  EXPECT_THAT(selection.options.at("split_size").texts, ElementsAre("4", "8"));
  EXPECT_EQ(selection.options.at("split_size").where, "--split-size");
  EXPECT_THAT(selection.options.at("verify").texts, ElementsAre("off"));
  EXPECT_THAT(selection.options.at("oversubscribe").texts, ElementsAre("on"));
  EXPECT_THAT(selection.options.at("tf32").texts, ElementsAre("on"));
  EXPECT_EQ(selection.files.out, "r.json");
  EXPECT_TRUE(selection.files.resume);
  EXPECT_TRUE(selection.files.quiet);
  EXPECT_TRUE(selection.files.anonymous);
}

TEST_F(RunOptionsTest, ABooleanAloneIsOn) {
  const Selection selection = parse({"--cudnn-benchmark", "--devices", "2"});
  EXPECT_THAT(selection.options.at("cudnn_benchmark").texts, ElementsAre("on"));
  EXPECT_THAT(selection.options.at("devices").texts, ElementsAre("2"));
}

TEST_F(RunOptionsTest, NegativeNumbersAreValues) {
  EXPECT_EQ(error_of([&] {
              make_grid(parse({"--split-size", "-4"}), example_catalogue());
            }),
            "--split-size: -4 is out of range; expected 1 or more");
}

TEST_F(RunOptionsTest, UnknownOptionsAreAnsweredWithTheNearest) {
  EXPECT_EQ(error_of([&] {
              parse({"--split-sizes", "4"});
            }),
            "unknown option --split-sizes: did you mean \"--split-size\"?");
  EXPECT_EQ(error_of([&] { parse({"--nodes=2"}); }).substr(0, 23), "unknown option --nodes;");
  EXPECT_EQ(error_of([&] {
              parse({"--split-size", "4", "8"});
            }),
            "unexpected argument \"8\"; join several values of an option with commas");
}

TEST_F(RunOptionsTest, TheCommandLineWinsOverTheFileOverThePreset) {
  const Selection selection =
      with_file(R"({"preset": "cpu", "split_size": [3, 6], "steps": 5, "out": "file.json"})",
                {"--steps", "7", "--out", "line.json"});
  EXPECT_THAT(selection.options.at("steps").texts, ElementsAre("7"));
  EXPECT_THAT(selection.options.at("split_size").texts, ElementsAre("3", "6"));
  EXPECT_EQ(selection.options.at("split_size").where, path_ + ": split_size");
  EXPECT_THAT(selection.options.at("global_batch_size").texts, ElementsAre("24"));
  EXPECT_FALSE(selection.options.at("global_batch_size").by_user());
  EXPECT_EQ(selection.files.out, "line.json");
}

TEST_F(RunOptionsTest, TheBatchOfAHigherLayerReplacesTheLowers) {
  const Selection selection =
      with_file(R"({"global_batch_size": 64})", {"--per-device-batch-size", "8"});
  EXPECT_EQ(selection.options.count("global_batch_size"), 0U);
  EXPECT_EQ(make_grid(selection, example_catalogue())[0].global_batch_size, 16);
  EXPECT_EQ(refusal_of_file(R"({"global_batch_size": 64, "per_device_batch_size": 8})"),
            "FILE: global_batch_size and " + path_ +
                ": per_device_batch_size exclude each other; give one of them");
}

TEST_F(RunOptionsTest, TheFileTakesEveryKindOfValue) {
  const Selection selection = with_file(
      R"({"strategy": "pipeline", "cut": ["layer2+layer4", "layer3"], "learning_rate": 0.1,
          "no_verify": true, "device_ids": "0+3", "oversubscribe": true})");
  EXPECT_THAT(selection.options.at("cut").texts, ElementsAre("layer2+layer4", "layer3"));
  EXPECT_THAT(selection.options.at("verify").texts, ElementsAre("off"));
  EXPECT_THAT(selection.options.at("learning_rate").texts, ElementsAre("0.1"));
  EXPECT_THAT(selection.options.at("device_ids").texts, ElementsAre("0+3"));
}

TEST_F(RunOptionsTest, ABadFileIsRefusedInOneLine) {
  EXPECT_EQ(refusal_of_file(R"({"split_sizes": 4})"),
            "FILE: unknown key \"split_sizes\": did you mean \"split_size\"?");
  EXPECT_EQ(refusal_of_file(R"({"split_size": "4"})"),
            "FILE: split_size: expected a whole number, found a string");
  EXPECT_EQ(refusal_of_file(R"({"split_size": [4, true]})"),
            "FILE: split_size[1]: expected a whole number, found true or false");
  EXPECT_EQ(refusal_of_file(R"({"split_size": []})"),
            "FILE: split_size: an empty list; give one value or more");
  EXPECT_EQ(refusal_of_file(R"({"out": 3})"), "FILE: out: expected a string, found a whole number");
  EXPECT_EQ(refusal_of_file("[1]"), "FILE: expected an object of options, found a list");
  EXPECT_THAT(refusal_of_file("{\"split_size\": 4,\n \"steps\" 3}"),
              testing::StartsWith("FILE: not valid JSON at line 2, column 10"));
  EXPECT_EQ(refusal_of_file(R"({"momentum": 1e999})"),
            "FILE: not valid JSON: number overflow parsing '1e999'");
  EXPECT_THAT(refusal_of_file(""), testing::StartsWith("FILE: not valid JSON at line 1"));
}

TEST_F(RunOptionsTest, AKeyOfTheFileOccursOnce) {
  const std::string line = "FILE: the key \"steps\" occurs twice; keep one";
  EXPECT_EQ(refusal_of_file(R"({"steps": 2, "seed": 1, "steps": 2})"), line);
  EXPECT_EQ(refusal_of_file(R"({"seed": {"steps": 2, "steps": 3}})"), line);
  EXPECT_EQ(refusal_of_file(R"({"a\nb": 2, "a\nb": 3})"),
            R"(FILE: the key "a\nb" occurs twice; keep one)");
  const std::string other = R"({"seed": {"steps": 2}, "steps": {"steps": 3}})";
  EXPECT_EQ(refusal_of_file(other), "FILE: seed: expected a whole number, found an object");
}

TEST_F(RunOptionsTest, AMissingFileIsNamed) {
  try {
    parse({"--config", "/nowhere/grid.json"});
    FAIL() << "nothing was thrown";
  } catch (const std::system_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("/nowhere/grid.json"));
    EXPECT_THAT(error.what(), HasSubstr("No such file"));
  }
}

TEST_F(RunOptionsTest, ASwitchTakesOnlyTrueAndFalse) {
  CLI::App app;
  RunOptions options;
  add_run_options(app, options, example_catalogue());
  const auto refusal = [&](const std::string& argument) {
    return error_of([&] { require_values(app, {argument}); });
  };
  for (const char* flag : {"--quiet", "--resume", "--no-predict"}) {
    const std::string expected =
        std::string(flag) + ": unknown value \"3\"; a switch takes no value, or true or false";
    EXPECT_EQ(refusal(std::string(flag) + "=3"), expected);
    EXPECT_EQ(refusal(std::string(flag) + "="),
              std::string(flag) + ": the value is empty; give one");
    for (const char* value : {"", "=true", "=false"}) {
      EXPECT_NO_THROW(require_values(app, {std::string(flag) + value}));
    }
  }
  EXPECT_NO_THROW(require_values(app, {"--steps=3", "--tf32=on", "--unknown=3", "word=3"}));
}

TEST_F(RunOptionsTest, HelpListsOptionsUnderTheirStrategies) {
  CLI::App app;
  RunOptions options;
  add_run_options(app, options, example_catalogue());
  const std::string help = app.help();
  EXPECT_LT(help.find("Common options:"), help.find("Options of model_parallel, pipeline:"));
  EXPECT_LT(help.find("--split-size"), help.find("Work:")) << "a common one";
  EXPECT_THAT(help, HasSubstr("--split-size"));
  EXPECT_THAT(help, HasSubstr("--per-device-batch-size"));
  EXPECT_THAT(help, testing::Not(HasSubstr("--verify")));
}

}  // namespace
}  // namespace stratagem::bench::run_options_test
