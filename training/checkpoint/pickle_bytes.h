// The bytes of a pickle in order: opcodes and their operands.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

namespace stratagem::checkpoint {

class PickleBytes {
 public:
  explicit PickleBytes(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  /// Returns the number of bytes read so far.
  std::size_t size() const { return next_; }

 protected:
  /// Throws std::invalid_argument with the place of the last opcode.
  [[noreturn]] void refuse(const std::string& reason) const {
    throw std::invalid_argument(fmt::format("pickle, byte {}: {}", at_, reason));
  }

  std::span<const std::uint8_t> take(std::size_t count) {
    if (count > bytes_.size() - next_) refuse("it ends too early");
    const auto taken = bytes_.subspan(next_, count);
    next_ += count;
    return taken;
  }
  std::uint8_t byte() { return take(1).front(); }
  std::uint64_t little_endian(std::size_t count) {
    std::uint64_t number = 0;
    unsigned shift = 0;
    for (const std::uint8_t each : take(count)) {
      number |= std::uint64_t{each} << shift;
      shift += 8;
    }
    return number;
  }
  std::string characters(std::size_t length) {
    const auto taken = take(length);
    return {taken.begin(), taken.end()};
  }
  std::string line() {
    const auto rest = bytes_.subspan(next_);
    const auto end = std::ranges::find(rest, std::uint8_t{'\n'});
    if (end == rest.end()) refuse("it ends too early");
    const auto length = static_cast<std::size_t>(end - rest.begin());
    next_ += length + 1;
    return {rest.begin(), end};
  }
  double big_endian_double() {
    std::uint64_t bits = 0;
    for (const std::uint8_t each : take(8)) bits = bits << 8U | each;
    return std::bit_cast<double>(bits);
  }

  std::uint8_t next_opcode() {
    at_ = next_;
    return byte();
  }

 private:
  std::span<const std::uint8_t> bytes_;
  std::size_t next_ = 0;
  std::size_t at_ = 0;  // the position of the opcode
};

}  // namespace stratagem::checkpoint
