#include "bench/google_benchmark/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/environment_variable.h"

namespace stratagem::bench::flags_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

std::string refusal(const std::vector<std::string>& arguments) {
  try {
    parse_benchmark_flags(arguments);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(BenchmarkFlags, AreTakenOutOfTheOptions) {
  const BenchmarkFlags flags = parse_benchmark_flags(
      {"--model", "toy", "--benchmark_filter=^pipe", "--benchmark_list_tests",
       "--benchmark_repetitions=5", "--benchmark_enable_random_interleaving=false",
       "--benchmark_out=r.json", "--benchmark_context=a=b,c=d=e", "--steps=3"});
  EXPECT_THAT(flags.others, ElementsAre("--model", "toy", "--steps=3"));
  EXPECT_EQ(flags.filter, "^pipe");
  EXPECT_TRUE(flags.list_tests);
  EXPECT_EQ(flags.repetitions, 5);
  EXPECT_EQ(flags.random_interleaving, false);
  EXPECT_EQ(flags.out, "r.json");
  EXPECT_THAT(flags.context, ElementsAre(Pair("a", "b"), Pair("c", "d=e")));
}

TEST(BenchmarkFlags, SayHowTheConsoleLooks) {
  const BenchmarkFlags flags =
      parse_benchmark_flags({"--benchmark_color=false", "--benchmark_counters_tabular",
                             "--benchmark_time_unit=us", "--v=2"});
  const ConsoleFlags expected = {
      .color = false, .counters_tabular = true, .time_unit = "us", .verbosity = "2"};
  EXPECT_EQ(flags.console, expected);
  EXPECT_EQ(parse_benchmark_flags({"--benchmark_color=auto"}).console, ConsoleFlags());
  EXPECT_THAT(flags.others, IsEmpty());
}

TEST(BenchmarkFlags, RefuseWhatTheReplayCannotDo) {
  for (const char* name : {"min_time", "min_warmup_time"}) {
    const std::string flag = std::string("--benchmark_") + name;
    EXPECT_EQ(refusal({flag + "=1"}), flag + " is not supported; use --steps and --repetitions");
  }
  EXPECT_EQ(refusal({"--benchmark_perf_counters=CYCLES"}),
            "--benchmark_perf_counters is not supported; no hardware events are counted");
}

TEST(BenchmarkFlags, RefuseUnknownFlagsAndWrongValues) {
  EXPECT_THAT(refusal({"--benchmark_fliter=x"}), HasSubstr("did you mean \"--benchmark_filter\"?"));
  EXPECT_THAT(refusal({"--benchmark_repetitions=0"}), HasSubstr("1 or more"));
  EXPECT_THAT(refusal({"--benchmark_list_tests=perhaps"}), HasSubstr("perhaps"));
  EXPECT_THAT(refusal({"--benchmark_out_format=xml"}), HasSubstr("xml"));
  EXPECT_THAT(refusal({"--benchmark_time_unit=min"}), HasSubstr("none of ns, us, ms, s"));
  EXPECT_THAT(refusal({"--benchmark_context=novalue"}), HasSubstr("KEY=VALUE"));
}

TEST(BenchmarkFlags, OthersAreKeptForTheLibrary) {
  const BenchmarkFlags flags = parse_benchmark_flags(
      {"--benchmark_min_time=1", "--benchmark_filter=a", "--benchmark_new=1", "word"},
      OtherFlags::kept);
  EXPECT_EQ(flags.filter, "a");
  EXPECT_THAT(flags.others, ElementsAre("--benchmark_min_time=1", "--benchmark_new=1", "word"));
  EXPECT_THROW(parse_benchmark_flags({"--benchmark_format=xml"}, OtherFlags::kept),
               std::invalid_argument);
  EXPECT_TRUE(is_known_flag("--benchmark_min_time"));
  EXPECT_TRUE(is_known_flag("--benchmark_filter"));
  EXPECT_FALSE(is_known_flag("--benchmark_new"));
  EXPECT_EQ(unknown_flag("--foo"), "unknown option --foo; --help lists the options");
}

TEST(BenchmarkFlags, CommandLineGoesBeforeTheEnvironment) {
  const EnvironmentVariable filter("BENCHMARK_FILTER", "single");
  EXPECT_EQ(parse_benchmark_flags({}).filter, "single");
  EXPECT_EQ(parse_benchmark_flags({"--benchmark_filter=pipeline"}).filter, "pipeline");
}

TEST(BenchmarkFilter, FollowsTheLibrary) {
  const std::vector<std::string> names = {"single/toy", "pipeline/toy", "pipeline/mlp"};
  EXPECT_THAT(matching("", names), ElementsAre(0, 1, 2));
  EXPECT_THAT(matching("all", names), ElementsAre(0, 1, 2));
  EXPECT_THAT(matching("pipeline", names), ElementsAre(1, 2));
  EXPECT_THAT(matching("-toy", names), ElementsAre(2));
  EXPECT_THAT(matching("^single|mlp$", names), ElementsAre(0, 2));
  EXPECT_THAT(matching("zero", names), IsEmpty());
  EXPECT_THROW(matching("(", names), std::invalid_argument);
}

}  // namespace
}  // namespace stratagem::bench::flags_test
