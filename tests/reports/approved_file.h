// What a person has approved of, in tests/approved/.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "reports/file_reader.h"

namespace stratagem::reports {

/// Whether the text is that of the approved file. Where it isn't, the text stays in a file, so that
/// a person can compare the two and replace the approved one.
inline testing::AssertionResult is_approved(const std::string& name, const std::string& received) {
  const std::string approved = std::string(STRATAGEM_TEST_DATA) + "/approved/" + name;
  if (received == read_file(approved, "the approved text")) return testing::AssertionSuccess();
  const std::filesystem::path kept = std::filesystem::temp_directory_path() /
                                     ("received_" + std::to_string(::getpid()) + "_" + name);
  std::ofstream(kept) << received;
  return testing::AssertionFailure() << "the text differs: see diff " << kept.string() << " "
                                     << approved << "; copy it over when it is right";
}

}  // namespace stratagem::reports
