// SPDX-License-Identifier: Apache-2.0
#include "convert/golden.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "base/crc32.h"
#include "base/endian.h"
#include "codec/safetensors_header.h"
#include "dcp/dcp_metadata.h"
#include "dcp/torch_items.h"
#include "io/source_files.h"
#include "tensor/strided_copy.h"
#include "testing/golden_files.h"

namespace shardwright {
namespace {

Status read_chunk(const Chunk& chunk, SourceFiles& files, TensorBytes& tensor) {
  const int element_bytes = bytes_of(tensor.dtype);
  const Dims strides = chunk.strides.empty() ? row_major_strides(chunk.box.shape) : chunk.strides;
  const Dims source = byte_strides(strides, element_bytes);
  const Dims target = byte_strides(row_major_strides(tensor.shape), element_bytes);
  std::string bytes(static_cast<std::size_t>(chunk.range.length), '\0');
  SW_TRY(files.read_at(chunk.file, chunk.range.offset, std::as_writable_bytes(std::span(bytes))));
  std::int64_t first = 0;
  for (int axis = 0; axis < target.size(); ++axis) first += chunk.box.origin[axis] * target[axis];
  strided_copy({chunk.box.shape, target, source}, element_bytes,
               std::as_bytes(std::span(bytes)).data(),
               std::as_writable_bytes(std::span(tensor.bytes)).data() + first);
  return {};
}

}  // namespace

Result<TensorMap> read_all_tensors(const std::string& path) {
  Checkpoint checkpoint = SW_TRY(open_checkpoint(path));
  SourceFiles& files = *checkpoint.files;
  static_cast<void>(SW_TRY(locate_items(checkpoint.catalog, files)));
  TensorMap tensors;
  for (const StoredTensor& stored : checkpoint.catalog.tensors) {
    SW_TRY(check_coverage(stored));
    const std::int64_t bytes = SW_TRY(byte_count(stored.desc.shape, stored.desc.dtype));
    TensorBytes tensor{stored.desc.dtype, stored.desc.shape,
                       std::string(static_cast<std::size_t>(bytes), '\xee')};
    for (std::size_t i = 0; i < stored.chunks.size(); ++i) {
      SW_TRY(read_chunk(stored.chunks[i], files, tensor));
    }
    tensors.emplace(stored.desc.name, std::move(tensor));
  }
  return tensors;
}

void put_model(const std::string& folder, const std::string& config,
               const std::vector<TensorDesc>& tensors) {
  const SafetensorsLayout layout = layout_safetensors(tensors, {{"format", "pt"}}).value();
  std::string file(static_cast<std::size_t>(layout.file_bytes), '\0');
  file.replace(0, layout.header.size(), layout.header);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto first = static_cast<std::size_t>(layout.ranges[i].offset);
    std::uint64_t seed = std::hash<std::string>()(tensors[i].name);
    for (std::size_t k = 0; k < layout.ranges[i].length; ++k) {
      // No two pieces of a tensor may be alike, so it must not come round soon.
      seed = seed * 6'364'136'223'846'793'005U + 1'442'695'040'888'963'407U;
      file[first + k] = static_cast<char>(seed >> 58);
    }
  }
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/model.safetensors", std::ios::binary) << file;
  if (!config.empty()) std::ofstream(folder + "/config.json", std::ios::binary) << config;
}

std::string difference(const TensorMap& got, const TensorMap& expected) {
  std::string text;
  for (const auto& [name, tensor] : expected) {
    const auto found = got.find(name);
    if (found == got.end()) {
      text += name + " is missing; ";
    } else if (found->second.dtype != tensor.dtype || !(found->second.shape == tensor.shape)) {
      text += fmt::format("{} is {} {}, expected {} {}; ", name, torch_name(found->second.dtype),
                          to_string(found->second.shape), torch_name(tensor.dtype),
                          to_string(tensor.shape));
    } else if (found->second.bytes != tensor.bytes) {
      text += name + " differs; ";
    }
  }
  for (const auto& [name, tensor] : got) {
    if (!expected.contains(name)) text += name + " is too much; ";
  }
  return text;
}

void alter_sealed(const std::string& path, ByteRange record, std::uint64_t at, char byte) {
  std::string bytes = read_file(path);
  const auto sum = [&] {
    const std::string_view payload = std::string_view(bytes).substr(record.offset, record.length);
    std::string text;
    append_le(text, crc32(as_bytes(payload)));
    return text;
  };
  const std::string before = sum();
  bytes[record.offset + at] = byte;
  const std::string after = sum();
  for (std::size_t i = 0; (i = bytes.find(before, i)) != std::string::npos; i += after.size()) {
    const bool is_payload = i >= record.offset && i < record.offset + record.length;
    if (!is_payload) bytes.replace(i, after.size(), after);
  }
  std::filesystem::permissions(path, std::filesystem::perms::owner_write,
                               std::filesystem::perm_options::add);
  std::ofstream(path, std::ios::binary) << bytes;
}

void edit_metadata(const std::string& folder, const std::function<void(Catalog&)>& edit) {
  const auto directory = open_local_directory(folder).value();
  Catalog catalog = read_dcp_metadata(*directory->open(".metadata").value()).value().catalog;
  edit(catalog);
  std::filesystem::permissions(folder + "/.metadata", std::filesystem::perms::owner_write,
                               std::filesystem::perm_options::add);
  std::ofstream(folder + "/.metadata", std::ios::binary) << encode_dcp_metadata(catalog).value();
}

Result<PreparedConversion> convert_now(const ConvertRequest& request) {
  PreparedConversion conversion = SW_TRY(prepare_conversion(request));
  SW_TRY(run_conversion(conversion, {}));
  return conversion;
}

}  // namespace shardwright
