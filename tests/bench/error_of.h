// The message of the std::invalid_argument that a call throws; "no error" when it throws none.
#pragma once

#include <stdexcept>
#include <string>

namespace stratagem {

template <class Call>
std::string error_of(Call&& call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace stratagem
