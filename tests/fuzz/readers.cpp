#include "tests/fuzz/readers.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "bench/config/config_file.h"
#include "bench/config/grid.h"
#include "bench/config/placement.h"
#include "bench/config/row_name.h"
#include "bench/config/run_options.h"
#include "bench/launch/job.h"
#include "bench/measure/cache.h"
#include "bench/measure/job_launch.h"
#include "bench/measure/partial_file.h"
#include "models/datasets/dataset.h"
#include "models/datasets/image_decoder.h"
#include "models/datasets/mapped_file.h"
#include "strategies/ranks/launcher_environment.h"
#include "strategies/ranks/mesh.h"
#include "tests/bench/example_catalogue.h"
#include "tests/temporary_folder.h"
#include "training/checkpoint/model_part.h"
#include "training/checkpoint/pickle_reader.h"
#include "training/checkpoint/saved_file.h"
#include "training/log.h"

namespace stratagem::fuzz {
namespace {

using Bytes = std::span<const std::uint8_t>;

std::string text_of(Bytes bytes) { return {bytes.begin(), bytes.end()}; }

/// Refusals in words, which the command prints in a line.
void refusing(auto read) {
  try {
    read();
  } catch (const std::invalid_argument&) {
  } catch (const std::system_error&) {
  }
}

/// A file with these bytes, the same one each time.
std::string file_with(Bytes bytes, const char* name = "input") {
  static const TemporaryFolder folder;
  const std::string path = (folder / name).string();
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  return path;
}

void read_pickle(Bytes bytes) {
  refusing([&] { checkpoint::read_pickle(bytes); });
}

void read_saved_file(Bytes bytes) {
  refusing([&] {
    constexpr std::size_t most = 1U << 20U;
    checkpoint::SavedFile file(bytes);
    const auto* values = file.value().as<checkpoint::Dictionary>();
    if (values == nullptr) return;
    for (const auto& [key, value] : values->items) {
      const auto* tensor = value.as<checkpoint::PickledTensor>();
      if (tensor != nullptr) refusing([&] { file.storage(*tensor, most); });
    }
    checkpoint::model_tensors(file.value(), std::vector<std::string>{"weight", "bias"});
  });
}

/// A config file, and the rows of its grid.
void read_config(Bytes bytes) {
  refusing([&] {
    const std::string path = file_with(bytes);
    bench::names_in_config_file(path, "plugin");
    bench::ConfigFile file = bench::read_config_file(path);
    std::size_t rows = 1;
    for (const auto& [name, chosen] : file.selection.options) {
      rows *= std::max<std::size_t>(chosen.texts.size(), 1);
      if (rows > 100) return;  // a large grid takes its time
    }
    const bench::Catalogue catalogue = bench::example_catalogue();
    for (const bench::Config& row : bench::make_grid(file.selection, catalogue)) {
      bench::row_name(row, catalogue);
      refusing([&] { bench::placement_of(row); });
    }
  });
}

void read_mesh(Bytes bytes) {
  refusing([&] { ranks::parse_mesh(text_of(bytes)); });
}

/// An unfinished measurement of two rows.
void read_partial_file(Bytes bytes) {
  refusing([&] {
    const bench::PartialPlan plan{.rows = {{{"split_size", 4}}, {{"split_size", 8}}},
                                  .identity = {{"build", "build"}}};
    bench::read_partial(file_with(bytes), plan);
  });
}

/// A worker's results, as the cache keeps them.
void read_cached_results(Bytes bytes) {
  const auto answer = nlohmann::json::parse(bytes, nullptr, /*allow_exceptions=*/false);
  refusing([&] { bench::result_from_json<bench::CalibrateDeviceJob>(answer); });
  refusing([&] { bench::result_from_json<bench::CalibrateStagesJob>(answer); });
  refusing([&] { bench::result_from_json<bench::VerifyJob>(answer); });
}

/// An entry of the cache, whatever it is called.
void read_cache(Bytes bytes) {
  static const TemporaryFolder folder;
  static const bench::Cache cache(folder.path());
  static const nlohmann::json question{{"asked", 1}};
  static const std::filesystem::path entry = [] {
    cache.store("kind", question, {{"answer", 1}});
    return std::filesystem::directory_iterator(folder.path())->path();
  }();
  std::ofstream(entry, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  cache.find("kind", question);
  cache.find_recent("kind", question, 1e12);
}

void read_training_log(Bytes bytes) {
  const std::string path = file_with(bytes);
  training::first_line(path);
  try {
    training::lines_until(path, 3);
  } catch (const std::runtime_error&) {
  }
}

/// Images, a zero byte four times, labels.
void read_mnist(Bytes bytes) {
  static const TemporaryFolder folder;
  const std::array<std::uint8_t, 4> border = {0xff, 0, 0xff, 0};
  const auto cut = std::search(bytes.begin(), bytes.end(), border.begin(), border.end());
  const auto size = static_cast<std::size_t>(cut - bytes.begin());
  const Bytes images = bytes.first(size);
  const Bytes labels = bytes.subspan(std::min(size + border.size(), bytes.size()));
  const auto write = [&](const char* name, Bytes part) {
    std::ofstream(folder / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(part.data()),
               static_cast<std::streamsize>(part.size()));
  };
  for (const char* name : {"train-images-idx3-ubyte", "t10k-images-idx3-ubyte"}) {
    write(name, images);
  }
  for (const char* name : {"train-labels-idx1-ubyte", "t10k-labels-idx1-ubyte"}) {
    write(name, labels);
  }
  refusing([&] {
    const datasets::Datasets sets =
        datasets::make_datasets({.name = "mnist:" + folder.path().string()}, {});
    for (std::int64_t index = 0; index < sets.training->size(); ++index) {
      const datasets::Sample sample = sets.training->sample(index);
      volatile std::uint8_t last = sample.bytes.back();
      static_cast<void>(last);
    }
  });
}

void read_image(Bytes bytes) {
  refusing([&] { datasets::decode_image(datasets::MappedFile(file_with(bytes))); });
}

void read_tokens(Bytes bytes) {
  const std::string path = file_with(bytes);
  refusing([&] {
    const datasets::Datasets sets = datasets::make_datasets(
        {.name = "tokens:" + path, .outputs = 256, .sequence = 4, .validation = 0.5}, {});
    for (std::int64_t index = 0; index < sets.training->size(); ++index) {
      const datasets::Sample sample = sets.training->sample(index);
      volatile std::uint8_t last = sample.bytes.back();
      static_cast<void>(last);
    }
  });
}

void read_slurm_hosts(Bytes bytes) {
  refusing([&] { ranks::first_slurm_host(text_of(bytes)); });
}

constexpr std::array all = {Reader{"pickle", read_pickle},
                            Reader{"saved_file", read_saved_file},
                            Reader{"config", read_config},
                            Reader{"mesh", read_mesh},
                            Reader{"partial_file", read_partial_file},
                            Reader{"cache", read_cache},
                            Reader{"cached_results", read_cached_results},
                            Reader{"training_log", read_training_log},
                            Reader{"mnist", read_mnist},
                            Reader{"image", read_image},
                            Reader{"tokens", read_tokens},
                            Reader{"slurm_hosts", read_slurm_hosts}};

}  // namespace

std::span<const Reader> readers() { return all; }

const Reader& reader_of(std::string_view name) {
  const auto found = std::ranges::find(all, name, &Reader::name);
  if (found != all.end()) return *found;
  throw std::invalid_argument("no reader is called " + std::string(name));
}

}  // namespace stratagem::fuzz
