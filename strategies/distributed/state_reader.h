// A state that is spread over ranks, read on rank 0 one entry at a time: a rank holds its own part,
// rank 0 one whole entry besides, and a message has at most 16 MiB.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "strategies/distributed/process_group.h"
#include "strategies/state.h"

namespace stratagem::distributed {

class StateReader {
 public:
  /// `ranks`: all of the job, of which this one is the first; null: there are no others. Messages
  /// go through `device`, where the group's backend can reach them. Collective: every other rank
  /// calls send_state() meanwhile, and stays there while the reader lives.
  StateReader(strategies::StatePieces own, ProcessGroup* ranks, const at::Device& device);
  ~StateReader();
  StateReader(const StateReader&) = delete;
  StateReader& operator=(const StateReader&) = delete;

  /// By name: a tensor of the entry's type and sizes, on the meta device.
  const std::map<std::string, at::Tensor>& entries() const { return entries_; }

  /// Whether the entry's elements lie in row-major order where a rank has them all; as read()
  /// returns them they do.
  bool is_row_major(const std::string& name) const;

  /// The whole entry, contiguous, on the host. It may be the strategy's own memory. Throws
  /// std::out_of_range for a name that no rank has, std::logic_error where the ranks have only a
  /// part of it, and CommunicationError.
  at::Tensor read(const std::string& name);

 private:
  class Messages;
  struct Place {
    int rank;
    std::int64_t index;  // among the rank's pieces
  };

  const strategies::StatePiece& piece_at(const Place& place) const {
    return pieces_.at(static_cast<std::size_t>(place.rank))
        .at(static_cast<std::size_t>(place.index));
  }
  void fill(const at::Tensor& values, const Place& place);

  std::vector<strategies::StatePieces> pieces_;  // [rank], the others' without values
  std::map<std::string, at::Tensor> entries_;
  std::map<std::string, std::vector<Place>> places_;
  std::unique_ptr<Messages> messages_;  // null: there are no other ranks
};

/// Sends rank 0 what it asks for, until its StateReader is gone. Throws CommunicationError.
void send_state(const strategies::StatePieces& own, ProcessGroup& ranks, const at::Device& device);

}  // namespace stratagem::distributed
