// The message of the error that a call throws, std::invalid_argument unless another is named; "no
// error" when it throws none.
#pragma once

#include <stdexcept>
#include <string>

namespace stratagem {

template <class Error = std::invalid_argument, class Call>
std::string error_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace stratagem
