// What ATen has to compute although our kernels were asked for is noted, on the thread alone.
#include "models/cpu_kernels/kernel_choice.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <thread>

#include "models/cpu_kernels/reference_kernels.h"

namespace stratagem::models::kernel_choice_test {
namespace {

using Noted = std::map<std::string, std::string>;

Noted noted_of(const at::Tensor& x, bool reference = false) {
  Noted noted;
  std::thread([&] {
    use_reference_kernels(reference);
    const bool own = may_take_own_kernels(x, "convolution");
    noted = functions_left_to_aten();
    EXPECT_EQ(own, !reference && noted.empty());
  }).join();
  return noted;
}

TEST(KernelChoice, NotesWhatOursDoNotKnowOf) {
  const at::Tensor x = at::randn({2, 3, 4, 5}).contiguous(at::MemoryFormat::ChannelsLast);
  EXPECT_EQ(noted_of(x), Noted{});
  EXPECT_EQ(noted_of(x.to(at::kDouble)), Noted{});
  EXPECT_EQ(noted_of(x.to(at::kBFloat16)), (Noted{{"convolution", "reduced precision"}}));
  EXPECT_EQ(noted_of(x.contiguous()), (Noted{{"convolution", "contiguous memory format"}}));
  EXPECT_EQ(noted_of(x.contiguous(), /*reference=*/true), Noted{}) << "nobody asked for ours";
}

}  // namespace
}  // namespace stratagem::models::kernel_choice_test
