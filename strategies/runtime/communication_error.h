// CommunicationError: what a rank learns when another fails it. Apart from what needs LibTorch, so
// that whoever reports it can tell it from the failure that caused it.
#pragma once

#include <stdexcept>

namespace stratagem::runtime {

/// A collective, or a call of the store, that failed or overran: one line with the call and the
/// ranks.
class CommunicationError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace stratagem::runtime
