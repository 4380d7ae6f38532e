// SPDX-License-Identifier: Apache-2.0
#include "convert/legacy_golden.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/crc32.h"
#include "base/endian.h"
#include "base/text.h"
#include "codec/torch_layout.h"
#include "codec/zstd_stream.h"
#include "io/memory_directory.h"
#include "tensor/strided_copy.h"
#include "testing/golden_files.h"

namespace shardwright {
namespace {

// `name[1:2,0:64]` of the truth.
std::string piece_of(const TensorMap& truth, const std::string& text) {
  const std::size_t bracket = text.find('[');
  const TensorBytes& tensor = truth.at(text.substr(0, bracket));
  std::string_view numbers = std::string_view(text).substr(bracket);
  Box box;
  while (numbers.size() > 1) {
    numbers.remove_prefix(1);
    const std::int64_t begin = take_number(numbers).value();
    numbers.remove_prefix(1);
    box.origin.push_back(begin);
    box.shape.push_back(take_number(numbers).value() - begin);
  }
  const int element = bytes_of(tensor.dtype);
  Dims source = row_major_strides(tensor.shape);
  Dims target = row_major_strides(box.shape);
  std::int64_t first = 0;
  for (int axis = 0; axis < box.axes(); ++axis) {
    source[axis] *= element;
    target[axis] *= element;
    first += box.origin[axis] * source[axis];
  }
  std::string bytes(static_cast<std::size_t>(box.volume() * element), '\0');
  strided_copy({box.shape, target, source}, element,
               std::as_bytes(std::span(tensor.bytes)).data() + first,
               std::as_writable_bytes(std::span(bytes)).data());
  return bytes;
}

std::string storage_of(const TensorMap& truth, const std::string& line) {
  std::istringstream words(line);
  std::string bytes;
  for (std::string word; words >> word;) {
    if (word.starts_with("zeros:")) {
      bytes.append(std::stoul(word.substr(6)), '\0');
    } else if (word.starts_with("hex:")) {
      for (std::size_t i = 4; i < word.size(); i += 2) {
        bytes += static_cast<char>(std::stoi(word.substr(i, 2), nullptr, 16));
      }
    } else {
      bytes += piece_of(truth, word);
    }
  }
  return bytes;
}

std::string archive_of(const std::string& pickle, const std::vector<std::string>& storages,
                       const std::string& prefix) {
  std::vector<std::uint64_t> sizes;
  for (const std::string& storage : storages) sizes.push_back(storage.size());
  TorchLayoutOptions options;
  options.prefix = prefix;
  const TorchLayout layout = TorchLayout::make(pickle, sizes, options).value();
  std::string bytes = layout.head();
  std::vector<std::uint32_t> crcs;
  for (std::size_t i = 0; i < storages.size(); ++i) {
    bytes += storages[i];
    crcs.push_back(crc32(as_bytes(storages[i])));
    if (i + 1 < storages.size()) bytes += layout.between(i, crcs.back());
  }
  return bytes + layout.tail(crcs);
}

}  // namespace

PackedLegacy read_packed_legacy(const std::string& golden) {
  const auto file = make_memory_file(golden, read_golden(golden));
  std::string bytes;
  const auto append = [&](std::span<const std::byte> piece) -> Status {
    bytes.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    return {};
  };
  constexpr std::uint64_t kMost = std::uint64_t{4} << 20;
  decode_zstd(*file, {0, file->size()}, kMost, 1, append).value();
  PackedLegacy packed;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t space = bytes.find(' ', at);
    const std::size_t line = bytes.find('\n', at);
    const std::size_t length = std::stoul(bytes.substr(space + 1, line - space - 1));
    packed.emplace(bytes.substr(at, space - at), bytes.substr(line + 1, length));
    at = line + 1 + length;
  }
  return packed;
}

void unpack_legacy(const PackedLegacy& packed, const TensorMap& truth, const std::string& folder) {
  constexpr std::string_view kPickle = ".pkl";
  for (const auto& [name, contents] : packed) {
    const bool is_pickle = name.ends_with(kPickle);
    const std::string stem = name.substr(0, name.size() - kPickle.size());
    if (name.ends_with(".storages")) continue;
    const std::filesystem::path path = folder + "/" + (is_pickle ? stem + ".pt" : name);
    std::filesystem::create_directories(path.parent_path());
    std::string bytes = contents;
    if (is_pickle) {
      std::istringstream lines(packed.at(stem + ".storages"));
      std::vector<std::string> storages;
      for (std::string line; std::getline(lines, line);) {
        storages.push_back(storage_of(truth, line));
      }
      bytes = archive_of(contents, storages, path.stem());
    }
    std::ofstream(path, std::ios::binary) << bytes;
  }
}

void trim_vocabulary(TensorMap& a, TensorMap& b) {
  for (auto& [name, tensor] : a) {
    const auto other = b.find(name);
    const bool is_vocabulary =
        name.ends_with("word_embeddings.weight") || name.ends_with("output_layer.weight");
    if (!is_vocabulary || other == b.end()) continue;
    const std::size_t bytes = std::min(tensor.bytes.size(), other->second.bytes.size());
    const std::int64_t rows = std::min(tensor.shape[0], other->second.shape[0]);
    for (TensorBytes* each : {&tensor, &other->second}) {
      each->bytes.resize(bytes);
      each->shape[0] = rows;
    }
  }
}

}  // namespace shardwright
