#include "reports/console_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "reports/short_names.h"
#include "reports/text_table.h"
#include "tests/reports/approved_file.h"
#include "tests/reports/example_results.h"

namespace stratagem::reports::console_table_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  return lines;
}

// Two rows of the same work at these step times, with an interval of +-5 ms.
std::string table_of(double single_ms, double pipeline_ms) {
  return console_table(
      {example_row("single", "devices:1/batch:48/image:128", single_ms),
       example_row("pipeline", "devices:2/batch:48/image:128/split:12", pipeline_ms)},
      {});
}

TEST(ConsoleTable, MatchesTheApprovedOutput) {
  std::string received;
  for (const int width : {0, 100, 60, 24}) {
    received += "width " + std::to_string(width) + "\n" +
                console_table(example_rows(), {.width = width}) + "\n";
  }
  EXPECT_TRUE(is_approved("console_table.txt", received)) << "received:\n" << received;
}

TEST(ConsoleTable, LinesFitTheWidth) {
  for (const int width : {100, 60}) {
    bool in_table = false;
    for (const std::string& line : lines_of(console_table(example_rows(), {.width = width}))) {
      in_table = (in_table || line.find("step ms") != std::string::npos) &&
                 line.find("interval: ") == std::string::npos;
      if (in_table) {
        EXPECT_LE(display_width(line), static_cast<std::size_t>(width)) << line;
      }
    }
  }
}

TEST(ConsoleTable, NamesTheWinner) {
  const std::string table = table_of(200, 100);
  EXPECT_THAT(table, HasSubstr("fastest: pipeline/devices:2, 2.00x over single (1.89 to 2.11)\n"));
  EXPECT_LT(table.find("1  pipeline"), table.find("2  single"));
}

TEST(ConsoleTable, NamesTheBestOverSeveralDevicesWhereOneDeviceWins) {
  EXPECT_THAT(console_table({example_row("single", "devices:1/batch:48", 100),
                             example_row("ddp", "devices:2/batch:48", 300),
                             example_row("pipeline", "devices:2/batch:48", 200)},
                            {}),
              HasSubstr("fastest: single/devices:1\nover several devices: fastest: "
                        "pipeline/devices:2, 0.50x over single (0.47 to 0.53)\n"));
  EXPECT_THAT(table_of(100, 200), Not(HasSubstr("over several"))) << "one of them wins nothing";
}

TEST(ConsoleTable, SaysWhenItCannotTell) {
  EXPECT_THAT(table_of(104, 100),
              HasSubstr("cannot tell pipeline/devices:2 from single/devices:1: their times "
                        "overlap\n"));
  EXPECT_THAT(table_of(104, 100), Not(HasSubstr("fastest")));
}

TEST(ConsoleTable, SaysWhichRowsScatterTooMuch) {
  std::vector<Row> rows = {example_row("single", "batch:48", 2000),
                           example_row("pipeline", "batch:48", 1000)};
  EXPECT_THAT(console_table(rows, {}), Not(HasSubstr("wide: ")));
  rows[1].repetitions[0].step_ms = {1500};
  EXPECT_THAT(console_table(rows, {}), HasSubstr("wide: pipeline ("));
  EXPECT_THAT(console_table(rows, {}), HasSubstr("more than 5% of the median"));
}

TEST(ConsoleTable, ARowWithoutACalmLaunchHasNoSpeedUpAndThatIsSaid) {
  std::vector<Row> rows = example_rows();
  EXPECT_THAT(console_table(rows, {}), HasSubstr("over single"));
  for (Row& row : rows) {
    for (Repetition& launch : row.repetitions) launch.marks = {"disturbed"};
  }
  const std::string table = console_table(rows, {});
  EXPECT_THAT(table, Not(HasSubstr("over single")));
  EXPECT_THAT(table, HasSubstr("a row without others has no speed-up and no verdict"));
}

TEST(ConsoleTable, SaysHowManyLaunchesWereDisturbed) {
  std::vector<Row> rows = {example_row("single", "batch:48", 1000),
                           example_row("pipeline", "batch:48", 900)};
  EXPECT_THAT(console_table(rows, {}), Not(HasSubstr("disturbed")));
  rows[0].repetitions[1].marks = {"waited", "disturbed"};
  rows[1].repetitions[2].marks = {"disturbed"};
  EXPECT_THAT(
      console_table(rows, {}),
      HasSubstr("disturbed: 2 of 12 launches; intervals leave them out where a row has others\n"));
}

TEST(ConsoleTable, SaysWhatAtenComputedInPlaceOfOurKernels) {
  std::vector<Row> rows = {example_row("single", "batch:48", 1000),
                           example_row("pipeline", "batch:48", 900)};
  for (Row& row : rows) {
    for (Repetition& launch : row.repetitions) launch.kernels = "own";
  }
  EXPECT_THAT(console_table(rows, {}), Not(HasSubstr("kernels")));
  for (Repetition& launch : rows[0].repetitions) {
    launch.marks = {"aten_kernels"};
    launch.kernels = "own; ATen's for convolution: reduced precision";
  }
  EXPECT_THAT(console_table(rows, {}),
              HasSubstr("aten_kernels: single: own; ATen's for convolution: reduced precision\n"));
}

TEST(ConsoleTable, SaysWhatPredictionsAreMadeOf) {
  std::vector<Row> rows = {example_row("single", "batch:48", 1000),
                           example_row("pipeline", "batch:48", 900),
                           example_row("model_parallel", "batch:48", 900)};
  EXPECT_THAT(console_table(rows, {}), Not(HasSubstr("predicted: ")));
  for (Repetition& launch : rows[1].repetitions) launch.predicted_from = PredictionBasis{};
  EXPECT_THAT(console_table(rows, {}),
              HasSubstr("predicted: from stage costs measured in this run\n"));
  for (Repetition& launch : rows[2].repetitions) launch.predicted_from = {40.4, "", {}, {}};
  EXPECT_THAT(console_table(rows, {}),
              HasSubstr("predicted: from stage costs measured 40 s ago\n"));
  for (Repetition& launch : rows[1].repetitions)
    launch.predicted_from = {7300, "a busy machine", {}, {}};
  EXPECT_THAT(console_table(rows, {}),
              HasSubstr("predicted: from stage costs measured 2 h ago; unreliable: "
                        "pipeline (a busy machine)\n"));
  for (Repetition& launch : rows[2].repetitions)
    launch.predicted_from = {40.4, "a neighbour", {}, {}};
  EXPECT_THAT(console_table(rows, {}), HasSubstr("unreliable: pipeline (a busy machine), "
                                                 "model_parallel (a neighbour)\n"));
  for (Repetition& launch : rows[1].repetitions) {
    launch.predicted_ms = 900;
    launch.predicted_from = PredictionBasis{0, "", 882, 936};
  }
  for (Repetition& launch : rows[2].repetitions) launch.predicted_from = {};
  EXPECT_THAT(console_table(rows, {}),
              HasSubstr("measured in this run, quartiles -2.0% to +4.0%\n"));
}

TEST(ConsoleTable, FewLaunchesRankNothing) {
  std::vector<Row> rows = {example_row("single", "batch:48", 200),
                           example_row("pipeline", "batch:48", 100)};
  for (Row& row : rows) row.repetitions.resize(3);
  EXPECT_THAT(console_table(rows, {}), HasSubstr("cannot tell pipeline from single: 3 launches of "
                                                 "each, 4 are needed for this table\n"));
  for (Row& row : rows) row.repetitions.resize(1);
  EXPECT_THAT(console_table(rows, {}), HasSubstr("1 launch of each, 4 are needed"));
}

TEST(ConsoleTable, ARowAloneWinsNothing) {
  EXPECT_THAT(console_table({example_row("single", "batch:48", 200)}, {}),
              Not(testing::AnyOf(HasSubstr("fastest"), HasSubstr("cannot tell"))));
}

TEST(ConsoleTable, OversubscribedRowsDoNotWin) {
  std::vector<Row> rows = {example_row("single", "batch:48", 200),
                           example_row("ddp", "batch:48", 300),
                           example_row("pipeline", "batch:48", 100)};
  rows[2].repetitions[0].marks = {"oversubscribed"};
  EXPECT_THAT(console_table(rows, {}), HasSubstr("fastest: single\n"));
}

TEST(ConsoleTable, DifferentWorkIsNotRanked) {
  std::vector<Row> rows;
  for (const char* batch : {"batch:48", "batch:24"}) {
    for (const double step_ms : {200, 100}) {
      rows.push_back(example_row(step_ms > 100 ? "ddp" : "single", batch, step_ms));
    }
  }
  for (std::size_t row : {2, 3}) rows[row].workload = "resnet50/batch:24/image_size:128";
  const std::string table = console_table(rows, {});
  EXPECT_THAT(table, HasSubstr("\nbatch:48: fastest: single/batch:48\n"));
  EXPECT_THAT(table, HasSubstr("\nbatch:24: fastest: single/batch:24\n"));
}

TEST(ConsoleTable, FailedRowsStandLastInOneLine) {
  Row failed = failed_row();
  failed.repetitions[1].error->message = "first line\nsecond line";
  const std::vector<std::string> lines =
      lines_of(console_table({failed, example_row("single", "batch:48", 200)}, {}));
  EXPECT_THAT(lines.back(), HasSubstr("rank 0: first line second line (host host, last action: F3 "
                                      "s1 on device 1)"));
  EXPECT_THAT(lines.back(), testing::StartsWith("failed: pipeline"));
  // A message that names other ranks does not name the one that failed.
  failed.repetitions[1].error->message = "all_reduce in group all (ranks 0, 1): closed";
  EXPECT_THAT(console_table({failed}, {}), HasSubstr("rank 0: all_reduce in group all"));
  failed.repetitions[1].error->rank = 1;
  failed.repetitions[1].error->message = "rank 12 of 16 closed its connection";
  EXPECT_THAT(console_table({failed}, {}), HasSubstr("rank 1: rank 12 of 16 closed"));
  failed.repetitions[1].error->message = "rank 12 lost rank 1";
  EXPECT_THAT(console_table({failed}, {}), HasSubstr("rank 12 lost rank 1 ("));
}

TEST(ConsoleTable, EscapesOnlyOnATerminal) {
  EXPECT_THAT(console_table(example_rows(), {.width = 100}), Not(HasSubstr("\033")));
  EXPECT_THAT(console_table(example_rows(), {.width = 100, .terminal = true}),
              HasSubstr("\033[1m"));
}

TEST(ConsoleTable, NothingMeasuredIsAnEmptyTable) { EXPECT_EQ(console_table({}, {}), ""); }

TEST(ConsoleTable, UnderTheTutorialsProtocolThePredictionIsOfOneStep) {
  Row row = example_row("pipeline", "batch:48", 100);
  row.config.emplace_back("protocol", "tutorial");
  for (Repetition& repetition : row.repetitions) repetition.predicted_ms = 104;
  EXPECT_THAT(console_table({row}, {}), HasSubstr("  104.0 (one step)  "));
}

TEST(ShortNames, ShareWhatAllRowsAgreeOn) {
  const std::vector<std::string> names = {
      "single/resnet50/devices:1/batch:48/image:128",
      "single/resnet50/devices:1/batch:48/image:128/cores:2",
      "pipeline/resnet50/devices:2/batch:48/image:128/split:12/schedule:1f1b",
      "pipeline/resnet50/devices:2/batch:48/image:128/split:8/schedule:1f1b"};
  const ShortNames names_short = shorten(names);
  EXPECT_EQ(names_short.shared, "resnet50/batch:48/image:128/schedule:1f1b");
  EXPECT_THAT(names_short.names,
              ElementsAre("single/devices:1", "single/devices:1/cores:2",
                          "pipeline/devices:2/split:12", "pipeline/devices:2/split:8"));
}

TEST(ShortNames, KeepWhatOnlySomeRowsHave) {
  const std::vector<std::string> names = {"single/mlp/batch:8", "single/mlp/batch:8/tf32"};
  EXPECT_THAT(shorten(names).names, ElementsAre("single", "single/tf32"));
  const std::vector<std::string> both = {"single/mlp/batch:8/tf32", "pipeline/mlp/batch:8/tf32"};
  EXPECT_EQ(shorten(both).shared, "mlp/batch:8/tf32");
}

TEST(Significant, ANumberHasNoExponent) {
  EXPECT_EQ(significant(0), "0");
  EXPECT_EQ(significant(0.0123456), "0.0123");
  EXPECT_EQ(significant(2.2), "2.20");
  EXPECT_EQ(significant(1112.84), "1113");
  EXPECT_EQ(significant(791162.4, 4), "791162");
  EXPECT_EQ(significant(-0.25, 2), "-0.25");
  EXPECT_EQ(significant(9.996), "10.0");
  EXPECT_EQ(significant(999.96), "1000");
  EXPECT_EQ(significant(7.2e-07), "0.000000720");
}

TEST(TextTable, CutsNamesAtTheFrontAtLast) {
  const std::string table = render_table({{"row", false, 2, {"pipeline/devices:2/split:12"}},
                                          {"ms", true, 1, {"1590"}},
                                          {"less", true, 0, {"dropped"}}},
                                         20);
  EXPECT_EQ(table, "row               ms\n…es:2/split:12  1590\n");
}

}  // namespace
}  // namespace stratagem::reports::console_table_test
