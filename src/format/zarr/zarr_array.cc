// SPDX-License-Identifier: Apache-2.0
#include "format/zarr/zarr_array.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/checked.h"
#include "base/fail.h"
#include "base/text.h"
#include "codec/json_text.h"

namespace shardwright {
namespace {

// numpy's words, for little-endian elements. Megatron-Core writes tensorstore's `bfloat16` over
// numpy's word for two opaque bytes.
constexpr std::array<std::pair<std::string_view, DType>, 14> kTypes = {{
    {"|b1", DType::kBool},
    {"|u1", DType::kU8},
    {"|i1", DType::kI8},
    {"<u2", DType::kU16},
    {"<i2", DType::kI16},
    {"<u4", DType::kU32},
    {"<i4", DType::kI32},
    {"<u8", DType::kU64},
    {"<i8", DType::kI64},
    {"<f2", DType::kF16},
    {"bfloat16", DType::kBF16},
    {"<f4", DType::kF32},
    {"<f8", DType::kF64},
    {"<c8", DType::kC64},
}};

Result<DType> type_of(const nlohmann::json& value, std::string_view name) {
  const auto found = std::ranges::find_if(kTypes, [&](const auto& type) {
    return value.is_string() && value.get_ref<const std::string&>() == type.first;
  });
  if (found != kTypes.end()) return found->second;
  return fail(Code::kUnsupportedFormat, "{}: found the dtype {}, which no tensor has", name,
              value.dump());
}

Result<Dims> dims_of(const nlohmann::json& document, std::string_view key, std::int64_t least,
                     std::string_view name) {
  const auto found = document.find(key);
  Dims dims;
  if (found == document.end() || !found->is_array()) {
    return fail(Code::kJsonCorrupt, "{}: {} is no list", name, key);
  }
  if (found->size() > static_cast<std::size_t>(kMaxAxes)) {
    return fail(Code::kLimit, "{}: {} axes, limit {}", name, found->size(), kMaxAxes);
  }
  for (const nlohmann::json& extent : *found) {
    const bool is_whole = extent.is_number_integer() && extent.get<std::int64_t>() >= least;
    if (!is_whole) {
      return fail(Code::kJsonCorrupt, "{}: {}: found {}, expected a number from {}", name, key,
                  extent.dump(), least);
    }
    dims.push_back(extent.get<std::int64_t>());
  }
  return dims;
}

// What would have to be undone before an element is where its place says.
Status check_plain(const nlohmann::json& document, std::string_view name) {
  const auto said = [&](std::string_view key) {
    const auto found = document.find(key);
    return found == document.end() ? nlohmann::json() : *found;
  };
  if (said("zarr_format") != 2) {
    return fail(Code::kUnsupportedFormat, "{}: found zarr_format {}, expected 2", name,
                said("zarr_format").dump());
  }
  for (const std::string_view key : {"compressor", "filters"}) {
    if (said(key).is_null()) continue;
    return fail(Code::kUnsupportedFormat,
                "{}: chunks with a {} are not read; save them without one", name, key);
  }
  if (const nlohmann::json between = said("dimension_separator");
      !between.is_null() && between != ".") {
    return fail(Code::kUnsupportedFormat, "{}: found the dimension_separator {}, expected a dot",
                name, between.dump());
  }
  return {};
}

}  // namespace

Dims ZarrArray::grid() const {
  Dims counts;
  for (int axis = 0; axis < shape.size(); ++axis)
    counts.push_back(ceil_div(shape[axis], chunk[axis]));
  return counts;
}

std::string ZarrArray::file_of(const Dims& place) const {
  if (place.empty()) return "0";
  return fmt::to_string(fmt::join(place.begin(), place.end(), "."));
}

std::optional<Dims> ZarrArray::place_of(std::string_view file) const {
  Dims place;
  std::string_view rest = file;
  for (const std::int64_t count : grid()) {
    const std::optional<std::int64_t> number = take_number(rest);
    if (!number || *number >= count) return std::nullopt;
    place.push_back(*number);
    rest.remove_prefix(std::min<std::size_t>(1, rest.size()));
  }
  // Other spellings of a place are other files: 00.1, 0.1x, and 0:1.
  return file_of(place) == file ? std::optional(place) : std::nullopt;
}

Box ZarrArray::box_of(const Dims& place) const {
  Box box;
  for (int axis = 0; axis < shape.size(); ++axis) {
    const std::int64_t begin = place[axis] * chunk[axis];
    box.origin.push_back(begin);
    box.shape.push_back(std::min(chunk[axis], shape[axis] - begin));
  }
  return box;
}

Dims ZarrArray::strides() const {
  if (!is_column_major) return row_major_strides(chunk);
  Dims strides;
  std::int64_t stride = 1;
  for (int axis = 0; axis < chunk.size(); ++axis) {
    strides.push_back(stride);
    stride *= chunk[axis];
  }
  return strides;
}

Result<ZarrArray> parse_zarray(std::string_view json, std::string_view name) {
  const nlohmann::json document = SW_TRY(parse_json(json, name));
  if (!document.is_object()) return fail(Code::kJsonCorrupt, "{}: it is no object", name);
  SW_TRY(check_plain(document, name));
  ZarrArray array;
  array.dtype = SW_TRY(type_of(document.value("dtype", nlohmann::json()), name));
  array.shape = SW_TRY(dims_of(document, "shape", 0, name));
  array.chunk = SW_TRY(dims_of(document, "chunks", 1, name));
  if (array.shape.size() != array.chunk.size()) {
    return fail(Code::kJsonCorrupt, "{}: found chunks of {} axes, expected {} as the shape has",
                name, array.chunk.size(), array.shape.size());
  }
  const auto order = document.find("order");
  array.is_column_major = order != document.end() && *order == "F";
  SW_TRY(byte_count(array.shape, array.dtype));
  SW_TRY(byte_count(array.chunk, array.dtype));
  return array;
}

}  // namespace shardwright
