#include "strategies/distributed/state_reader.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <tuple>
#include <utility>

#include "strategies/distributed/state_pieces.h"

namespace stratagem::distributed {
namespace {

using strategies::StatePiece;
using strategies::StatePieces;

constexpr std::int64_t most_bytes = 16 << 20;  // the size of a message

// Rank 0's requests other than a piece's number.
constexpr std::int64_t wait_longer = -1;
constexpr std::int64_t nothing_more = -2;

/// Calls `use` with parts of at most `most_bytes` each.
template <class Use>
void for_each_part(const at::Tensor& values, const Use& use) {
  const at::Tensor bytes = values.view(at::kByte);
  for (std::int64_t start = 0; start < bytes.numel(); start += most_bytes) {
    use(bytes.narrow(0, start, std::min(most_bytes, bytes.numel() - start)));
  }
}

void send_number(std::int64_t number, int to, ProcessGroup& ranks, const at::Device& device) {
  ranks.send(at::full({1}, number, at::TensorOptions(at::kLong)).to(device), to)->wait();
}

std::int64_t receive_number(int from, ProcessGroup& ranks, const at::Device& device) {
  const at::Tensor number = at::empty({1}, at::TensorOptions(device).dtype(at::kLong));
  ranks.receive(number, from)->wait();
  return number.item<std::int64_t>();
}

void send_values(const at::Tensor& values, ProcessGroup& ranks, const at::Device& device) {
  for_each_part(values, [&](const at::Tensor& part) { ranks.send(part.to(device), 0)->wait(); });
}

void receive_values(const at::Tensor& values, int from, ProcessGroup& ranks,
                    const at::Device& device) {
  for_each_part(values, [&](const at::Tensor& part) {
    const at::Tensor arrived = device.is_cpu() ? part : at::empty_like(part, device);
    ranks.receive(arrived, from)->wait();
    if (!arrived.is_same(part)) part.copy_(arrived);
  });
}

at::Tensor as_bytes(std::string& text) {
  return at::from_blob(text.data(), {static_cast<std::int64_t>(text.size())}, at::kByte);
}

}  // namespace

/// Messages with the other ranks. While rank 0 is busy, a thread asks them to wait longer, so that
/// their time limits do not end rank 0's work with an entry.
class StateReader::Messages {
 public:
  Messages(ProcessGroup& ranks, const at::Device& device)
      : ranks_(ranks),
        device_(device),
        waiting_([this](const std::stop_token& stop) { keep_waiting(stop); }) {}

  ~Messages() {
    waiting_.request_stop();
    waiting_.join();
    ask_all(nothing_more);
  }
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;

  StatePieces pieces_of(int rank) {
    const std::lock_guard lock(mutex_);
    std::string text(static_cast<std::size_t>(receive_number(rank, ranks_, device_)), ' ');
    receive_values(as_bytes(text), rank, ranks_, device_);
    return from_description(text);
  }

  void receive(const at::Tensor& values, int rank, std::int64_t index) {
    const std::lock_guard lock(mutex_);
    send_number(index, rank, ranks_, device_);
    receive_values(values, rank, ranks_, device_);
  }

 private:
  /// Returns false if a rank is lost, which the next message or collective reports.
  bool ask_all(std::int64_t number) {
    try {
      for (int rank = 1; rank < ranks_.size(); ++rank) send_number(number, rank, ranks_, device_);
      return true;
    } catch (const runtime::CommunicationError&) {
      return false;
    }
  }

  /// Sends the request over Gloo; over NCCL a message has no time limit.
  void keep_waiting(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (ranks_.backend() == "gloo") {
      passed_.wait_for(lock, stop, ranks_.limit() / 4, [] { return false; });
      if (stop.stop_requested() || !ask_all(wait_longer)) return;
    }
  }

  ProcessGroup& ranks_;
  at::Device device_;
  std::mutex mutex_;
  std::condition_variable_any passed_;
  std::jthread waiting_;  // last: it uses the other members
};

StateReader::StateReader(StatePieces own, ProcessGroup* ranks, const at::Device& device) {
  pieces_.push_back(std::move(own));
  if (ranks != nullptr && ranks->size() > 1) {
    messages_ = std::make_unique<Messages>(*ranks, device);
    for (int rank = 1; rank < ranks->size(); ++rank) {
      pieces_.push_back(messages_->pieces_of(rank));
    }
  }
  for (int rank = 0; rank < static_cast<int>(pieces_.size()); ++rank) {
    std::int64_t index = 0;
    for (const StatePiece& piece : pieces_[static_cast<std::size_t>(rank)]) {
      const bool as_held = piece.slice.is_contiguous() && piece.slice.sizes() == piece.sizes;
      entries_.try_emplace(piece.name,
                           as_held ? piece.slice : at::empty(piece.sizes, piece.slice.options()));
      places_[piece.name].push_back({rank, index++});
    }
  }
}

StateReader::~StateReader() = default;

void StateReader::fill(const at::Tensor& values, const Place& place) {
  if (place.rank == 0) {
    values.copy_(piece_at(place).values);
  } else {
    messages_->receive(values, place.rank, place.index);
  }
}

bool StateReader::is_row_major(const std::string& name) const {
  const at::Tensor& slice = piece_at(places_.at(name).front()).slice;
  return slice.is_contiguous() || slice.numel() < entries_.at(name).numel();
}

at::Tensor StateReader::read(const std::string& name) {
  const at::Tensor& form = entries_.at(name);
  const std::vector<Place>& places = places_.at(name);
  const StatePiece& first = piece_at(places.front());
  if (places.front().rank == 0 && first.slice.is_contiguous() &&
      first.values.numel() == form.numel()) {
    return first.values.cpu().view(form.sizes());
  }
  const at::Tensor whole = at::empty(form.sizes(), form.options().device(at::kCPU));
  // Slices whose elements are not contiguous in the whole are filled, then copied.
  using View = std::tuple<std::vector<std::int64_t>, std::vector<std::int64_t>, std::int64_t>;
  std::map<View, at::Tensor> apart;
  std::int64_t found = 0;
  for (const Place& place : places) {
    const StatePiece& piece = piece_at(place);
    const View view{piece.slice.sizes().vec(), piece.slice.strides().vec(),
                    piece.slice.storage_offset()};
    at::Tensor slice = std::apply([&](const auto&... of) { return whole.as_strided(of...); }, view);
    if (!slice.is_contiguous()) {
      slice = apart.try_emplace(view, at::empty(slice.sizes(), whole.options())).first->second;
    }
    const std::int64_t count = piece.values.numel();
    fill(slice.view({-1}).narrow(0, piece.start, count), place);
    found += count;
  }
  for (const auto& each : apart) {
    const auto copy = [&](const auto&... of) { whole.as_strided(of...).copy_(each.second); };
    std::apply(copy, each.first);
  }
  if (found != whole.numel()) {
    throw std::logic_error(
        fmt::format("the ranks have {} of the {} elements of \"{}\"", found, whole.numel(), name));
  }
  return whole;
}

void send_state(const StatePieces& own, ProcessGroup& ranks, const at::Device& device) {
  std::string text = described(own);
  send_number(static_cast<std::int64_t>(text.size()), 0, ranks, device);
  send_values(as_bytes(text), ranks, device);
  while (true) {
    const std::int64_t asked = receive_number(0, ranks, device);
    if (asked == nothing_more) return;
    if (asked != wait_longer) {
      send_values(own.at(static_cast<std::size_t>(asked)).values, ranks, device);
    }
  }
}

}  // namespace stratagem::distributed
