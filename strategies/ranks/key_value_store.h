// KeyValueStore: a store in which the processes of a launcher find one another and leave texts.
//
// A key holds one text that everyone can read, and nothing waits. Workers exchange over process
// groups; this is for the controllers, which touch no tensor.
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

  // Methods throw CommunicationError if the store is gone. Any thread may call them.
  virtual void set(const std::string& key, const std::string& text) = 0;
  /// Returns the present text without waiting.
  virtual std::optional<std::string> find(const std::string& key) = 0;
  /// Adds to a number that begins at 0 and returns it.
  virtual std::int64_t add(const std::string& key, std::int64_t amount) = 0;
};

/// Returns "127.0.0.1:29500"; an IPv6 address is in brackets: "[::1]:29500".
inline std::string host_and_port(const std::string& address, std::uint16_t port) {
  const bool ipv6 = address.find(':') != std::string::npos;
  return (ipv6 ? "[" + address + "]" : address) + ":" + std::to_string(port);
}

struct StoreEndpoint {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;
  bool serve = false;  // this process runs it; false: it waits for the process that does
  std::string file;    // a new file that all reach, instead of address and port
  int ranks = -1;      // the number of users; the last one to leave removes the file
  std::string prefix;  // separates runs that share a place
  std::chrono::milliseconds timeout{120'000};

  /// Returns "127.0.0.1:29500", or the file.
  std::string name() const { return file.empty() ? host_and_port(address, port) : file; }
};

}  // namespace stratagem::ranks
