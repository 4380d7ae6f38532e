// SPDX-License-Identifier: Apache-2.0
#include "codec/torch_layout.h"

#include <algorithm>
#include <functional>
#include <unordered_set>

#include "base/crc32.h"
#include "base/endian.h"
#include "base/fail.h"
#include "codec/torch_dtype.h"

namespace shardwright {
namespace {

constexpr std::string_view kVersion = "3\n";
constexpr std::size_t kSerializationIdBytes = 40;
constexpr std::uint32_t kRecordAlignment = 64;

/// Writes opcodes of pickle protocol 2 as CPython's pickler does for torch.save.
class Protocol2Stream {
 public:
  Protocol2Stream() { out_ = "\x80\x02"; }
  void raw(std::string_view opcodes) { out_ += opcodes; }
  /// BINPUT of the next memo slot; one tensor needs fewer than 256.
  void put() {
    out_ += 'q';
    out_ += static_cast<char>(slot_++);
  }
  void global(std::string_view module, std::string_view name) {
    out_ += fmt::format("c{}\n{}\n", module, name);
    put();
  }
  void text(std::string_view text) {
    out_ += 'X';
    append_le(out_, static_cast<std::uint32_t>(text.size()));
    out_ += text;
    put();
  }
  /// REQUIRES: value >= 0.
  void integer(std::int64_t value) {
    if (value < 0x100) {
      out_ += 'K';
      out_ += static_cast<char>(value);
    } else if (value < 0x10000) {
      out_ += 'M';
      append_le(out_, static_cast<std::uint16_t>(value));
    } else if (value <= 0x7fffffff) {
      out_ += 'J';
      append_le(out_, static_cast<std::int32_t>(value));
    } else {
      std::string digits;
      append_le(digits, value);
      // The sign bit must stay clear, so a byte of zero may be kept.
      while (digits.back() == 0 && (digits[digits.size() - 2] & 0x80) == 0) digits.pop_back();
      out_ += "\x8a";
      out_ += static_cast<char>(digits.size());
      out_ += digits;
    }
  }
  void tuple(const Dims& values) {
    if (values.empty()) return raw(")");
    if (values.size() > 3) raw("(");
    for (const std::int64_t value : values) integer(value);
    raw(values.size() > 3 ? "t"
                          : std::string_view("\x85\x86\x87")
                                .substr(static_cast<std::size_t>(values.size() - 1), 1));
    put();
  }
  [[nodiscard]] std::string finish() && {
    out_ += '.';
    return std::move(out_);
  }

 private:
  std::string out_;
  int slot_ = 0;
};

/// boost's way of mixing hashes, as torch has it.
std::uint64_t hash_combine(std::uint64_t seed, std::uint64_t value) {
  return seed ^ (value + 0x9e3779b9 + (seed << 6) + (seed >> 2));
}

}  // namespace

std::string torch_tensor_pickle(DType dtype, const Dims& shape) {
  const std::string_view storage_class = torch_storage_class(dtype);
  const bool untyped = storage_class.empty();
  std::int64_t storage_size = untyped ? bytes_of(dtype) : 1;
  for (const std::int64_t extent : shape) storage_size *= extent;

  Protocol2Stream stream;
  stream.global("torch._utils", untyped ? "_rebuild_tensor_v3" : "_rebuild_tensor_v2");
  stream.raw("((");
  stream.text("storage");
  stream.global(untyped ? "torch.storage" : "torch", untyped ? "UntypedStorage" : storage_class);
  stream.text("0");
  stream.text("cpu");
  stream.integer(storage_size);
  stream.raw("t");
  stream.put();
  stream.raw("QK");
  stream.raw(std::string_view("\0", 1));  // storage offset 0
  stream.tuple(shape);
  stream.tuple(row_major_strides(shape));
  stream.raw("\x89");  // requires_grad: False
  stream.global("collections", "OrderedDict");
  stream.raw(")R");
  stream.put();
  if (untyped) stream.global("torch", torch_name(dtype));
  stream.raw("t");
  stream.put();
  stream.raw("R");
  stream.put();
  return std::move(stream).finish();
}

Result<TorchLayout> TorchLayout::make(std::string pickle,
                                      std::span<const std::uint64_t> storage_bytes,
                                      const TorchLayoutOptions& options) {
  std::vector<zip::Record> records;
  const auto add = [&](std::string_view name, std::uint64_t bytes, std::uint32_t alignment) {
    records.push_back({fmt::format("{}/{}", options.prefix, name), bytes, alignment});
  };
  std::vector<std::string> contents;
  // Loaders compute places from `.storage_alignment` as if it held for every record.
  const std::uint32_t small_alignment =
      options.format_records ? options.storage_alignment : kRecordAlignment;
  const auto add_small = [&](std::string_view name, std::string bytes) {
    add(name, bytes.size(), small_alignment);
    contents.push_back(std::move(bytes));
  };
  add_small("data.pkl", std::move(pickle));
  if (options.format_records) {
    add_small(".format_version", "1");
    add_small(".storage_alignment", std::to_string(options.storage_alignment));
  }
  add_small("byteorder", "little");
  for (std::size_t index = 0; index < storage_bytes.size(); ++index) {
    add(fmt::format("data/{}", index), storage_bytes[index], options.storage_alignment);
  }
  add("version", kVersion.size(), small_alignment);
  if (options.serialization_id) {
    add(".data/serialization_id", kSerializationIdBytes, small_alignment);
  }
  TorchLayout layout(SW_TRY(zip::Layout::make(std::move(records), options.base)));
  layout.prefix_bytes_ = options.prefix.size() + 1;
  layout.first_storage_ = contents.size();
  layout.storage_count_ = storage_bytes.size();
  layout.has_serialization_id_ = options.serialization_id;
  for (const std::string& bytes : contents) layout.crcs_.push_back(crc32(as_bytes(bytes)));
  layout.contents_ = std::move(contents);
  return layout;
}

void TorchLayout::append_record(std::size_t record, std::string_view contents,
                                std::string& out) const {
  layout_.append_header(record, out);
  out += contents;
  layout_.append_descriptor(record, crc32(as_bytes(contents)), out);
}

std::string TorchLayout::head() const {
  std::string out;
  for (std::size_t record = 0; record < first_storage_; ++record) {
    append_record(record, contents_[record], out);
  }
  if (storage_count_ > 0) layout_.append_header(first_storage_, out);
  return out;
}

std::string TorchLayout::between(std::size_t index, std::uint32_t crc) const {
  std::string out;
  layout_.append_descriptor(first_storage_ + index, crc, out);
  layout_.append_header(first_storage_ + index + 1, out);
  return out;
}

std::string TorchLayout::tail(std::span<const std::uint32_t> storage_crcs) const {
  std::vector<std::uint32_t> crcs = crcs_;
  crcs.insert(crcs.end(), storage_crcs.begin(), storage_crcs.end());
  std::string out;
  std::size_t record = first_storage_ + storage_count_;
  if (storage_count_ > 0) layout_.append_descriptor(record - 1, crcs.back(), out);
  append_record(record, kVersion, out);
  crcs.push_back(crc32(as_bytes(kVersion)));
  if (has_serialization_id_) {
    const std::string id = serialization_id(crcs);
    append_record(++record, id, out);
    crcs.push_back(crc32(as_bytes(id)));
  }
  layout_.append_directory(crcs, out);
  return out;
}

std::string TorchLayout::serialization_id(std::span<const std::uint32_t> crcs) const {
  // torch hashes the names in the order of a std::unordered_set, so its id depends on the standard
  // library; with GNU's, which torch's wheels are built with, this is the same number.
  std::unordered_set<std::string> names;
  std::uint64_t crc_hash = 0;
  for (std::size_t record = 0; record < crcs.size(); ++record) {
    names.insert(layout_.records()[record].name.substr(prefix_bytes_));
    // Empty records never reach torch's checksum.
    if (layout_.records()[record].bytes > 0) crc_hash = hash_combine(crc_hash, crcs[record]);
  }
  std::uint64_t name_hash = 0;
  for (const std::string& name : names)
    name_hash = hash_combine(name_hash, std::hash<std::string>{}(name));
  return fmt::format("{:020}{:020}", name_hash, crc_hash);
}

Result<std::string> encode_torch_object(std::string pickle, const TorchLayoutOptions& options) {
  const TorchLayout layout = SW_TRY(TorchLayout::make(std::move(pickle), {}, options));
  return layout.head() + layout.tail({});
}

}  // namespace shardwright
