#include "models/registry/registry.h"
#include "models/model.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "models/registry/named_entries.h"
#include "tests/models/filled_model.h"

namespace stratagem::models::registry_test {
namespace {

struct Fruit {
  std::string name;
  int weight = 0;
};

TEST(Registry, DuplicatesThrow) {
  Registry<Fruit> registry("fruit");
  registry.add({"apple", 1});
  EXPECT_THROW(registry.add({"apple", 2}), std::logic_error);
  EXPECT_EQ(registry.size(), 1U);
  EXPECT_EQ(registry.find("apple").weight, 1);
}

TEST(Registry, UnknownNameListsChoicesAndTheNearest) {
  Registry<Fruit> registry("fruit");
  registry.add({"pear", 1});
  registry.add({"apple", 2});
  EXPECT_EQ(registry.names(), (std::vector<std::string>{"apple", "pear"}));
  try {
    registry.find("peer");
    FAIL() << "found";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(),
                 "unknown fruit \"peer\": did you mean \"pear\"? choices: apple, pear");
  }
}

TEST(Registry, EditDistance) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(edit_distance("resnet5", "resnet50"), 1U);
  EXPECT_EQ(edit_distance("rnu", "run"), 1U) << "two neighbours exchanged";
}

TEST(Registry, OnlyWhatIsNearIsSuggested) {
  const std::vector<std::string> options = {"--cut", "--image-size", "--global-batch-size",
                                            "--devices"};
  EXPECT_EQ(nearest("--gpus", options), "");
  EXPECT_EQ(nearest("--batch-size", options), "--global-batch-size") << "which contains it";
  EXPECT_EQ(nearest("--device", options), "--devices");
  EXPECT_EQ(nearest("--", options), "");
  EXPECT_EQ(nearest("gpu", {"cpu", "cuda"}), "") << "one letter of three is another device";
  EXPECT_EQ(nearest("rnu", {"list", "run"}), "run");
  EXPECT_EQ(unknown_name("device", "gpu", {"cpu", "cuda"}),
            "unknown device \"gpu\"; choices: cpu, cuda");
  EXPECT_EQ(did_you_mean("--gpus", options, "; see --help"), "; see --help");
}

// Fails when a file with a registration is lost at link time.
TEST(ModelRegistry, HasEveryModel) {
  EXPECT_EQ(model_names(),
            (std::vector<std::string>{"column_linear", "gpt-long", "gpt-small", "gpt-tiny", "gpt2",
                                      "gpt2-xl", "linear", "llama-small", "llama-tiny", "llama3-8b",
                                      "mlp", "resnet18", "resnet50", "toy"}));
}

TEST(ModelRegistry, NearestName) {
  try {
    find_model("resnet51");
    FAIL() << "found";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(),
                 "unknown model \"resnet51\": did you mean \"resnet50\"? "
                 "choices: column_linear, gpt-long, gpt-small, gpt-tiny, gpt2, gpt2-xl, linear, "
                 "llama-small, llama-tiny, llama3-8b, mlp, resnet18, resnet50, toy");
  }
}

// Static objects register: an exception of theirs would end the program.
TEST(ModelRegistry, DuplicatesAreNoted) {
  EXPECT_TRUE(registration_errors().empty());
  register_entry(ModelEntry{.name = "toy"});
  EXPECT_EQ(registration_errors(),
            std::vector<std::string>{"the model \"toy\" is taken; choose another name"});
  EXPECT_FALSE(find_model("toy").summary.empty());
  registration_errors().clear();
}

TEST(ModelRegistry, EntriesTellTheTruth) {
  for (const std::string& name : model_names()) {
    SCOPED_TRACE(name);
    const ModelEntry& entry = find_model(name);
    EXPECT_EQ(entry.name, name);
    EXPECT_FALSE(entry.summary.empty());
    const Model model = filled_model(name, {.width = 0.0625});
    EXPECT_EQ(model.name, name);
    EXPECT_EQ(static_cast<std::int64_t>(model.layers.size()), entry.layers);
    EXPECT_EQ(entry.has_batch_norm, !buffers(model.layers).empty());
    const bool image = entry.input_kind == InputKind::image;
    const bool tokens = entry.input_kind == InputKind::tokens;
    Shape input = {2, entry.features};
    if (image) input = {2, entry.features, entry.smallest_image, entry.smallest_image};
    if (tokens) input = {2, 4};
    const Shape output = tokens ? Shape{2, 4, entry.classes} : Shape{2, entry.classes};
    EXPECT_EQ(output_shape(model.layers, input), output);
    const at::Tensor ones = at::ones(input, tokens ? at::kLong : at::kFloat);
    EXPECT_EQ(forward(model.layers, ones).sizes(), output);
    EXPECT_EQ(entry.longest_sequence > 0, tokens);
    EXPECT_EQ(entry.default_image_size > 0, image);
    ASSERT_EQ(entry.default_cut.size(), entry.layers > 1 ? 1U : 0U);
    if (entry.layers > 1) {
      EXPECT_GT(find_layer(model.layers, entry.default_cut[0]), 0U);
    }
  }
}

TEST(ModelRegistry, OptionsOutOfRangeAreRefused) {
  EXPECT_THROW(find_model("toy").make({.width = 0}), std::invalid_argument);
  EXPECT_THROW(find_model("resnet18").make({.classes = -1}), std::invalid_argument);
  EXPECT_EQ(scaled_width(64, 0.001), 1);
  EXPECT_EQ(scaled_width(64, 0.5), 32);
}

}  // namespace
}  // namespace stratagem::models::registry_test
