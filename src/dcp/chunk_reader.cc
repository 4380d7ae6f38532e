// SPDX-License-Identifier: Apache-2.0
#include "dcp/chunk_reader.h"

#include <algorithm>
#include <utility>

#include "base/fail.h"
#include "dcp/named_replicas.h"
#include "dcp/torch_items.h"
#include "io/file_limit.h"
#include "remote/open_path.h"
#include "tensor/stored_copy.h"
#include "tensor/strided_copy.h"

namespace shardwright {
namespace {

std::size_t most_files_open() {
  constexpr std::uint64_t kReserved = 64;
  const std::uint64_t limit = raise_open_file_limit();
  return static_cast<std::size_t>(limit > 2 * kReserved ? (limit - kReserved) / 2 : kReserved);
}

Status check_inside(const Catalog& catalog, const StoredTensor& tensor, SourceFiles& files) {
  const std::uint32_t number = tensor.chunks.file(0);
  const ByteRange range = tensor.chunks.range(0);
  const auto file = files.get(number);
  if (!file) {
    return std::unexpected(Error(file.error()).within(translated("tensor {}", tensor.desc.name)));
  }
  const std::uint64_t size = (*file)->size();
  if (range.offset <= size && range.length <= size - range.offset) return {};
  return fail(Code::kShortRead,
              "{}: tensor {}: its bytes end at {}, but the file has {}; it was cut or does not "
              "belong to this metadata",
              catalog.files[number], tensor.desc.name, range.offset + range.length, size);
}

}  // namespace

ChunkReader::ChunkReader(std::unique_ptr<WatchedDirectory> directory, Catalog catalog)
    : directory_(std::move(directory)),
      files_(std::make_unique<SourceFiles>(*directory_, catalog.files, most_files_open())),
      located_(std::move(catalog)) {}

Result<ChunkReader> ChunkReader::open(std::string_view folder, const Catalog& catalog,
                                      std::span<const ChunkNumber> chunks) {
  Catalog wanted;
  wanted.files = catalog.files;
  for (const ChunkNumber& number : chunks) {
    const StoredTensor& tensor = catalog.tensors[number.tensor];
    StoredTensor one{tensor.desc, ChunkList(tensor.chunks.axes()), tensor.encoding};
    if (const StoredCopy* copy = copy_of_chunk(tensor, number.chunk)) one.desc.name = copy->name;
    one.chunks.push_back(tensor.chunks[number.chunk]);
    wanted.tensors.push_back(std::move(one));
  }
  auto directory = std::make_unique<WatchedDirectory>(SW_TRY(open_directory(std::string(folder))));
  ChunkReader reader(std::move(directory), std::move(wanted));
  for (const StoredTensor& tensor : reader.located_.tensors) {
    reader.stored_.push_back(tensor.chunks.file(0));
    SW_TRY(check_inside(reader.located_, tensor, *reader.files_));
  }
  // Notes are of tensors whose chunks say more together than each alone.
  static_cast<void>(SW_TRY(locate_items(reader.located_, *reader.files_)));
  return reader;
}

Status ChunkReader::read(std::size_t chunk, std::span<std::byte> bytes) {
  const StoredTensor& tensor = located_.tensors[chunk];
  const Chunk place = tensor.chunks[0];
  const int width = bytes_of(tensor.desc.dtype);
  const auto named = [&](Status status) {
    if (status) return status;
    Error error = std::move(status).error();
    if (error.message.find(tensor.desc.name) == std::string::npos) {
      error = std::move(error).within(translated("tensor {}", tensor.desc.name));
    }
    const std::string& file = located_.files[stored_[chunk]];
    if (error.message.find(file) == std::string::npos) error = std::move(error).within(file);
    return Status(std::unexpected(std::move(error)));
  };
  const std::int64_t wanted = SW_TRY(byte_count(place.box.shape, tensor.desc.dtype));
  if (std::cmp_not_equal(bytes.size(), wanted)) {
    return fail(Code::kOutOfBounds, "tensor {}: {} bytes of memory were given for {}, which has {}",
                tensor.desc.name, bytes.size(), to_string(place.box), wanted);
  }
  if (bytes.empty()) return {};
  const Dims dense = row_major_strides(place.box.shape);
  if (place.strides.empty() || place.strides == dense) {
    return named(files_->read_at(place.file, place.range.offset, bytes));
  }
  const std::int64_t span = span_bytes(place.box.shape, byte_strides(place.strides, width), width);
  std::vector<std::byte> stored(static_cast<std::size_t>(span));
  SW_TRY(named(files_->read_at(place.file, place.range.offset, stored)));
  strided_copy(
      collapse({place.box.shape, byte_strides(dense, width), byte_strides(place.strides, width)}),
      width, stored.data(), bytes.data());
  return {};
}

Status ChunkReader::finish() {
  constexpr std::uint64_t kPieceBytes = std::uint64_t{1} << 20;
  std::vector<std::byte> buffer;
  for (const FileRange& rest : files_->unread_rest(kPieceBytes)) {
    buffer.resize(static_cast<std::size_t>(rest.range.length));
    SW_TRY(files_->read_at(rest.file, rest.range.offset, buffer));
  }
  return files_->check_unchanged();
}

}  // namespace shardwright
