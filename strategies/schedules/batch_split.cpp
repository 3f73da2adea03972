#include "strategies/schedules/batch_split.h"

#include <algorithm>
#include <functional>
#include <map>

namespace stratagem::schedules {
namespace {

using Cut = std::function<std::vector<Slice>(std::int64_t count)>;

std::vector<Slice> cut_per_replica(std::int64_t batch, std::int64_t replicas, const Cut& cut) {
  std::vector<Slice> all;
  int replica = 0;
  for (const Slice& share : split_batch_by_count(batch, replicas)) {
    if (share.count == 0) {
      all.push_back({.start = 0, .count = 1, .replica = replica++, .counts = false});
      continue;
    }
    for (const Slice& part : cut(share.count)) {
      all.push_back({.start = share.start + part.start, .count = part.count, .replica = replica});
    }
    ++replica;
  }
  return all;
}

}  // namespace

double Slice::weight(std::int64_t samples) const {
  return counts ? static_cast<double>(count) / static_cast<double>(samples) : 0;
}

std::vector<Slice> split_batch(std::int64_t batch, std::int64_t size) {
  std::vector<Slice> slices;
  for (std::int64_t start = 0; start < batch; start += size) {
    slices.push_back({.start = start, .count = std::min(size, batch - start), .replica = 0});
  }
  return slices;
}

std::vector<Slice> split_batch_by_count(std::int64_t batch, std::int64_t parts) {
  std::vector<Slice> slices;
  std::int64_t start = 0;
  for (std::int64_t part = 0; part < parts; ++part) {
    const std::int64_t count = batch / parts + (part < batch % parts ? 1 : 0);
    slices.push_back({.start = start, .count = count, .replica = 0});
    start += count;
  }
  return slices;
}

std::vector<Slice> chunk_batch(std::int64_t batch, std::int64_t parts) {
  std::vector<Slice> chunks = split_batch(batch, (batch + parts - 1) / parts);
  for (std::size_t index = 0; index < chunks.size(); ++index) {
    chunks[index].replica = static_cast<int>(index);
  }
  return chunks;
}

std::vector<Slice> split_batch_per_replica(std::int64_t batch, std::int64_t replicas,
                                           std::int64_t size) {
  return cut_per_replica(batch, replicas,
                         [size](std::int64_t count) { return split_batch(count, size); });
}

std::vector<Slice> split_batch_per_replica_by_count(std::int64_t batch, std::int64_t replicas,
                                                    std::int64_t parts) {
  return cut_per_replica(batch, replicas, [parts](std::int64_t count) {
    return split_batch_by_count(count, std::min(count, parts));
  });
}

std::vector<Slice> with_equal_counts(const std::vector<Slice>& partition) {
  std::map<int, std::vector<Slice>> by_replica;
  std::size_t most = 0;
  for (const Slice& slice : partition) {
    by_replica[slice.replica].push_back(slice);
    most = std::max(most, by_replica[slice.replica].size());
  }
  std::vector<Slice> all;
  for (auto& [replica, slices] : by_replica) {
    slices.resize(most, {.start = 0, .count = 1, .replica = replica, .counts = false});
    all.insert(all.end(), slices.begin(), slices.end());
  }
  return all;
}

}  // namespace stratagem::schedules
