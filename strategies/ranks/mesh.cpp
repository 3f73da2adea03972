#include "strategies/ranks/mesh.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "strategies/runtime/parse.h"

namespace stratagem::ranks {
namespace {

constexpr std::array<std::string_view, 4> names = {"data", "pipeline", "context", "tensor"};

MeshDimension parse_dimension(std::string_view part, std::string_view whole) {
  const auto refuse = [&] {
    return std::invalid_argument(
        fmt::format("--mesh {}: \"{}\" is not NAME=SIZE; expected a size of 1 or more, such as "
                    "data=2/pipeline=2",
                    whole, part));
  };
  const auto equals = part.find('=');
  if (equals == std::string_view::npos) throw refuse();
  const int size = runtime::number_in<int>(part.substr(equals + 1)).value_or(0);
  if (size < 1) throw refuse();
  return {std::string(part.substr(0, equals)), size};
}

std::string text_of(const std::vector<MeshDimension>& dimensions) {
  std::string text;
  for (const auto& [name, size] : dimensions) {
    text += fmt::format("{}{}={}", text.empty() ? "" : "/", name, size);
  }
  return text;
}

}  // namespace

Mesh::Mesh(const std::vector<MeshDimension>& dimensions) {
  for (const std::string_view name : names) dimensions_.push_back({std::string(name), 1});
  std::vector<bool> seen(dimensions_.size(), false);
  std::vector<MeshDimension> larger;
  for (const MeshDimension& each : dimensions) {
    const std::size_t index = index_of(each.name);
    if (seen[index]) {
      throw std::invalid_argument(
          fmt::format("--mesh: {} appears twice; give each dimension once", each.name));
    }
    if (each.size < 1) {
      throw std::invalid_argument(fmt::format("--mesh: {}={} is below 1", each.name, each.size));
    }
    seen[index] = true;
    dimensions_[index].size = each.size;
    if (each.size > 1) larger.push_back(each);
  }
  // Dimensions of size 1 keep their place.
  auto next = larger.begin();
  for (MeshDimension& each : dimensions_) {
    if (each.size > 1) each = *next++;
  }
}

int Mesh::size() const {
  int product = 1;
  for (const auto& dimension : dimensions_) product *= dimension.size;
  return product;
}

int Mesh::size(std::string_view dimension) const { return dimensions_[index_of(dimension)].size; }

int Mesh::coordinate(int position, std::string_view dimension) const {
  require_position(position);
  const std::size_t index = index_of(dimension);
  return position / stride(index) % dimensions_[index].size;
}

std::vector<int> Mesh::group(int position,
                             std::initializer_list<std::string_view> dimensions) const {
  require_position(position);
  std::vector<int> positions = {position};
  for (const std::string_view dimension : dimensions) {
    const std::size_t index = index_of(dimension);
    std::vector<int> along;
    for (const int each : positions) {
      const int first = each - coordinate(each, dimension) * stride(index);
      for (int place = 0; place < dimensions_[index].size; ++place) {
        along.push_back(first + place * stride(index));
      }
    }
    positions = std::move(along);
  }
  std::ranges::sort(positions);
  return positions;
}

std::string Mesh::to_string() const {
  std::vector<MeshDimension> shown = dimensions_;
  std::erase_if(shown,
                [](const MeshDimension& each) { return each.name == "context" && each.size == 1; });
  return text_of(shown);
}

std::string Mesh::shortest() const {
  std::vector<MeshDimension> larger;
  std::ranges::copy_if(dimensions_, std::back_inserter(larger),
                       [](const MeshDimension& each) { return each.size > 1; });
  return text_of(larger.empty() ? std::vector<MeshDimension>{dimensions_.front()} : larger);
}

std::size_t Mesh::index_of(std::string_view dimension) const {
  const auto found = std::ranges::find(dimensions_, dimension, &MeshDimension::name);
  if (found == dimensions_.end()) {
    throw std::invalid_argument(fmt::format(
        "--mesh: unknown dimension \"{}\"; use data, pipeline, context or tensor", dimension));
  }
  return static_cast<std::size_t>(found - dimensions_.begin());
}

int Mesh::stride(std::size_t dimension) const {
  int product = 1;
  for (std::size_t index = dimension + 1; index < dimensions_.size(); ++index) {
    product *= dimensions_[index].size;
  }
  return product;
}

void Mesh::require_position(int position) const {
  if (position >= 0 && position < size()) return;
  throw std::invalid_argument(
      fmt::format("position {} does not exist in the mesh {}", position, to_string()));
}

Mesh parse_mesh(std::string_view text) {
  std::vector<MeshDimension> dimensions;
  for (const auto part : runtime::split(text, '/')) {
    dimensions.push_back(parse_dimension(part, text));
  }
  return Mesh(dimensions);
}

}  // namespace stratagem::ranks
