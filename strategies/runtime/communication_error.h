// CommunicationError: the error on a rank whose peer fails. It lies apart from code that needs
// LibTorch, so that reports can distinguish it from the failure that caused it.
#pragma once

#include <stdexcept>

namespace stratagem::runtime {

/// A collective, or a call of the store, that failed or overran: one line with the call and ranks.
class CommunicationError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace stratagem::runtime
