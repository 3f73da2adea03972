// The build of this executable. The build system (cmake/) fills in the values.
#pragma once

#include <string>

namespace stratagem::reports {

struct BuildInformation {
  std::string version;
  std::string git_commit;  // twelve digits, followed by "-modified" for a changed tree
  std::string build_type;
  std::string compiler;
  std::string compiler_flags;  // shared by all files; some folders have more
  std::string sanitizers;      // empty for none
  bool cuda = false;
  std::string cuda_version;  // version of the headers; empty without the CUDA backend
  std::string nccl_version;
  std::string plugin_interface;  // versions and headers that a plug-in must be built against
};

BuildInformation build_information();

/// Returns the text that precedes the interface in a plug-in's file.
std::string plugin_interface_mark();

}  // namespace stratagem::reports
