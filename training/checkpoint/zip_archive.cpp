#include "training/checkpoint/zip_archive.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace stratagem::checkpoint {
namespace {

using Bytes = std::span<const std::uint8_t>;

constexpr std::uint32_t local_signature = 0x04034b50;
constexpr std::uint32_t directory_signature = 0x02014b50;
constexpr std::uint32_t end_signature = 0x06054b50;
constexpr std::uint32_t end64_signature = 0x06064b50;
constexpr std::uint32_t locator64_signature = 0x07064b50;
constexpr std::size_t local_size = 30;
constexpr std::size_t directory_entry_size = 46;
constexpr std::size_t end_size = 22;
constexpr std::size_t end64_size = 56;
constexpr std::size_t locator64_size = 20;

[[noreturn]] void damaged(const std::string& reason) {
  throw std::invalid_argument("is not a complete file of torch.save or of stratagem train: " +
                              reason);
}

Bytes part(Bytes bytes, std::uint64_t offset, std::uint64_t size) {
  if (offset > bytes.size() || size > bytes.size() - offset) damaged("it ends too early");
  return bytes.subspan(offset, size);
}

template <class Number>
Number number_at(Bytes bytes, std::uint64_t offset) {
  std::uint64_t number = 0;
  unsigned shift = 0;
  for (const std::uint8_t byte : part(bytes, offset, sizeof(Number))) {
    number |= std::uint64_t{byte} << shift;
    shift += 8;
  }
  return static_cast<Number>(number);
}
std::uint16_t short_at(Bytes bytes, std::uint64_t offset) {
  return number_at<std::uint16_t>(bytes, offset);
}
std::uint32_t word_at(Bytes bytes, std::uint64_t offset) {
  return number_at<std::uint32_t>(bytes, offset);
}
std::uint64_t long_at(Bytes bytes, std::uint64_t offset) {
  return number_at<std::uint64_t>(bytes, offset);
}

/// Returns where the end record begins; only the archive's comment follows it.
std::uint64_t end_of(Bytes archive) {
  constexpr std::size_t longest_comment = 0xffff;
  for (std::size_t comment = 0; comment <= longest_comment; ++comment) {
    if (comment + end_size > archive.size()) break;
    const std::uint64_t offset = archive.size() - end_size - comment;
    if (word_at(archive, offset) == end_signature && short_at(archive, offset + 20) == comment) {
      return offset;
    }
  }
  damaged("it has no end record");
}

/// Returns the entries of the directory.
Bytes directory_of(Bytes archive) {
  const std::uint64_t end = end_of(archive);
  const std::uint32_t size = word_at(archive, end + 12);
  const std::uint32_t offset = word_at(archive, end + 16);
  if (end < locator64_size || word_at(archive, end - locator64_size) != locator64_signature) {
    return part(archive, offset, size);
  }
  const std::uint64_t end64 = long_at(archive, end - locator64_size + 8);
  part(archive, end64, end64_size);
  if (word_at(archive, end64) != end64_signature) damaged("it has no zip64 end record");
  return part(archive, long_at(archive, end64 + 48), long_at(archive, end64 + 40));
}

/// The 64-bit numbers in an entry's extra field, which replace 32-bit ones that are full.
class Zip64 {
 public:
  explicit Zip64(Bytes extra) {
    while (extra.size() >= 4) {
      const Bytes field = part(extra, 4, short_at(extra, 2));
      if (short_at(extra, 0) == 1) left_ = field;
      extra = extra.subspan(4 + field.size());
    }
  }
  std::uint64_t instead_of(std::uint32_t number) {
    if (number != std::numeric_limits<std::uint32_t>::max() || left_.empty()) return number;
    const std::uint64_t wide = long_at(left_, 0);
    left_ = left_.subspan(8);
    return wide;
  }

 private:
  Bytes left_;
};

ZipRecord record_of(Bytes archive, Bytes entry, Bytes extra) {
  constexpr std::uint16_t encrypted = 1;
  if ((short_at(entry, 8) & encrypted) != 0) damaged("a record is encrypted");
  const std::uint16_t method = short_at(entry, 10);
  if (method != 0 && method != 8) damaged("a record is neither stored nor deflated");
  Zip64 wide(extra);
  const std::uint64_t size = wide.instead_of(word_at(entry, 24));
  const std::uint64_t packed = wide.instead_of(word_at(entry, 20));
  const std::uint64_t offset = wide.instead_of(word_at(entry, 42));
  const Bytes local = part(archive, offset, local_size);
  if (word_at(local, 0) != local_signature) damaged("a record is not where it should be");
  const Bytes rest = archive.subspan(offset + local_size);
  const std::uint64_t before = std::uint64_t{short_at(local, 26)} + short_at(local, 28);
  if (method == 0 && packed != size) damaged("a stored record has two sizes");
  return {.bytes = part(rest, before, packed),
          .deflated = method == 8,
          .size = size,
          .crc = word_at(entry, 16)};
}

}  // namespace

std::map<std::string, ZipRecord, std::less<>> zip_records(Bytes archive) {
  std::map<std::string, ZipRecord, std::less<>> records;
  for (Bytes rest = directory_of(archive); !rest.empty();) {
    const Bytes entry = part(rest, 0, directory_entry_size);
    if (word_at(entry, 0) != directory_signature) damaged("its directory is damaged");
    const std::uint64_t name = short_at(entry, 28);
    const std::uint64_t extra = short_at(entry, 30);
    const std::uint64_t comment = short_at(entry, 32);
    const Bytes named = part(rest, directory_entry_size, name + extra + comment);
    const Bytes text = named.first(name);
    const bool is_new = records
                            .emplace(std::string(text.begin(), text.end()),
                                     record_of(archive, entry, named.subspan(name, extra)))
                            .second;
    if (!is_new) damaged("two records have one name");
    rest = rest.subspan(directory_entry_size + named.size());
  }
  return records;
}

std::vector<std::uint8_t> inflated(const ZipRecord& record, std::size_t most) {
  if (record.size > most) {
    damaged(fmt::format("a compressed record has {} bytes, more than {}", record.size, most));
  }
  std::vector<std::uint8_t> bytes(record.size);
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
  constexpr std::size_t at_once = std::size_t{1} << 30U;  // zlib counts in 32 bits
  std::size_t read = 0;
  std::size_t written = 0;
  int status = Z_OK;
  while (status == Z_OK) {
    stream.next_in = const_cast<Bytef*>(record.bytes.data() + read);
    stream.avail_in = static_cast<uInt>(std::min(at_once, record.bytes.size() - read));
    stream.next_out = bytes.data() + written;
    stream.avail_out = static_cast<uInt>(std::min(at_once, bytes.size() - written));
    const uInt in = stream.avail_in;
    const uInt out = stream.avail_out;
    status = inflate(&stream, Z_NO_FLUSH);
    read += in - stream.avail_in;
    written += out - stream.avail_out;
    if (in == stream.avail_in && out == stream.avail_out) break;
  }
  inflateEnd(&stream);
  if (status != Z_STREAM_END || written != bytes.size()) damaged("a compressed record is damaged");
  return bytes;
}

void require_intact(const ZipRecord& record, Bytes bytes) {
  if (record.crc == 0) return;
  const auto found = static_cast<std::uint32_t>(crc32_z(0, bytes.data(), bytes.size()));
  if (found == record.crc) return;
  throw std::invalid_argument(fmt::format(
      "is damaged: a record of {} bytes has checksum {:08x}, expected {:08x}; use another copy",
      bytes.size(), found, record.crc));
}

}  // namespace stratagem::checkpoint
