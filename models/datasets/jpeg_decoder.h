// libjpeg-turbo's decoder with errors as texts: the library jumps out of a failing call.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace stratagem::datasets {

class JpegDecoder {
 public:
  /// `bytes` must outlive it.
  explicit JpegDecoder(std::span<const std::uint8_t> bytes);
  ~JpegDecoder();
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  /// Returns false on failure, see error().
  bool read_header();
  std::int64_t height() const;
  std::int64_t width() const;
  /// Writes [height, width, 3] in RGB once, after the header. Returns false on failure.
  bool read_pixels(std::span<std::uint8_t> pixels);
  std::string error() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stratagem::datasets
