// KeyValueStore: where the processes that a launcher started find one another and leave notes.
//
// A key holds one text, everyone reads it, nothing waits. Workers talk over process groups; this is
// for the controllers, which touch no tensor.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace stratagem::ranks {

class KeyValueStore {
 public:
  KeyValueStore() = default;
  virtual ~KeyValueStore() = default;
  KeyValueStore(const KeyValueStore&) = delete;
  KeyValueStore& operator=(const KeyValueStore&) = delete;

  // Each throws CommunicationError when the place is gone. They may be called by any thread.
  virtual void set(const std::string& key, const std::string& text) = 0;
  /// What is there, at once.
  virtual std::optional<std::string> find(const std::string& key) = 0;
  /// Adds to a number that begins at 0, and returns it.
  virtual std::int64_t add(const std::string& key, std::int64_t amount) = 0;
};

/// "127.0.0.1:29500"; an IPv6 address is in brackets: "[::1]:29500".
inline std::string host_and_port(const std::string& address, std::uint16_t port) {
  const bool ipv6 = address.find(':') != std::string::npos;
  return (ipv6 ? "[" + address + "]" : address) + ":" + std::to_string(port);
}

struct StoreEndpoint {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;
  bool serve = false;  // this process serves it; else it waits for who does
  std::string file;    // a file that all reach, in place of address and port; new
  int ranks = -1;      // who come; the last to leave removes the file
  std::string prefix;  // keeps runs apart that meet at one place
  std::chrono::milliseconds timeout{120'000};

  /// "127.0.0.1:29500", or the file.
  std::string name() const { return file.empty() ? host_and_port(address, port) : file; }
};

}  // namespace stratagem::ranks
