#include "models/datasets/jpeg_decoder.h"

// The library's header needs FILE and size_t.
#include <cstdio>

#include <jpeglib.h>
// This comes after that header, whose version decides the messages.
#include <jerror.h>

#include <array>
#include <csetjmp>
#include <cstring>

namespace stratagem::datasets {
namespace {

/// Returns whether the library would hide the damage with grey or earlier pixels.
bool is_damage(int code) {
  return code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE ||
         code == JWRN_MUST_RESYNC || code == JWRN_BOGUS_PROGRESSION || code == JWRN_NOT_SEQUENTIAL;
}

}  // namespace

struct JpegDecoder::State {
  jpeg_decompress_struct decoder{};
  jpeg_error_mgr errors{};
  std::jmp_buf start{};  // the running call's
  std::array<char, JMSG_LENGTH_MAX> message{};

  static State& of(j_common_ptr decoder) { return *static_cast<State*>(decoder->client_data); }

  /// Leaves the running call, because the library requires it not to return.
  [[noreturn]] static void fail(j_common_ptr decoder) {
    State& state = of(decoder);
    decoder->err->format_message(decoder, state.message.data());
    // longjmp is the library's documented exit; no frame between has a destructor.
    std::longjmp(state.start, 1);  // NOLINT(cert-err52-cpp)
  }
  /// Level -1 is a warning about damaged data; other levels are remarks.
  static void note(j_common_ptr decoder, int level) {
    if (level < 0 && is_damage(decoder->err->msg_code)) fail(decoder);
  }
};

JpegDecoder::JpegDecoder(std::span<const std::uint8_t> bytes) : state_(std::make_unique<State>()) {
  jpeg_decompress_struct& decoder = state_->decoder;
  decoder.err = jpeg_std_error(&state_->errors);
  state_->errors.error_exit = State::fail;
  state_->errors.emit_message = State::note;
  decoder.client_data = state_.get();
  if (setjmp(state_->start) != 0) return;  // NOLINT(cert-err52-cpp)
  jpeg_create_decompress(&decoder);
  decoder.client_data = state_.get();
  jpeg_mem_src(&decoder, bytes.data(), bytes.size());
}

JpegDecoder::~JpegDecoder() { jpeg_destroy_decompress(&state_->decoder); }

bool JpegDecoder::read_header() {
  if (setjmp(state_->start) != 0) return false;  // NOLINT(cert-err52-cpp)
  jpeg_read_header(&state_->decoder, TRUE);
  state_->decoder.out_color_space = JCS_RGB;
  return true;
}

std::int64_t JpegDecoder::height() const { return state_->decoder.image_height; }
std::int64_t JpegDecoder::width() const { return state_->decoder.image_width; }

bool JpegDecoder::read_pixels(std::span<std::uint8_t> pixels) {
  jpeg_decompress_struct& decoder = state_->decoder;
  if (setjmp(state_->start) != 0) return false;  // NOLINT(cert-err52-cpp)
  jpeg_start_decompress(&decoder);
  const std::size_t line = std::size_t{3} * decoder.output_width;
  while (decoder.output_scanline < decoder.output_height) {
    JSAMPROW row = pixels.data() + decoder.output_scanline * line;
    jpeg_read_scanlines(&decoder, &row, 1);
  }
  jpeg_finish_decompress(&decoder);
  return true;
}

std::string JpegDecoder::error() const { return state_->message.data(); }

}  // namespace stratagem::datasets
