#include "bench/worker/operator_count.h"

#include <atomic>
#include <memory>
#include <stdexcept>

namespace stratagem::bench {
namespace {

// RecordFunction takes plain functions, which can access nothing else.
std::atomic<bool> counting{false};
std::atomic<std::int64_t> counted{0};

std::unique_ptr<at::ObserverContext> count_one(const at::RecordFunction& /*call*/) {
  counted.fetch_add(1, std::memory_order_relaxed);
  return nullptr;
}

at::CallbackHandle begin() {
  if (counting.exchange(true)) throw std::logic_error("operators are being counted already");
  counted = 0;
  return at::addGlobalCallback(
      at::RecordFunctionCallback(count_one).scopes({at::RecordScope::FUNCTION}));
}

}  // namespace

OperatorCount::OperatorCount() : handle_(begin()) {}

OperatorCount::~OperatorCount() {
  at::removeCallback(handle_);
  counting = false;
}

std::int64_t OperatorCount::calls() const { return counted; }

}  // namespace stratagem::bench
