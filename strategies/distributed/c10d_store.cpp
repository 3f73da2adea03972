#include "strategies/distributed/c10d_store.h"

#include <c10/util/Logging.h>
#include <fmt/format.h>

#include <cstdlib>
#include <functional>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>

#include "strategies/ranks/listening_socket.h"
#include "strategies/runtime/communication_error.h"
#include "strategies/runtime/first_line.h"

namespace stratagem::distributed {
namespace {

/// Keeps c10's warnings and stack traces off stderr: the exception's handler reports the error in
/// one line. TORCH_CPP_LOG_LEVEL=INFO brings them back.
void quiet_library_log() {
  constexpr int fatal_only = 3;
  if (std::getenv("TORCH_CPP_LOG_LEVEL") == nullptr) FLAGS_caffe2_log_level = fatal_only;
}

class C10dStore final : public ranks::KeyValueStore {
 public:
  C10dStore(std::string name, c10::intrusive_ptr<c10d::Store> store)
      : name_(std::move(name)), store_(std::move(store)) {}

  void set(const std::string& key, const std::string& text) override {
    attempt([&] { store_->set(key, text); });
  }

  std::optional<std::string> find(const std::string& key) override {
    std::optional<std::string> text;
    attempt([&] {
      if (store_->check({key})) text = store_->get_to_str(key);
    });
    return text;
  }

  std::int64_t add(const std::string& key, std::int64_t amount) override {
    std::int64_t sum = 0;
    attempt([&] { sum = store_->add(key, amount); });
    return sum;
  }

 private:
  void attempt(const std::function<void()>& call) const {
    try {
      call();
    } catch (const std::exception& error) {
      throw runtime::CommunicationError(
          fmt::format("the store at {} is gone: {}", name_, runtime::first_line(error)));
    }
  }

  std::string name_;
  c10::intrusive_ptr<c10d::Store> store_;
};

c10::intrusive_ptr<c10d::Store> open_store(const ranks::StoreEndpoint& place) {
  if (!place.file.empty()) {
    const auto store = c10::make_intrusive<c10d::FileStore>(place.file, place.ranks);
    store->setTimeout(place.timeout);
    return store;
  }
  c10d::TCPStoreOptions options;
  options.port = place.port;
  options.isServer = place.serve;
  options.timeout = place.timeout;
  options.waitWorkers = false;
  if (place.serve) {
    // Otherwise the store would listen on every interface. It closes the given socket.
    options.masterListenFd = ranks::listen_on(place.address, place.port).socket.release();
  } else {
    ranks::await_resolution(place.address, place.timeout);  // c10d would hide the reason
  }
  return c10::make_intrusive<c10d::TCPStore>(place.address, options);
}

}  // namespace

std::unique_ptr<ranks::KeyValueStore> connect_store(const ranks::StoreEndpoint& place) {
  quiet_library_log();
  try {
    return std::make_unique<C10dStore>(
        place.name(), c10::make_intrusive<c10d::PrefixStore>(place.prefix, open_store(place)));
  } catch (const std::exception& error) {
    throw runtime::CommunicationError(fmt::format(
        "{}: {}",
        place.serve
            ? fmt::format("cannot listen on {} (choose another address or port "
                          "by MASTER_ADDR and MASTER_PORT, or by --init-method "
                          "tcp://HOST:PORT)",
                          place.name())
            : fmt::format("cannot connect to {} within {:g} s (start rank 0 "
                          "there, or raise --timeout)",
                          place.name(), std::chrono::duration<double>(place.timeout).count()),
        runtime::first_line(error)));
  }
}

}  // namespace stratagem::distributed
