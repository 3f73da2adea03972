#include "training/loop/batch_maker.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>

#include "models/datasets/random_bits.h"

namespace stratagem::training {
namespace {

using datasets::SampleKind;

ImageTransform transform_of(const models::WorkloadOptions& options,
                            const datasets::SampleFormat& format, bool augment) {
  ImageTransform transform;
  transform.channels_last = options.format == at::MemoryFormat::ChannelsLast;
  transform.mirror = augment;
  transform.shift = augment ? format.height / 8 : 0;
  return transform;
}

void require(bool fits, const models::Workload& workload, const char* what, std::int64_t wanted,
             std::int64_t found) {
  if (fits) return;
  throw std::invalid_argument(
      fmt::format("--data: the model {} expects {} {}, but the data set has {}",
                  workload.options().model, wanted, what, found));
}

/// Returns random bits that differ in every epoch for the same sample.
datasets::RandomBits random_of(std::uint64_t seed, std::uint64_t epoch, std::int64_t sample) {
  return {datasets::RandomBits(seed, epoch).next(), static_cast<std::uint64_t>(sample)};
}

/// Widens tokens of `Token`, which lie least significant byte first, as in this machine.
template <class Token>
void copy_tokens(const std::uint8_t* bytes, std::int64_t count, std::int64_t* out) {
  static_assert(std::endian::native == std::endian::little);
  for (std::int64_t index = 0; index < count; ++index) {
    Token token = 0;
    std::memcpy(&token, bytes + static_cast<std::size_t>(index) * sizeof(Token), sizeof(Token));
    out[index] = token;
  }
}

void copy_tokens(const datasets::SampleFormat& format, const std::uint8_t* bytes,
                 std::int64_t count, std::int64_t* out) {
  switch (format.token_bytes) {
    case 2:
      return copy_tokens<std::uint16_t>(bytes, count, out);
    case 4:
      return copy_tokens<std::uint32_t>(bytes, count, out);
    default:
      return copy_tokens<std::uint8_t>(bytes, count, out);
  }
}

}  // namespace

void require_fit(const models::Workload& workload, const datasets::SampleFormat& format) {
  const models::ModelEntry& entry = workload.entry();
  const bool same_kind =
      (entry.input_kind == models::InputKind::image && format.kind == SampleKind::image) ||
      (entry.input_kind == models::InputKind::vector && format.kind == SampleKind::vector) ||
      (entry.input_kind == models::InputKind::tokens && format.kind == SampleKind::tokens);
  if (!same_kind) {
    throw std::invalid_argument(
        fmt::format("--data: {} trains on another kind of sample", entry.name));
  }
  switch (format.kind) {
    case SampleKind::image:
      require(format.channels == 1 || format.channels == entry.features, workload, "channels",
              entry.features, format.channels);
      require(format.height == workload.image_size() && format.width == format.height, workload,
              "pixels a side", workload.image_size(), format.height);
      break;
    case SampleKind::vector:
      require(format.features == workload.features(), workload, "features", workload.features(),
              format.features);
      break;
    case SampleKind::tokens:
      require(format.features == workload.sequence_length() + 1, workload, "tokens",
              workload.sequence_length(), format.features - 1);
      break;
  }
  if (workload.options().targets == models::Targets::real) {
    require(format.outputs == workload.classes(), workload, "real targets", workload.classes(),
            format.outputs);
  } else {
    require(format.classes >= 1 && format.classes <= workload.classes(), workload, "classes",
            workload.classes(), format.classes);
  }
}

BatchMaker::BatchMaker(const models::Workload& workload, const datasets::Dataset& data,
                       const BatchMakerOptions& options)
    : workload_(workload),
      data_(data),
      options_(options),
      images_(data.format(), transform_of(workload.options(), data.format(), options.augment),
              workload.entry().features) {
  require_fit(workload, data.format());
  for (std::size_t slot = 0; slot < options.slots; ++slot) {
    const models::Batch& draft = drafts_.emplace_back(make_slot(options.pinned));
    const models::WorkloadOptions& wanted = workload.options();
    models::Batch& batch = batches_.emplace_back(draft);
    const at::ScalarType of_targets = workload.master_dtype();  // the loss's type
    const auto converted = [&](const at::Tensor& from, at::ScalarType dtype) {
      const at::Tensor made = at::zeros_like(from, at::TensorOptions(dtype));
      return options.pinned ? made.pin_memory() : made;
    };
    if (draft.inputs.is_floating_point() && wanted.dtype != at::kFloat) {
      batch.inputs = converted(draft.inputs, wanted.dtype);
    }
    const bool one_hot = wanted.loss == models::Loss::mse && !draft.targets.is_floating_point();
    if (one_hot) {
      batch.targets = at::zeros({options.largest, workload.classes()}, of_targets);
    } else if (draft.targets.is_floating_point() && of_targets != at::kFloat) {
      batch.targets = converted(draft.targets, of_targets);
    }
  }
}

models::Batch BatchMaker::make_slot(bool pinned) const {
  const datasets::SampleFormat& format = data_.format();
  const bool tokens = format.kind == SampleKind::tokens;
  const models::Shape shape = workload_.input_shape(options_.largest);
  models::Batch slot;
  slot.inputs = at::zeros(shape, tokens ? at::kLong : at::kFloat);
  if (format.kind == SampleKind::image) {
    slot.inputs = slot.inputs.contiguous(workload_.options().format);
  }
  if (tokens) {
    slot.targets = at::zeros(shape, at::kLong);
  } else if (format.outputs > 0) {
    slot.targets = at::zeros({options_.largest, format.outputs}, at::kFloat);
  } else {
    slot.targets = at::zeros({options_.largest}, at::kLong);
  }
  if (pinned) slot = {slot.inputs.pin_memory(), slot.targets.pin_memory()};
  return slot;
}

void BatchMaker::write(const models::Batch& into, std::int64_t row, std::int64_t sample,
                       std::uint64_t epoch) const {
  const datasets::Sample from = data_.sample(sample);
  const std::int64_t each = into.inputs.numel() / into.inputs.size(0);
  switch (data_.format().kind) {
    case SampleKind::image: {
      float* const place = into.inputs.mutable_data_ptr<float>() + row * each;
      images_.write(from.bytes, random_of(workload_.options().seed, epoch, sample),
                    {place, static_cast<std::size_t>(each)});
      break;
    }
    case SampleKind::vector:
      std::ranges::copy(from.values, into.inputs.mutable_data_ptr<float>() + row * each);
      break;
    case SampleKind::tokens: {
      const datasets::SampleFormat& format = data_.format();
      const std::uint8_t* const bytes = from.bytes.data();
      copy_tokens(format, bytes, each, into.inputs.mutable_data_ptr<std::int64_t>() + row * each);
      copy_tokens(format, bytes + format.token_bytes, each,
                  into.targets.mutable_data_ptr<std::int64_t>() + row * each);
      return;
    }
  }
  if (data_.format().outputs > 0) {
    std::ranges::copy(from.targets,
                      into.targets.mutable_data_ptr<float>() + row * data_.format().outputs);
  } else {
    into.targets.mutable_data_ptr<std::int64_t>()[row] = from.label;
  }
}

void BatchMaker::fill(std::size_t slot, std::span<const std::int64_t> samples,
                      std::span<const schedules::Slice> wanted, std::uint64_t epoch) {
  const c10::AutoGradMode no_gradient(false);
  const models::Batch& draft = drafts_.at(slot);
  const models::Batch& batch = batches_.at(slot);
  for (const schedules::Slice& slice : wanted) {
    for (std::int64_t row = slice.start; row < slice.start + slice.count; ++row) {
      write(draft, row, samples[static_cast<std::size_t>(row)], epoch);
    }
    const auto convert = [&](const at::Tensor& from, const at::Tensor& to) {
      to.narrow(0, slice.start, slice.count).copy_(from.narrow(0, slice.start, slice.count));
    };
    if (!batch.inputs.is_same(draft.inputs)) convert(draft.inputs, batch.inputs);
    if (batch.targets.is_same(draft.targets)) continue;
    if (draft.targets.is_floating_point()) {
      convert(draft.targets, batch.targets);
    } else {
      const at::Tensor labels = draft.targets.narrow(0, slice.start, slice.count);
      batch.targets.narrow(0, slice.start, slice.count).zero_().scatter_(1, labels.unsqueeze(1), 1);
    }
  }
}

models::Batch BatchMaker::batch(std::size_t slot, std::int64_t samples) const {
  return batches_.at(slot).slice(0, samples);
}

}  // namespace stratagem::training
