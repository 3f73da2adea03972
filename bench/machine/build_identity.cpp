// Identifies the running code: the executable's build id and the loaded LibTorch.
#include <elf.h>
#include <fmt/format.h>
#include <link.h>

#include <cstring>
#include <filesystem>
#include <span>
#include <string_view>

#include "bench/machine/machine.h"

namespace stratagem::bench {

namespace {

std::string hexadecimal(std::span<const unsigned char> bytes) {
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

/// Returns the GNU build-id note among `notes`, or nothing.
std::string build_id_note(std::span<const unsigned char> notes) {
  const auto padded = [](std::size_t size) { return (size + 3) & ~std::size_t{3}; };
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) header;
    std::memcpy(&header, notes.data(), sizeof(header));
    const std::size_t description = sizeof(header) + padded(header.n_namesz);
    const std::size_t end = description + padded(header.n_descsz);
    if (end > notes.size()) break;
    const std::string_view name(reinterpret_cast<const char*>(notes.data()) + sizeof(header),
                                header.n_namesz);
    if (header.n_type == NT_GNU_BUILD_ID && name.starts_with("GNU")) {
      return hexadecimal(notes.subspan(description, header.n_descsz));
    }
    notes = notes.subspan(end);
  }
  return "";
}

struct LoadedObject {
  std::string path = {};
  std::string build_id = {};  // empty if linked without one
};

LoadedObject read_object(const dl_phdr_info& object) {
  LoadedObject found{.path = object.dlpi_name};
  for (int index = 0; index < object.dlpi_phnum && found.build_id.empty(); ++index) {
    const ElfW(Phdr)& segment = object.dlpi_phdr[index];
    if (segment.p_type != PT_NOTE) continue;
    const auto* begin = reinterpret_cast<const unsigned char*>(object.dlpi_addr + segment.p_vaddr);
    found.build_id = build_id_note({begin, segment.p_memsz});
  }
  return found;
}

// The first reported object is the executable itself.
int take_executable(dl_phdr_info* object, std::size_t, void* result) {
  *static_cast<LoadedObject*>(result) = read_object(*object);
  return 1;
}

int take_torch(dl_phdr_info* object, std::size_t, void* result) {
  const std::filesystem::path path(object->dlpi_name);
  if (!path.filename().string().starts_with("libtorch_cpu.so")) return 0;
  return take_executable(object, 0, result);
}

/// Returns the first loaded object that `take` takes; empty if it takes none.
LoadedObject loaded_object(int (*take)(dl_phdr_info*, std::size_t, void*)) {
  LoadedObject found;
  dl_iterate_phdr(take, &found);
  return found;
}

// Identifies an executable without --build-id: a rebuilt one still has another size or time.
std::string file_identity() {
  std::error_code ignored;
  const auto size = std::filesystem::file_size("/proc/self/exe", ignored);
  const auto time = std::filesystem::last_write_time("/proc/self/exe", ignored);
  return fmt::format("{:x}-{:x}", size, time.time_since_epoch().count());
}

}  // namespace

std::string build_id() {
  const std::string identity = loaded_object(take_executable).build_id;
  return identity.empty() ? file_identity() : identity;
}

std::string torch_library_path() { return loaded_object(take_torch).path; }

std::string torch_build_id() { return loaded_object(take_torch).build_id; }

}  // namespace stratagem::bench
