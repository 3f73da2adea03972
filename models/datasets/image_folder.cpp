// A folder of images in the layout of torchvision's ImageFolder: a subfolder for each class, with
// classes numbered in the order of their names.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "models/datasets/image_decoder.h"
#include "models/datasets/image_resize.h"
#include "models/datasets/registry.h"

namespace stratagem::datasets {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_folder(const fs::path& path, const std::string& reason) {
  throw std::invalid_argument(fmt::format("--data: {}: {}", path.string(), reason));
}

bool is_hidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

/// Returns the sorted names of the subfolders.
std::vector<std::string> subfolders(const fs::path& folder) {
  if (!fs::is_directory(folder)) {
    refuse_folder(folder, "no such folder; expected one with a subfolder for each class");
  }
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory() && !is_hidden(entry.path())) {
      names.push_back(entry.path().filename().string());
    }
  }
  std::ranges::sort(names);
  return names;
}

void require_image_name(const fs::path& file) {
  std::string extension = file.extension().string();
  std::ranges::transform(extension, extension.begin(),
                         [](unsigned char letter) { return std::tolower(letter); });
  constexpr std::array<std::string_view, 3> known = {".jpg", ".jpeg", ".png"};
  if (std::ranges::find(known, extension) != known.end()) return;
  refuse_folder(file,
                "expected images in .png, .jpg or .jpeg below the folder of each class; move other "
                "files out");
}

/// Returns the images of a class and of its subfolders in torchvision's order: by folder, then by
/// name.
std::vector<fs::path> images_below(const fs::path& folder) {
  std::vector<std::pair<std::string, std::string>> found;
  const auto options = fs::directory_options::follow_directory_symlink;
  for (auto entry = fs::recursive_directory_iterator(folder, options);
       entry != fs::recursive_directory_iterator(); ++entry) {
    if (is_hidden(entry->path())) {
      if (entry->is_directory()) entry.disable_recursion_pending();
      continue;
    }
    if (entry->is_directory()) continue;
    require_image_name(entry->path());
    found.emplace_back(entry->path().parent_path().string(), entry->path().filename().string());
  }
  std::ranges::sort(found);
  std::vector<fs::path> images;
  for (const auto& [parent, name] : found) images.push_back(fs::path(parent) / name);
  return images;
}

class ImageFolder final : public Dataset {
 public:
  /// `classes` are the training set's, which number the labels.
  ImageFolder(const fs::path& folder, const std::vector<std::string>& classes,
              const DatasetOptions& options)
      : format_{.kind = SampleKind::image,
                .channels = options.features == 1 ? 1 : 3,
                .height = options.image_size,
                .width = options.image_size,
                .classes = std::ssize(classes),
                .decoded = true} {
    for (const std::string& name : subfolders(folder)) {
      const auto place = std::ranges::find(classes, name);
      if (place == classes.end()) {
        refuse_folder(folder / name, fmt::format("is not a class of the training set; classes: {}",
                                                 fmt::join(classes, ", ")));
      }
      const std::vector<fs::path> found = images_below(folder / name);
      if (found.empty()) refuse_folder(folder / name, "has no images");
      for (const fs::path& file : found) images_.emplace_back(file, place - classes.begin());
    }
    if (images_.empty()) refuse_folder(folder, "has no subfolders; expected one for each class");
  }

  const SampleFormat& format() const override { return format_; }
  std::int64_t size() const override { return std::ssize(images_); }
  Sample sample(std::int64_t index) const override {
    const auto& [file, label] = images_.at(static_cast<std::size_t>(index));
    const Picture whole = decode_image(MappedFile(file));
    const Picture square =
        resized_to_square(format_.channels == 1 ? grey(whole) : whole, format_.height);
    auto planes = std::make_shared<std::vector<std::uint8_t>>();
    planes->reserve(square.bytes.size());
    for (std::int64_t channel = 0; channel < square.channels; ++channel) {
      for (auto at = static_cast<std::size_t>(channel); at < square.bytes.size();
           at += static_cast<std::size_t>(square.channels)) {
        planes->push_back(square.bytes[at]);
      }
    }
    return {.bytes = *planes, .label = label, .memory = planes};
  }

 private:
  SampleFormat format_;
  std::vector<std::pair<std::string, std::int64_t>> images_;  // files and labels
};

/// Reads a folder of classes, or its subfolders `train` and, if present, `val` and `test`.
Datasets image_folders(const DatasetOptions& options) {
  if (options.image_size < 1) {
    throw std::invalid_argument("--data images: needs --image-size, the side in pixels");
  }
  const fs::path folder = options.path;
  const std::vector<std::string> names = subfolders(folder);
  const bool has_parts = std::ranges::find(names, "train") != names.end() &&
                         std::ranges::all_of(names, [](auto& name) {
                           return name == "train" || name == "val" || name == "test";
                         });
  if (!has_parts) {
    return {.training = std::make_shared<ImageFolder>(folder, names, options),
            .validation = nullptr,
            .test = nullptr};
  }
  const std::vector<std::string> classes = subfolders(folder / "train");
  const bool asked = options.validation < 0 || options.test < 0;
  const auto part = [&](const std::string& name) -> DatasetPointer {
    if (!asked || std::ranges::find(names, name) == names.end()) return nullptr;
    return std::make_shared<ImageFolder>(folder / name, classes, options);
  };
  return {.training = std::make_shared<ImageFolder>(folder / "train", classes, options),
          .validation = part("val"),
          .test = part("test")};
}

Datasets images(const DatasetOptions& options) {
  try {
    return image_folders(options);
  } catch (const fs::filesystem_error& error) {
    refuse_folder(error.path1(), error.code().message());
  }
}

}  // namespace
}  // namespace stratagem::datasets

STRATAGEM_REGISTER(stratagem::datasets::DatasetEntry{
    .name = "images",
    .argument = "FOLDER",
    .summary = "PNG and JPEG files in a subfolder for each class, as torchvision's ImageFolder",
    .kinds = {stratagem::datasets::SampleKind::image},
    .make = stratagem::datasets::images});
