// What a measurement tells whoever watches it. Every method has a default that does nothing.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace stratagem::bench {

class Observer {
 public:
  virtual ~Observer() = default;

  /// "verifying", of `items` items that follow.
  virtual void phase(const std::string& /*name*/, std::size_t /*items*/) {}
  /// An item begins: a row's name, and "round 2/3" or nothing.
  virtual void begin(const std::string& /*item*/, const std::string& /*detail*/) {}
  /// It has ended; with the step's time when it was a measurement that succeeded.
  virtual void end(std::optional<double> /*step_ms*/) {}
  /// Called now and then while an item runs.
  virtual void tick() {}
  /// The user wants no more. True: the workers have been told, and end by themselves.
  virtual bool interrupted() { return false; }
  /// A line to be kept: a wait, a row that failed.
  virtual void note(const std::string& /*line*/) {}
};

}  // namespace stratagem::bench
