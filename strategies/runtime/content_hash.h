// A hash that is equal in every build, unlike std::hash: FNV-1a, 64 bits.
#pragma once

#include <cstdint>
#include <string_view>

namespace stratagem::runtime {

constexpr std::uint64_t content_hash(std::string_view content) {
  std::uint64_t value = 0xcbf29ce484222325;
  for (const char byte : content) {
    value = (value ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  }
  return value;
}

}  // namespace stratagem::runtime
