#include "strategies/schedules/overlap_model.h"

#include <gtest/gtest.h>

namespace stratagem::schedules::overlap_model_test {
namespace {

TEST(OverlapModel, WithoutTransfersThePassIsThePass) {
  const auto pass = overlap(10, {});
  EXPECT_DOUBLE_EQ(pass.compute_end_ms, 10);
  EXPECT_DOUBLE_EQ(pass.end_ms(), 10);
}

TEST(OverlapModel, ATransferAfterThePassIsAddedToIt) {
  const auto pass = overlap(10, {{.ready = 1, .milliseconds = 4, .processor_share = 1}});
  EXPECT_DOUBLE_EQ(pass.compute_end_ms, 10);
  EXPECT_DOUBLE_EQ(pass.transfer_end_ms, 14);
}

TEST(OverlapModel, ATransferThatNeedsNoProcessorHides) {
  const auto pass = overlap(10, {{0.5, 4, 0}, {1, 2, 0}});
  EXPECT_DOUBLE_EQ(pass.compute_end_ms, 10);
  EXPECT_DOUBLE_EQ(pass.transfer_end_ms, 12);
}

TEST(OverlapModel, TransfersQueueOnTheLink) {
  const auto pass = overlap(10, {{0.2, 6, 0}, {0.4, 6, 0}});
  EXPECT_DOUBLE_EQ(pass.transfer_end_ms, 14);  // 2 + 6 + 6
  ASSERT_EQ(pass.transfers.size(), 2U);
  EXPECT_DOUBLE_EQ(pass.transfers[0].start_ms, 2);
  EXPECT_DOUBLE_EQ(pass.transfers[0].end_ms, 8);
  EXPECT_DOUBLE_EQ(pass.transfers[1].start_ms, 8);
  EXPECT_DOUBLE_EQ(pass.transfers[1].end_ms, 14);
}

TEST(OverlapModel, AllProcessorMeansThatNothingIsHidden) {
  // From 5 on both go at half speed: the transfer of 2 lasts 4 and costs the pass 2.
  const auto pass = overlap(10, {{0.5, 2, 1}});
  EXPECT_DOUBLE_EQ(pass.transfer_end_ms, 9);
  EXPECT_DOUBLE_EQ(pass.compute_end_ms, 12);
}

TEST(OverlapModel, ALittleProcessorSlowsThePassALittle) {
  const auto pass = overlap(10, {{0.5, 2, 0.2}});
  EXPECT_DOUBLE_EQ(pass.transfer_end_ms, 7);
  EXPECT_NEAR(pass.compute_end_ms, 10.4, 1e-12);
}

TEST(OverlapModel, WhatIsLeftAfterThePassHasTheCoreForItself) {
  // Half speed from 8 to 12, when the pass ends; then 3 of 5 are left.
  const auto pass = overlap(10, {{0.8, 5, 1}});
  EXPECT_DOUBLE_EQ(pass.compute_end_ms, 12);
  EXPECT_DOUBLE_EQ(pass.transfer_end_ms, 15);
}

}  // namespace
}  // namespace stratagem::schedules::overlap_model_test
