// One row's configuration: what is trained, how, on what, and how it is measured.
//
// A plain struct. bench/options.h holds the table that names every field for the command line,
// the config file, the results and the help; a grid is a product of option values (bench/grid.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stratagem::bench {

struct Config {
  // what and where
  std::string strategy = "single";
  std::string model = "resnet50";
  std::string device = "cpu";            // cpu, cuda
  std::int64_t devices = 2;              // the job's total
  std::vector<std::int64_t> device_ids;  // empty: 0 .. devices-1; an id twice is shared
  std::int64_t cores_per_device = 1;     // CPU only
  bool oversubscribe = false;
  std::int64_t ranks = 0;          // processes; 0: as the strategy places them
  std::string mesh = "auto";       // data=2/pipeline=2
  std::string backend = "auto";    // auto, gloo, nccl
  std::string interface = "auto";  // of the network; auto: GLOO_SOCKET_IFNAME, else loopback
  double timeout = 120;            // seconds: each action and collective, and waiting for cores

  // the work and how it is cut
  std::int64_t global_batch_size = 48;
  std::int64_t split_size = 12;  // micro-batch size
  std::string schedule = "1f1b";
  std::int64_t virtual_stages = 2;  // of a device, under an interleaved schedule
  std::vector<std::string> cut;     // names of the layers that begin stages 1, 2, ...
  std::string partition = "auto";   // auto, tutorial, flops, balanced
  std::int64_t accumulation_steps = 1;
  double bucket_mb = 25;             // MiB of gradients in one all-reduce
  bool overlap = true;               // all-reduce beside the backward pass
  std::string compression = "none";  // of gradients on their way: none, fp16
  bool async_reduce = true;          // input gradients travel beside the weights' gradients
  std::int64_t image_size = 128;     // 0 for models without images
  std::int64_t sequence_length = 0;  // tokens; 0 for models without
  std::string data = "random";       // of tokens: random, text

  // numerics
  std::string dtype = "float32";
  bool tf32 = false;                            // CUDA only
  bool cudnn_benchmark = false;                 // CUDA only
  std::string memory_format = "channels_last";  // channels_last, contiguous

  // training
  std::string loss = "mse";  // mse, cross_entropy
  std::string optimizer = "sgd";
  double learning_rate = 0.001;
  double momentum = 0;
  double weight_decay = 0;
  std::int64_t seed = 1;

  // measurement
  std::int64_t steps = 2;
  std::int64_t repetitions = 3;     // rounds
  std::string order = "random";     // random, block
  std::string protocol = "steady";  // steady, isolated, tutorial
  std::string inputs = "host";      // host, device
  bool verify = true;
  std::string straggler = "none";  // RANK:MS: a rank that is made late on purpose, each step

  bool operator==(const Config&) const = default;
};

}  // namespace stratagem::bench
