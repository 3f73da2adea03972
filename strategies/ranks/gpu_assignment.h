// Which GPU each device of a job is, from what every rank sees.
//
// Ranks of one host may see all of its GPUs, or a launcher's mask may leave each the GPUs of its
// own; those of another host are others, whatever their numbers. So a GPU is known by its host and
// identity, and a rank names it by the number that it has there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stratagem::ranks {

/// Of one rank.
struct VisibleGpus {
  std::string host;
  std::vector<std::string> identities;  // [number]: unlike those of the host's other GPUs
};

/// [rank][device]: the number of the GPU. Each rank has `devices_per_rank`: the first that it sees
/// and that no rank before it has, or those that `device_ids`, one for each of the job's devices,
/// name. Throws std::invalid_argument, for every rank alike, in one line with the rank that lacks
/// one.
std::vector<std::vector<int>> assign_gpus(const std::vector<VisibleGpus>& ranks,
                                          std::int64_t devices_per_rank,
                                          const std::vector<std::int64_t>& device_ids);

/// Throws std::invalid_argument, for every rank alike, where two ranks drive one GPU, which NCCL
/// refuses ("Duplicate GPU detected"). `assigned` is what assign_gpus() returned.
void require_gpus_of_their_own(const std::vector<VisibleGpus>& ranks,
                               const std::vector<std::vector<int>>& assigned);

}  // namespace stratagem::ranks
