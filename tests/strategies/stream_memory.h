// The memory of stream devices, which treats mistakes with streams as a GPU's allocator does.
//
// A block belongs to the stream whose work allocated it. When it is freed it is overwritten with
// NaN at once, and is what that stream's next allocation of its size gets, although another stream
// may still use it; unless that use was recorded: then not before the other stream has ended the
// item that it is in. Beyond that every use is compared with the streams' clocks, and what runs in
// the right order by luck alone is reported:
// - a use of what another stream wrote, or a write to what another stream uses, with no event
// between
// - memory that another stream used, freed with no use recorded and no event back
// - work on another device's memory, other than a copy from there
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "strategies/runtime/device.h"
#include "tests/strategies/stream_clock.h"

namespace stratagem::runtime {

/// What a piece of work does with memory.
enum class Use { read, write, copy_from };

class StreamMemory {
 public:
  StreamMemory() = default;
  StreamMemory(const StreamMemory&) = delete;
  StreamMemory& operator=(const StreamMemory&) = delete;
  /// Nobody uses it any more.
  ~StreamMemory() {
    for (const auto& [stream, pool] : pools_) give_back(pool);
    for (const Deferred& freed : deferred_) std::free(freed.data);
    for (const auto& [data, block] : blocks_) {
      if (block.owner != nullptr) std::free(const_cast<void*>(data));
    }
  }

  /// For the current stream. All bytes are NaN, as of every floating-point type.
  void* allocate(std::size_t bytes) {
    const StreamPointer owner = this_thread_state().stream;
    const std::size_t room = std::bit_ceil(std::max(bytes, smallest_room));
    const std::lock_guard lock(mutex_);
    release_deferred();
    void* data = take(owner->number(), room);
    blocks_[data] = {.owner = owner,
                     .bytes = static_cast<std::int64_t>(bytes),
                     .room = room,
                     .write = {owner, owner->item(), "an allocation"}};
    MemoryStatistics& own = statistics_[owner->device()];
    own.current_bytes += static_cast<std::int64_t>(bytes);
    own.peak_bytes = std::max(own.peak_bytes, own.current_bytes);
    return data;
  }

  /// Watches memory of the host, which others allocate and free.
  void watch(void* data) {
    const std::lock_guard lock(mutex_);
    blocks_[data] = {};
  }

  /// False: it is the host's, or unknown, and the caller's to free. It is watched no longer.
  bool free(void* data) {
    const std::lock_guard lock(mutex_);
    const auto node = blocks_.extract(data);
    if (node.empty() || node.mapped().owner == nullptr) return false;
    const Block& block = node.mapped();
    report_uses_that_were_not_recorded(block);
    statistics_[block.owner->device()].current_bytes -= block.bytes;
    Deferred freed{data, block.owner, block.room, {}};
    for (const StreamPointer& user : block.recorded) freed.users.emplace_back(user, user->item());
    deferred_.push_back(std::move(freed));
    release_deferred();
    return true;
  }

  /// The current stream uses the block that begins at `data`, if there is one: it is not given away
  /// before that.
  void record_use(const void* data) {
    const StreamPointer own = this_thread_state().stream;
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(data);
    if (own == nullptr || found == blocks_.end()) return;
    if (own != found->second.owner) found->second.recorded.insert(own);
  }

  /// The calling thread does `what` with the block that begins at `data`, if there is one.
  void use(const void* data, Use use, std::string_view what) {
    const ThreadState& thread = this_thread_state();
    if (!thread.is_known()) return;
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(data);
    if (found == blocks_.end()) return;
    Block& block = found->second;
    const StreamClock known = thread.clock();
    const auto require = [&](const Access& before, std::string_view did) {
      if (before.is_behind(thread, known)) return;
      report(fmt::format("{} on {} {} {} of {}, and has waited for no event behind that", what,
                         name_of(thread), did, before.what, before.stream->name()));
    };
    if (block.write.stream != nullptr) require(block.write, "uses the result of");
    for (const auto& [stream, read] : block.reads) {
      if (use == Use::write) require(read, "overwrites what is used by");
    }
    if (thread.stream == nullptr) return;
    if (use != Use::copy_from && block.owner && block.owner->device() != thread.stream->device()) {
      report(fmt::format("{} on {} works on memory of {}", what, name_of(thread),
                         block.owner->name()));
    }
    Access access{thread.stream, thread.stream->item(), std::string(what)};
    if (use == Use::write) {
      block.write = std::move(access);
    } else {
      block.reads[thread.stream->number()] = std::move(access);
    }
  }

  MemoryStatistics of_device(int device) {
    const std::lock_guard lock(mutex_);
    return statistics_[device];
  }
  void reset_peak(int device) {
    const std::lock_guard lock(mutex_);
    statistics_[device].peak_bytes = statistics_[device].current_bytes;
  }

  /// Each mistake once.
  std::set<std::string> take_reports() {
    const std::lock_guard lock(mutex_);
    return std::exchange(reports_, {});
  }

 private:
  static constexpr std::size_t smallest_room = 64;

  struct Access {
    StreamPointer stream;
    std::uint64_t item = 0;
    std::string what;

    /// Whether `thread`, which knows `known`, surely comes after it.
    bool is_behind(const ThreadState& thread, const StreamClock& known) const {
      return stream == thread.stream || known.of(stream->number()) >= item;
    }
  };
  struct Block {
    StreamPointer owner;  // null: the host's
    std::int64_t bytes = 0;
    std::size_t room = 0;
    Access write = {};                 // the last one
    std::map<int, Access> reads = {};  // the last of each stream
    std::set<StreamPointer> recorded = {};
  };
  struct Deferred {
    void* data;
    StreamPointer owner;
    std::size_t room;
    std::vector<std::pair<StreamPointer, std::uint64_t>> users;  // and the items that they are in
  };
  struct Pool {
    std::weak_ptr<StreamState> owner;
    std::map<std::size_t, std::vector<void*>> free;  // by room
  };

  static std::string_view name_of(const ThreadState& thread) {
    return thread.stream != nullptr ? std::string_view(thread.stream->name()) : "the host";
  }

  static void poison(void* data, std::size_t room) { std::memset(data, 0xff, room); }

  static void give_back(const Pool& pool) {
    for (const auto& [room, free] : pool.free) std::ranges::for_each(free, &std::free);
  }

  void* take(int stream, std::size_t room) {
    auto& free = pools_[stream].free[room];
    if (!free.empty()) {
      void* data = free.back();
      free.pop_back();
      return data;
    }
    drop_pools_of_streams_that_are_gone(stream);
    void* data = std::aligned_alloc(smallest_room, room);
    if (data == nullptr) throw std::bad_alloc();
    poison(data, room);
    return data;
  }

  void drop_pools_of_streams_that_are_gone(int but) {
    std::erase_if(pools_, [but](const auto& entry) {
      if (entry.first == but || !entry.second.owner.expired()) return false;
      give_back(entry.second);
      return true;
    });
  }

  void release_deferred() {
    std::erase_if(deferred_, [this](const Deferred& freed) {
      const bool used = std::ranges::any_of(
          freed.users, [](const auto& user) { return !user.first->has_ended(user.second); });
      if (used) return false;
      poison(freed.data, freed.room);
      Pool& pool = pools_[freed.owner->number()];
      pool.owner = freed.owner;
      pool.free[freed.room].push_back(freed.data);
      return true;
    });
  }

  /// The owner's next allocation is work of the owner, which has to come after all uses: it knows
  /// of them by itself, or by a thread of the host that has waited for them.
  void report_uses_that_were_not_recorded(const Block& block) {
    const ThreadState& thread = this_thread_state();
    const StreamClock of_owner = block.owner->clock();
    const StreamClock of_host = thread.is_host && !thread.stream ? thread.known : StreamClock{};
    const auto require = [&](const Access& access) {
      const int user = access.stream->number();
      const bool known = of_owner.of(user) >= access.item || of_host.of(user) >= access.item;
      if (known || block.recorded.contains(access.stream)) return;
      report(fmt::format("memory of {} was freed while {} of {} may use it: no use was recorded",
                         block.owner->name(), access.what, access.stream->name()));
    };
    require(block.write);
    for (const auto& [stream, read] : block.reads) require(read);
  }

  void report(std::string text) { reports_.insert(std::move(text)); }

  std::mutex mutex_;
  std::map<const void*, Block> blocks_;
  std::vector<Deferred> deferred_;
  std::map<int, Pool> pools_;                   // by stream
  std::map<int, MemoryStatistics> statistics_;  // by device
  std::set<std::string> reports_;
};

}  // namespace stratagem::runtime
