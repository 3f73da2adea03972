// The table's verdict on recorded rounds in which every row does the same work
// (record_control_tables.py): how often it names a difference where there is none.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reports/row_comparison.h"
#include "reports/row_summary.h"
#include "reports/verdict.h"
#include "tests/reports/example_results.h"

namespace stratagem::reports::control_tables_test {
namespace {

constexpr std::size_t tables_recorded = 20;

struct Table {
  std::vector<std::vector<double>> ms;  // [row][launch], of the rounds and then of those made again
  std::vector<std::vector<std::size_t>> disturbed;  // places of launches by row
  std::size_t rounds = 0;
};

std::vector<Table> recorded_tables(bool with_neighbour) {
  std::ifstream file(std::string(STRATAGEM_TEST_DATA) + "/reports/control_tables.jsonl");
  std::vector<Table> tables;
  for (std::string line; std::getline(file, line);) {
    const auto table = nlohmann::json::parse(line);
    if (table.at("neighbour") != with_neighbour) continue;
    tables.push_back({table.at("ms"), table.at("disturbed"), table.at("rounds")});
  }
  return tables;
}

std::vector<RowSummary> summaries_of(const Table& table) {
  std::vector<Row> rows;
  for (std::size_t index = 0; index < table.ms.size(); ++index) {
    Row row = example_row("single", "batch:48/seed:" + std::to_string(index), 1);
    row.config.emplace_back("repetitions", static_cast<std::int64_t>(table.rounds));
    row.repetitions.clear();
    for (const double sample : table.ms[index]) {
      row.repetitions.push_back(
          example_repetition(static_cast<int>(row.repetitions.size()), {sample}));
    }
    for (const std::size_t launch : table.disturbed[index]) {
      row.repetitions.at(launch).marks = {"disturbed"};
    }
    rows.push_back(std::move(row));
  }
  return summarise(rows);
}

/// The pairs of rows that a table tells apart.
std::size_t told_apart(const std::vector<RowSummary>& rows) {
  std::size_t pairs = compared_pairs(rows);
  for (const RowSummary& row : rows) {
    for (const std::string& other : row.cannot_tell) pairs -= row.name < other ? 1 : 0;
  }
  return pairs;
}

class ControlTables : public testing::TestWithParam<bool> {};

TEST_P(ControlTables, NameNoDifferenceBetweenRowsOfEqualWork) {
  std::size_t wrong = 0;
  const std::vector<Table> tables = recorded_tables(/*with_neighbour=*/GetParam());
  ASSERT_EQ(tables.size(), tables_recorded);
  for (const Table& table : tables) wrong += told_apart(summaries_of(table)) > 0 ? 1 : 0;
  EXPECT_LE(wrong, 1U);
}

INSTANTIATE_TEST_SUITE_P(Recorded, ControlTables, testing::Bool(), [](const auto& with_neighbour) {
  return with_neighbour.param ? "BesideANeighbour" : "Alone";
});

/// How many rows of the tables recorded without a neighbour, each made to take so much longer in
/// its turn, are told apart from the fastest.
std::size_t rows_that_are_found(double slowdown) {
  std::size_t found = 0;
  for (const Table& table : recorded_tables(/*with_neighbour=*/false)) {
    for (std::size_t slow = 0; slow < table.ms.size(); ++slow) {
      Table slower = table;
      for (double& sample : slower.ms[slow]) sample *= slowdown;
      const std::vector<RowSummary> rows = summaries_of(slower);
      const auto fastest = std::ranges::min_element(rows, {}, &RowSummary::median_ms);
      const bool ahead = fastest->name == rows[slow].name;
      found += !ahead && std::ranges::count(rows[slow].cannot_tell, fastest->name) == 0 ? 1 : 0;
    }
  }
  return found;
}

TEST(ControlTable, FindsARowThatTakesATenthLonger) {
  constexpr std::size_t rows = 11 * tables_recorded;
  EXPECT_EQ(rows_that_are_found(1.00), 0U);
  EXPECT_GE(rows_that_are_found(1.10), rows * 19 / 20);
}

TEST(ControlTable, NeverSaysThatARowMadeSlowerIsFaster) {
  std::size_t told = 0;
  for (Table table : recorded_tables(/*with_neighbour=*/true)) {
    for (double& sample : table.ms.front()) sample *= 2;
    const std::vector<RowSummary> rows = summaries_of(table);
    told += rows.front().cannot_tell.size() < rows.size() / 2 ? 1 : 0;
    for (const RowSummary& other : rows) {
      if (&other == &rows.front()) continue;
      EXPECT_GT(other.ratios.at(rows.front().name).high, 1);
    }
  }
  EXPECT_GT(told, 0U);
}

}  // namespace
}  // namespace stratagem::reports::control_tables_test
