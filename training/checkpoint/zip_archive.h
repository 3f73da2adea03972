// The records of a zip archive in memory. A record is unpacked only if its size is allowed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace stratagem::checkpoint {

struct ZipRecord {
  std::span<const std::uint8_t> bytes;  // the bytes in the archive
  bool deflated = false;
  std::uint64_t size = 0;  // the bytes once inflated
  std::uint32_t crc = 0;   // CRC-32 of the inflated bytes; 0 if the writer computed none
};

/// Returns the records by name. Throws std::invalid_argument, in one line, for an incomplete
/// archive, a part of one, or an encrypted record. `archive` must outlive the result. Source:
/// APPNOTE.TXT 6.3.10, sections 4.3 and 4.5.3 (zip64).
std::map<std::string, ZipRecord, std::less<>> zip_records(std::span<const std::uint8_t> archive);

/// Returns the bytes of a deflated record. Throws std::invalid_argument if their number exceeds
/// `most` or differs from the archive's statement.
std::vector<std::uint8_t> inflated(const ZipRecord& record, std::size_t most);

/// Throws std::invalid_argument if the record's inflated bytes do not have its CRC-32. A record
/// without one passes, as torch.serialization.set_crc32_options(False) writes it.
void require_intact(const ZipRecord& record, std::span<const std::uint8_t> bytes);

}  // namespace stratagem::checkpoint
