#include "models/datasets/image_size.h"

#include <utility>

#include "models/datasets/image_resize.h"

namespace stratagem::datasets {
namespace {

class Resized final : public Dataset {
 public:
  Resized(DatasetPointer set, std::int64_t size)
      : set_(std::move(set)), size_(size), format_(set_->format()) {
    format_.height = format_.width = size;
    format_.decoded = true;
  }

  const SampleFormat& format() const override { return format_; }
  std::int64_t size() const override { return set_->size(); }
  Sample sample(std::int64_t index) const override {
    const SampleFormat& from = set_->format();
    const auto plane_bytes = static_cast<std::size_t>(from.height * from.width);
    Sample sample = set_->sample(index);
    std::vector<std::uint8_t> planes;
    for (std::size_t start = 0; start < sample.bytes.size(); start += plane_bytes) {
      const auto plane = sample.bytes.subspan(start, plane_bytes);
      const Picture made = resized_to_square({.height = from.height,
                                              .width = from.width,
                                              .channels = 1,
                                              .bytes = {plane.begin(), plane.end()}},
                                             size_);
      planes.insert(planes.end(), made.bytes.begin(), made.bytes.end());
    }
    sample.memory = std::make_shared<const std::vector<std::uint8_t>>(std::move(planes));
    sample.bytes = *sample.memory;
    return sample;
  }

 private:
  DatasetPointer set_;
  std::int64_t size_;
  SampleFormat format_;
};

}  // namespace

DatasetPointer of_size(DatasetPointer set, std::int64_t size) {
  const SampleFormat& format = set->format();
  const bool fits = format.height == size && format.width == size;
  if (format.kind != SampleKind::image || size == 0 || fits) return set;
  return std::make_shared<Resized>(std::move(set), size);
}

}  // namespace stratagem::datasets
