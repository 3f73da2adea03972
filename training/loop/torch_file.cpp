#include "training/loop/torch_file.h"

#include <caffe2/serialize/inline_container.h>
#include <fmt/format.h>
#include <torch/csrc/jit/serialization/pickler.h>

#include <exception>
#include <string>
#include <string_view>
#include <system_error>

#include "training/checkpoint/committed_file.h"
#include "training/checkpoint/pickle_names.h"

namespace stratagem::training {

void write_torch_file(const std::filesystem::path& path, const c10::IValue& value,
                      const ReadTensor& read) {
  std::string pickle;
  torch::jit::Pickler pickler(
      [&pickle](const char* bytes, std::size_t size) { pickle.append(bytes, size); }, nullptr,
      nullptr, nullptr, nullptr, /*tag_aggregates=*/false);
  pickler.protocol();
  pickler.pushIValue(value);
  pickler.stop();

  checkpoint::CommittedFile file(path);
  std::exception_ptr failure;
  {
    // The writer's destructor also writes and must not throw. So this function keeps the first
    // failure, treats all later bytes as written, and the file is removed.
    caffe2::serialize::PyTorchStreamWriter writer(
        [&file, &failure](const void* bytes, std::size_t size) {
          try {
            if (!failure) file.write(bytes, size);
          } catch (const std::system_error&) {
            failure = std::current_exception();
          }
          return size;
        });
    writer.writeRecord(pickle_record, pickle.data(), pickle.size());
    constexpr std::string_view little = "little";
    writer.writeRecord("byteorder", little.data(), little.size());
    std::size_t place = 0;
    for (const at::Tensor& pickled : pickler.tensorData()) {
      if (failure) break;
      const at::Tensor tensor = read(place, pickled);
      writer.writeRecord(fmt::format("data/{}", place), tensor.data_ptr(), tensor.nbytes());
      ++place;
    }
    writer.writeEndOfFile();
  }
  if (failure) std::rethrow_exception(failure);
  file.commit();
}

}  // namespace stratagem::training
