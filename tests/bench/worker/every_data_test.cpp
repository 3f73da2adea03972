// Every data set with every model: batches as the model takes them, or one line of refusal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include "bench/config/training_data.h"
#include "bench/worker/session.h"
#include "models/token_data.h"
#include "tests/temporary_folder.h"
#include "training/loop/batch_maker.h"

namespace stratagem::bench::every_data_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

class EveryData : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& bytes) const {
    std::filesystem::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }

  /// Two digits, each drawn as a gradient.
  void write_mnist() const {
    std::string images("\x00\x00\x08\x03\x00\x00\x00\x02\x00\x00\x00\x1c\x00\x00\x00\x1c", 16);
    for (int pixel = 0; pixel < 2 * 784; ++pixel) images += static_cast<char>(pixel % 200);
    const std::string labels("\x00\x00\x08\x01\x00\x00\x00\x02\x07\x03", 10);
    for (const char* part : {"mnist/train", "mnist/t10k"}) {
      write(std::string(part) + "-images-idx3-ubyte", images);
      write(std::string(part) + "-labels-idx1-ubyte", labels);
    }
  }

  void write_cifar10() const {
    for (const char* name : {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4",
                             "data_batch_5", "test_batch"}) {
      const std::string file = std::string("cifar10/") + name + ".bin";
      write(file, "");
      std::filesystem::resize_file(folder_ / file, 30'730'000);  // sparse
    }
  }

  void write_all() const {
    write_mnist();
    write_cifar10();
    // Two classes with a PNG of one black pixel each.
    for (const char* name : {"images/first/a.png", "images/second/a.png"}) {
      write(name, std::string(one_pixel, sizeof(one_pixel) - 1));
    }
    write("tokens", std::string(4096, '\0'));
  }

  std::string argument(const datasets::DatasetEntry& entry) const {
    return entry.argument.empty() ? entry.name : entry.name + ":" + (folder_ / entry.name).string();
  }

  static constexpr char one_pixel[] =
      "\211\120\116\107\015\012\032\012\000\000\000\015\111\110\104\122\000\000\000\001"
      "\000\000\000\001\010\000\000\000\000\072\176\233\125\000\000\000\012\111\104\101"
      "\124\170\234\143\140\000\000\000\002\000\001\110\257\244\161\000\000\000\000\111"
      "\105\116\104\256\102\140\202";
  const TemporaryFolder folder_;
};

Config row_of(const models::ModelEntry& model) {
  Config row;
  row.strategy = "single";
  row.model = model.name;
  row.global_batch_size = 2;
  row.loss = "cross_entropy";
  row.image_size = 0;
  row.sequence_length = model.input_kind == models::InputKind::tokens ? 8 : 0;
  return row;
}

/// The first samples of a set, as the row's model takes them.
models::Batch first_batch(Config row, const training::TrainingOptions& options) {
  const datasets::Datasets data = training_data(row, options, models::training_text());
  fit_to_data(row, data.training->format());
  const models::Workload workload(workload_options(row));
  training::BatchMaker maker(workload, *data.training, {.largest = 1});
  maker.fill(0, std::vector<std::int64_t>{0}, std::vector<schedules::Slice>{{0, 1}}, 0);
  models::Batch batch = maker.batch(0, 1);
  EXPECT_EQ(batch.inputs.sizes(), at::IntArrayRef(workload.input_shape(1)));
  EXPECT_LT(batch.targets.max().item<std::int64_t>(), workload.classes());
  return batch;
}

TEST_F(EveryData, IsTakenByTheModelsOfItsKindAndRefusedByTheOthers) {
  write_all();
  int taken = 0;
  for (const std::string& model_name : models::model_names()) {
    const models::ModelEntry& model = models::find_model(model_name);
    for (const std::string& name : datasets::dataset_names()) {
      const datasets::DatasetEntry& entry = datasets::find_dataset(name);
      training::TrainingOptions options;
      options.data = argument(entry);
      options.samples = 2;
      SCOPED_TRACE(model_name + " on " + options.data);
      const bool takes = (model.input_kind == models::InputKind::image &&
                          entry.gives(datasets::SampleKind::image)) ||
                         (model.input_kind == models::InputKind::vector &&
                          entry.gives(datasets::SampleKind::vector)) ||
                         (model.input_kind == models::InputKind::tokens &&
                          entry.gives(datasets::SampleKind::tokens));
      if (takes) {
        first_batch(row_of(model), options);
        ++taken;
      } else {
        EXPECT_THAT([&] { training_data(row_of(model), options, models::training_text()); },
                    ThrowsMessage<std::invalid_argument>(HasSubstr(model_name + " trains on ")));
      }
    }
  }
  EXPECT_GE(taken, 20);
}

TEST_F(EveryData, OfImagesHasTheSizeThatIsAskedForOrTheSmallestThatTheModelTakes) {
  write_all();
  Config row = row_of(models::find_model("resnet18"));
  const auto side_of = [&](const std::string& data, std::int64_t asked) {
    training::TrainingOptions options;
    options.data = data;
    options.samples = 2;
    row.image_size = asked;
    return first_batch(row, options).inputs.size(2);
  };
  for (const char* name : {"mnist", "cifar10", "shapes", "images", "random"}) {
    SCOPED_TRACE(name);
    const std::string data = argument(datasets::find_dataset(name));
    const bool any_size = datasets::find_dataset(name).image_size == 0;
    EXPECT_EQ(side_of(data, 0), any_size ? 128 : 32);
    EXPECT_EQ(side_of(data, 48), 48);
  }
}

TEST_F(EveryData, OfTooManyClassesOrAnotherNumberOfInputsIsRefused) {
  Config row = row_of(models::find_model("resnet18"));
  training::TrainingOptions options;
  options.samples = 2;
  row.outputs = 4;
  EXPECT_THAT([&] { first_batch(row, options); },
              ThrowsMessage<std::invalid_argument>(
                  AllOf(HasSubstr("resnet18 expects 4 classes"), HasSubstr("has 10"))));
}

}  // namespace
}  // namespace stratagem::bench::every_data_test
