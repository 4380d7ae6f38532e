// SPDX-License-Identifier: Apache-2.0
#include "codec/torch_stream.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/checked.h"
#include "base/endian.h"
#include "base/fail.h"
#include "codec/pickle_decode.h"
#include "codec/torch_dtype.h"
#include "codec/torch_record.h"
#include "codec/torch_tensor.h"

namespace shardwright {
namespace {

using namespace std::string_view_literals;
using pickle::Kind;
using pickle::Value;

/// 0x1950a86a20f9469cfc6c as a pickle's LONG1, which begins the first of the pickles behind a
/// header of a few bytes that depends on the protocol.
constexpr std::string_view kStreamMagic = "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"sv;
constexpr std::size_t kMagicWithin = 32;
constexpr std::int64_t kProtocol = 1001;
constexpr std::uint64_t kFirstWindow = std::uint64_t{1} << 20;

std::unexpected<Error> refuse_stream(const std::string& name, std::string_view found,
                                     std::string_view expected) {
  return fail(Code::kTorchArchive, "{}: found {}, expected {}", name, found, expected);
}

// The five pickles and where they end.
struct Pickles {
  std::vector<pickle::Prefix> values;
  std::uint64_t object_begin = 0;
  std::uint64_t object_end = 0;
  std::uint64_t end = 0;
};

Result<Pickles> decode_all(std::span<const std::byte> bytes, const pickle::Limits& limits) {
  constexpr std::size_t kCount = 5;
  constexpr std::size_t kObject = 3;
  Pickles pickles;
  while (pickles.values.size() < kCount) {
    pickle::Prefix next =
        SW_TRY(pickle::decode_prefix(bytes.subspan(static_cast<std::size_t>(pickles.end)), limits));
    if (pickles.values.size() == kObject) pickles.object_begin = pickles.end;
    pickles.end += next.consumed;
    if (pickles.values.size() == kObject) pickles.object_end = pickles.end;
    pickles.values.push_back(std::move(next));
  }
  return pickles;
}

// Bytes of one element of the storage that a persistent id names; 0 for one of unknown type.
std::int64_t element_bytes(Value storage_class) {
  if (storage_class.name() == "UntypedStorage") return 1;
  const std::optional<DType> dtype = dtype_of_storage_class(storage_class.name());
  return dtype ? bytes_of(*dtype) : 0;
}

// The size of each storage that the object names, by key. A persistent id may occur many times.
Result<std::map<std::string, std::uint64_t, std::less<>>> storage_sizes(
    const pickle::Document& document, const std::string& name) {
  std::map<std::string, std::uint64_t, std::less<>> sizes;
  for (std::uint32_t node = 0; node < document.node_count(); ++node) {
    const Value value = document.at(node);
    if (!value.is(Kind::kPersistentId)) continue;
    const Value id = value[0];
    const auto key = id[2].as_string();
    const auto count = id[4].as_int();
    if (!id.is(Kind::kTuple) || id[0].as_string() != "storage" || !key || !count || *count < 0) {
      continue;  // modules' source code; asking for such a tensor is an error
    }
    if (id.size() > 5 && !id[5].is_none()) {
      return refuse_stream(name, "a storage that is a view of another",
                           "whole ones; save it with 1.6");
    }
    const auto bytes = checked_mul(*count, element_bytes(id[1]));
    if (!bytes) return refuse_stream(name, "a storage size beyond int64", "one that can exist");
    sizes[std::string(*key)] = static_cast<std::uint64_t>(*bytes);
  }
  return sizes;
}

}  // namespace

bool TorchStream::begins(std::string_view head) {
  return head.starts_with('\x80') &&
         head.substr(0, kMagicWithin).find(kStreamMagic) != std::string_view::npos;
}

Result<TorchStream> TorchStream::open(const ReadableFile& file, const pickle::Limits& given) {
  pickle::Limits limits = given;
  if (limits.file_bytes == 0) limits.file_bytes = file.size();
  std::string bytes;
  // The pickles' size is written nowhere: read on until all of them are there.
  for (std::uint64_t window = kFirstWindow;; window *= 2) {
    bytes.resize(static_cast<std::size_t>(std::min({window, file.size(), limits.bytes})));
    SW_TRY(file.read_at(0, std::as_writable_bytes(std::span(bytes))));
    Result<Pickles> pickles = decode_all(as_bytes(bytes), limits);
    if (!pickles) {
      if (bytes.size() == window) continue;
      return std::unexpected(std::move(pickles).error().within(file.name()));
    }
    if (pickles->values[1].document.root().as_int() != kProtocol) {
      return refuse_stream(file.name(), "another protocol", "1001");
    }
    const Value machine = pickles->values[2].document.root();
    if (machine.find("little_endian").as_bool() != true) {
      return refuse_stream(file.name(), "a file of a big-endian machine", "a little-endian one");
    }
    TorchStream stream;
    stream.name_ = file.name();
    stream.pickle_ =
        bytes.substr(static_cast<std::size_t>(pickles->object_begin),
                     static_cast<std::size_t>(pickles->object_end - pickles->object_begin));
    stream.document_ = std::make_unique<pickle::Document>(std::move(pickles->values[3].document));
    SW_TRY(stream.read_keys(pickles->values[4].document.root(), file, pickles->end));
    return stream;
  }
}

Status TorchStream::read_keys(Value keys, const ReadableFile& file, std::uint64_t position) {
  if (!keys.is(Kind::kList))
    return refuse_stream(name_, "no list of keys", "one behind the object");
  const auto sizes = SW_TRY(storage_sizes(*document_, name_));
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto key = keys[i].as_string();
    const auto size = key ? sizes.find(*key) : sizes.end();
    if (size == sizes.end()) {
      return refuse_stream(name_, "a storage that no tensor has", "one for each key");
    }
    std::array<std::byte, 8> count;
    SW_TRY(file.read_at(position, count));
    position += count.size();
    if (size->second > file.size() - std::min(position, file.size())) {
      return refuse_stream(name_, translated("storage {} to end behind the file", *key),
                           "all of it");
    }
    // The count is of elements, whose size the object told: it must be consistent with that.
    const auto elements = static_cast<std::uint64_t>(load_le<std::int64_t>(count.data()));
    const bool agrees = elements == 0
                            ? size->second == 0
                            : size->second % elements == 0 && size->second / elements <= 16;
    if (!agrees || !storages_.emplace(*key, ByteRange{position, size->second}).second) {
      return refuse_stream(name_, translated("storage {} of {} elements", *key, elements),
                           translated("{} bytes, once", size->second));
    }
    position += size->second;
  }
  return {};
}

Result<LocatedTensor> TorchStream::locate(Value tensor) const {
  Result<TorchTensor> recipe = read_torch_tensor(tensor);
  if (!recipe) return std::unexpected(std::move(recipe).error().within(name_));
  const auto storage = storages_.find(recipe->storage_key);
  if (storage == storages_.end()) {
    return refuse_stream(name_, translated("no storage {}", recipe->storage_key),
                         "one for each tensor");
  }
  if (storage->second.length != recipe->storage_bytes) {
    return refuse_stream(name_, translated("storage {} of another size", recipe->storage_key),
                         fmt::format("{} bytes", recipe->storage_bytes));
  }
  return place_in_storage(*recipe, storage->second);
}

}  // namespace shardwright
