// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "base/endian.h"
#include "base/fail.h"
#include "codec/json_text.h"
#include "codec/pickle_text.h"
#include "codec/safetensors_dtype.h"
#include "codec/safetensors_header.h"

namespace shardwright {
namespace {

/// A tensor as the header shows it.
struct HeaderRow {
  const TensorDesc* desc = nullptr;
  SafetensorsType type;
  std::uint64_t bytes = 0;
};

Result<HeaderRow> make_row(const TensorDesc& desc) {
  const auto type = safetensors_type(desc.dtype);
  if (!type) {
    return fail(Code::kSafetensorsDtype,
                "tensor {}: found {}, expected a dtype that safetensors has; leave the tensor out "
                "or store it as raw bytes",
                desc.name, torch_name(desc.dtype));
  }
  if (type->values_per_element > 1 && desc.shape.empty()) {
    return fail(Code::kSafetensorsDtype, "tensor {}: found a single {}, expected at least one axis",
                desc.name, torch_name(desc.dtype));
  }
  const bool control = std::ranges::any_of(
      desc.name, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
  if (control || desc.name == "__metadata__" || !pickle::is_utf8(desc.name)) {
    return fail(Code::kUsage, "tensor name {}: expected UTF-8 without control characters",
                json_string(desc.name));
  }
  return HeaderRow{&desc, *type,
                   static_cast<std::uint64_t>(SW_TRY(byte_count(desc.shape, desc.dtype)))};
}

void append_entry(const HeaderRow& row, std::uint64_t begin, std::string& out) {
  out +=
      fmt::format("{}:{{\"dtype\":\"{}\",\"shape\":[", json_string(row.desc->name), row.type.name);
  for (int axis = 0; axis < row.desc->shape.size(); ++axis) {
    const bool last = axis + 1 == row.desc->shape.size();
    const std::int64_t extent = row.desc->shape[axis] * (last ? row.type.values_per_element : 1);
    out += fmt::format("{}{}", axis > 0 ? "," : "", extent);
  }
  out += fmt::format("],\"data_offsets\":[{},{}]}}", begin, begin + row.bytes);
}

std::string metadata_text(const SafetensorsMetadata& metadata) {
  std::string out;
  for (const auto& [key, value] : metadata) {
    out += fmt::format("{}{}:{}", out.empty() ? "" : ",", json_string(key), json_string(value));
  }
  return "\"__metadata__\":{" + out + "}";
}

}  // namespace

Result<SafetensorsLayout> layout_safetensors(std::span<const TensorDesc> tensors,
                                             const SafetensorsMetadata& metadata,
                                             std::uint64_t data_alignment) {
  if (data_alignment == 0) return fail(Code::kUsage, "found a data alignment of 0, expected 8");
  std::vector<HeaderRow> rows;
  rows.reserve(tensors.size());
  for (const TensorDesc& desc : tensors) rows.push_back(SW_TRY(make_row(desc)));
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    if (rows[a].type.rank != rows[b].type.rank) return rows[a].type.rank > rows[b].type.rank;
    return rows[a].desc->name < rows[b].desc->name;
  });

  std::vector<std::string_view> names;
  for (const HeaderRow& row : rows) names.push_back(row.desc->name);
  std::ranges::sort(names);
  const auto twin = std::ranges::adjacent_find(names);
  if (twin != names.end()) {
    return fail(Code::kDuplicateName, "tensor {}: the file would hold it twice", *twin);
  }

  SafetensorsLayout layout;
  layout.ranges.resize(rows.size());
  std::string json = "{";
  if (!metadata.empty()) json += metadata_text(metadata);
  std::uint64_t position = 0;
  for (const std::size_t index : order) {
    const auto end = checked_add(position, rows[index].bytes);
    if (!end || json.size() > kMaxHeaderBytes) {
      return fail(Code::kLimit,
                  "tensor {}: found a header beyond {} bytes or data beyond 2^64, "
                  "expected less in one file",
                  rows[index].desc->name, kMaxHeaderBytes);
    }
    if (json.size() > 1) json += ',';
    append_entry(rows[index], position, json);
    layout.ranges[index] = {position, rows[index].bytes};
    position = *end;
  }
  json += '}';
  const std::uint64_t padded =
      round_up(sizeof(std::uint64_t) + json.size(), data_alignment) - sizeof(std::uint64_t);
  if (padded > kMaxHeaderBytes) {
    return fail(Code::kLimit,
                "safetensors header: found {} bytes, expected at most {}; use more files", padded,
                kMaxHeaderBytes);
  }
  json.resize(padded, ' ');
  append_le(layout.header, padded);
  layout.header += json;
  for (ByteRange& range : layout.ranges) range.offset += layout.header.size();
  layout.file_bytes = layout.header.size() + position;
  return layout;
}

}  // namespace shardwright
