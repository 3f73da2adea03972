// The records of a zip archive in memory. Nothing is unpacked before its size is known and allowed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace stratagem::checkpoint {

struct ZipRecord {
  std::span<const std::uint8_t> bytes;  // as they lie in the archive
  bool deflated = false;
  std::uint64_t size = 0;  // once inflated, in bytes
};

/// By name. Throws std::invalid_argument, in one line, for what is not a complete archive or a part
/// of one, and for an encrypted record. `archive` outlives what is returned. Source:
/// APPNOTE.TXT 6.3.10, sections 4.3 and 4.5.3 (zip64).
std::map<std::string, ZipRecord, std::less<>> zip_records(std::span<const std::uint8_t> archive);

/// The bytes of a deflated record. Throws std::invalid_argument where they are more than `most`, or
/// other than the archive states.
std::vector<std::uint8_t> inflated(const ZipRecord& record, std::size_t most);

}  // namespace stratagem::checkpoint
