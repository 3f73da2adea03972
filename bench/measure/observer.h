// Reports a measurement's progress to the caller. Every method does nothing by default.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace stratagem::bench {

class Observer {
 public:
  virtual ~Observer() = default;

  /// A phase begins, "verifying", with `items` items.
  virtual void phase(const std::string& /*name*/, std::size_t /*items*/) {}
  /// An item begins: a row's name, and "round 2/3" or nothing.
  virtual void begin(const std::string& /*item*/, const std::string& /*detail*/) {}
  /// The item has ended, with the step's time if it was a measurement that succeeded.
  virtual void end(std::optional<double> /*step_ms*/) {}
  /// Called now and then while an item runs.
  virtual void tick() {}
  /// The user interrupts. Returns true if the workers have been notified and end by themselves.
  virtual bool interrupted() { return false; }
  /// A line to be kept: a wait, a row that failed.
  virtual void note(const std::string& /*line*/) {}
};

}  // namespace stratagem::bench
