// Assigns GPUs to the devices of a job, from the GPUs that every rank sees.
//
// Ranks of one host may see all of its GPUs, or a launcher's mask may leave each rank its own GPUs;
// the GPUs of another host are different ones, whatever their numbers. So host and identity
// identify a GPU, and a rank uses its own number for it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stratagem::ranks {

/// The GPUs that one rank sees.
struct VisibleGpus {
  std::string host;
  std::vector<std::string> identities;  // [number]: unique among the host's GPUs
};

/// Returns [rank][device]: the number of the GPU. Each rank has `devices_per_rank`: the first ones
/// that it sees and that no earlier rank has, or those of `device_ids`, one for each of the job's
/// devices. Throws std::invalid_argument, on every rank, in one line with the rank that lacks a
/// GPU.
std::vector<std::vector<int>> assign_gpus(const std::vector<VisibleGpus>& ranks,
                                          std::int64_t devices_per_rank,
                                          const std::vector<std::int64_t>& device_ids);

/// Throws std::invalid_argument, on every rank, if two ranks drive one GPU, which NCCL rejects
/// ("Duplicate GPU detected"). `assigned` is the result of assign_gpus().
void require_gpus_of_their_own(const std::vector<VisibleGpus>& ranks,
                               const std::vector<std::vector<int>>& assigned);

}  // namespace stratagem::ranks
