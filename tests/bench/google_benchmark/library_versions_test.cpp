#include "bench/google_benchmark/library_versions.h"

#include <benchmark/benchmark.h>
#include <gtest/gtest.h>

namespace stratagem::bench::library_versions_test {
namespace {

struct RunUpTo17 {
  bool error_occurred = false;
};

enum class Skipped { no, with_message, with_error };

struct RunFrom18 {
  Skipped skipped = Skipped::no;
};

TEST(LibraryVersions, NameASkippedRunDifferently) {
  EXPECT_FALSE(was_skipped(RunUpTo17{}));
  EXPECT_TRUE(was_skipped(RunUpTo17{.error_occurred = true}));
  EXPECT_FALSE(was_skipped(RunFrom18{}));
  EXPECT_TRUE(was_skipped(RunFrom18{.skipped = Skipped::with_error}));
  EXPECT_FALSE(was_skipped(benchmark::BenchmarkReporter::Run()));
}

}  // namespace
}  // namespace stratagem::bench::library_versions_test
