// Reads a state that is spread over ranks on rank 0, one entry at a time: a rank holds its own
// part, rank 0 one whole entry more, and a message has at most 16 MiB.
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
  /// `ranks`: all of the job, of which this is the first; null: there is only one. Messages go
  /// through `device`, which the group's backend must reach. Collective: every other rank calls
  /// send_state() and stays there while the reader lives.
  StateReader(strategies::StatePieces own, ProcessGroup* ranks, const at::Device& device);
  ~StateReader();
  StateReader(const StateReader&) = delete;
  StateReader& operator=(const StateReader&) = delete;

  /// Returns by name a tensor of the entry's type and sizes on the meta device.
  const std::map<std::string, at::Tensor>& entries() const { return entries_; }

  /// Returns whether a rank with the whole entry keeps its elements in row-major order, as read()
  /// returns them.
  bool is_row_major(const std::string& name) const;

  /// Returns the whole entry, contiguous, on the host. It may be the strategy's own memory. Throws
  /// std::out_of_range for an unknown name, std::logic_error if the ranks have only a part of it,
  /// and CommunicationError.
  at::Tensor read(const std::string& name);

 private:
  class Messages;
  struct Place {
    int rank;
    std::int64_t index;  // the index among the rank's pieces
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

/// Answers rank 0's requests until its StateReader is gone. Throws CommunicationError.
void send_state(const strategies::StatePieces& own, ProcessGroup& ranks, const at::Device& device);

}  // namespace stratagem::distributed
