// SPDX-License-Identifier: Apache-2.0
#include "codec/safetensors_header.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <utility>

#include "base/allowance.h"
#include "base/checked.h"
#include "base/endian.h"
#include "base/fail.h"
#include "codec/json_text.h"
#include "codec/safetensors_dtype.h"
#include "codec/stand_in.h"

namespace shardwright {
namespace {

constexpr std::uint64_t kLengthBytes = sizeof(std::uint64_t);
constexpr auto kMaxExtent = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
constexpr std::string_view kMetadataKey = "__metadata__";

/// One entry of the header as it is read.
struct Entry {
  std::string name;
  std::optional<std::string> dtype;
  std::optional<std::vector<std::uint64_t>> shape;
  std::optional<std::vector<std::uint64_t>> offsets;
};

std::unexpected<Error> corrupt(const ReadableFile& file, std::string_view found,
                               std::string_view expected) {
  return fail(Code::kSafetensorsCorrupt, "{}: found {}, expected {}", file.name(), found, expected);
}

/// A tensor with its range relative to the data.
Result<SafetensorsTensor> make_tensor(const ReadableFile& file, const Entry& entry) {
  SafetensorsTensor tensor;
  tensor.desc.name = entry.name;
  const std::string where = fmt::format("{} tensor {}", file.name(), tensor.desc.name);
  const auto type = safetensors_type(*entry.dtype);
  if (!type) {
    return fail(Code::kSafetensorsDtype, "{}: found dtype {}, expected one of torch's", where,
                json_string(*entry.dtype));
  }
  if (entry.shape->size() > kMaxAxes) {
    return fail(Code::kLimit, "{}: found {} axes, expected at most {}", where, entry.shape->size(),
                kMaxAxes);
  }
  tensor.desc.dtype = type->dtype;
  for (const std::uint64_t extent : *entry.shape) {
    if (extent > kMaxExtent) {
      return fail(Code::kSafetensorsCorrupt,
                  "{}: found an extent of {}, expected one that can exist", where, extent);
    }
    tensor.desc.shape.push_back(static_cast<std::int64_t>(extent));
  }
  if (type->values_per_element > 1) {
    const int last = tensor.desc.shape.size() - 1;
    if (last < 0 || tensor.desc.shape[last] % type->values_per_element != 0) {
      return fail(Code::kSafetensorsDtype,
                  "{}: found {} with a last axis that is not a whole number of bytes, expected one",
                  where, type->name);
    }
    tensor.desc.shape[last] /= type->values_per_element;
  }
  const auto bytes = byte_count(tensor.desc.shape, tensor.desc.dtype);
  if (!bytes) {
    return fail(Code::kSafetensorsCorrupt, "{}: found {}", where, bytes.error().message);
  }
  const std::vector<std::uint64_t>& offsets = *entry.offsets;
  if (offsets.size() != 2 || offsets[0] > offsets[1] ||
      offsets[1] - offsets[0] != static_cast<std::uint64_t>(*bytes)) {
    return fail(Code::kSafetensorsCorrupt,
                "{}: found data_offsets that don't span {} bytes, expected those of shape {}",
                where, *bytes, to_string(tensor.desc.shape));
  }
  tensor.range = {offsets[0], offsets[1] - offsets[0]};
  return tensor;
}

/// Takes the header's events and refuses the first one that the format does not have there.
class HeaderParser final : public nlohmann::json_sax<nlohmann::json> {
 public:
  /// `entries` is how many tensors are to be expected.
  HeaderParser(const ReadableFile& file, std::uint64_t header_bytes, std::size_t entries)
      : file_(file), allowance_(header_bytes) {
    if (take(entries * sizeof(SafetensorsTensor))) tensors_.reserve(entries);
  }

  bool null() override { return refuse("null"); }
  bool boolean(bool /*value*/) override { return refuse("a boolean"); }
  bool number_integer(number_integer_t /*value*/) override { return refuse("a negative number"); }
  bool number_unsigned(number_unsigned_t value) override {
    std::vector<std::uint64_t>* numbers = open_numbers();
    if (numbers == nullptr) return refuse("a number");
    if (numbers->size() == kMostNumbers) return refuse("more than 64 numbers");
    numbers->push_back(value);
    return true;
  }
  bool number_float(number_float_t /*value*/, const string_t& text) override {
    return refuse(translated("the number ") + text);
  }
  bool string(string_t& value) override {
    if (place_ == Place::kMetadata) {
      constexpr std::uint64_t kMemberBytes = 128;
      if (!take(kMemberBytes + key_.size() + value.size())) return false;
      metadata_.emplace(key_, std::move(value));
      return true;
    }
    if (place_ != Place::kEntry || key_ != "dtype") return refuse("a string");
    entry_.dtype = std::move(value);
    return true;
  }
  bool binary(binary_t& /*value*/) override { return refuse("binary data"); }

  bool start_object(std::size_t /*size*/) override {
    switch (place_) {
      case Place::kFile:
        place_ = Place::kTop;
        return true;
      case Place::kTop:
        place_ = key_ == kMetadataKey ? Place::kMetadata : Place::kEntry;
        entry_ = {key_, {}, {}, {}};
        return true;
      default:
        return refuse("an object");
    }
  }
  bool end_object() override {
    if (place_ == Place::kEntry) {
      if (!entry_.dtype || !entry_.shape || !entry_.offsets) {
        return refuse("an entry without dtype, shape or data_offsets");
      }
      auto tensor = make_tensor(file_, entry_);
      if (!tensor) {
        error_ = std::move(tensor).error();
        return false;
      }
      const bool has_room = tensors_.size() < tensors_.capacity();
      if (!take((has_room ? 0 : 3 * sizeof(SafetensorsTensor)) + tensor->desc.name.size())) {
        return false;
      }
      tensors_.push_back(std::move(*tensor));
    }
    place_ = place_ == Place::kTop ? Place::kFile : Place::kTop;
    return true;
  }
  bool start_array(std::size_t /*size*/) override {
    if (place_ != Place::kEntry || (key_ != "shape" && key_ != "data_offsets")) {
      return refuse("an array");
    }
    (key_ == "shape" ? entry_.shape : entry_.offsets).emplace();
    place_ = Place::kNumbers;
    return true;
  }
  bool end_array() override {
    place_ = Place::kEntry;
    return true;
  }
  bool key(string_t& name) override {
    key_ = std::move(name);
    switch (place_) {
      case Place::kTop:
        if (!is_control_free(key_)) return refuse("a name with control characters");
        if (key_ != kMetadataKey) return true;
        return !std::exchange(has_metadata_, true) || refuse("this key again");
      case Place::kMetadata:
        return !metadata_.contains(key_) || refuse("this key again");
      default:
        return check_field();
    }
  }
  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const nlohmann::detail::exception& exception) override {
    error_ = corrupt(file_, json_reason(exception.what()), "a safetensors header").error();
    return false;
  }

  [[nodiscard]] Error& error() { return error_; }
  [[nodiscard]] std::vector<SafetensorsTensor>& tensors() { return tensors_; }
  [[nodiscard]] SafetensorsMetadata& metadata() { return metadata_; }

 private:
  // More axes than a tensor can have are refused when the entry ends.
  static constexpr std::size_t kMostNumbers = 64;

  bool take(std::uint64_t bytes) {
    Status status = allowance_.take(bytes, "its header's entries");
    if (status) return true;
    error_ = std::move(status).error().within(file_.name());
    return false;
  }
  enum class Place : std::uint8_t { kFile, kTop, kMetadata, kEntry, kNumbers };

  static bool is_control_free(std::string_view name) {
    return std::ranges::none_of(
        name, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
  }
  bool check_field() {
    const bool again = (key_ == "dtype" && entry_.dtype) || (key_ == "shape" && entry_.shape) ||
                       (key_ == "data_offsets" && entry_.offsets);
    if (again) return refuse("this field again");
    return key_ == "dtype" || key_ == "shape" || key_ == "data_offsets" ||
           refuse("an unknown field");
  }
  std::vector<std::uint64_t>* open_numbers() {
    if (place_ != Place::kNumbers) return nullptr;
    auto& numbers = key_ == "shape" ? entry_.shape : entry_.offsets;
    return &*numbers;
  }
  bool refuse(std::string_view found) {
    const bool in_entry = place_ == Place::kEntry || place_ == Place::kNumbers;
    const std::string where = in_entry ? entry_.name + "." + key_ : key_;
    error_ =
        corrupt(file_, fmt::format("{} at {}", found, json_string(where)), "a safetensors header")
            .error();
    return false;
  }

  const ReadableFile& file_;
  Allowance allowance_;
  Place place_ = Place::kFile;
  std::string key_;
  Entry entry_;
  bool has_metadata_ = false;
  std::vector<SafetensorsTensor> tensors_;
  SafetensorsMetadata metadata_;
  Error error_;
};

/// How often a field's name that each entry has occurs: at least the number of entries, and no more
/// than the text can hold.
std::size_t count_entries(std::string_view text) {
  constexpr std::string_view kField = "\"data_offsets\"";
  std::size_t count = 0;
  for (std::size_t at = text.find(kField); at != std::string_view::npos;
       at = text.find(kField, at + kField.size())) {
    ++count;
  }
  return count;
}

/// The header's JSON without its padding.
Result<std::string> read_text(const ReadableFile& file, std::uint64_t& length) {
  if (file.size() < kLengthBytes) {
    return corrupt(file, fmt::format("{} bytes", file.size()), "a safetensors file of at least 8");
  }
  std::byte prefix[kLengthBytes];
  SW_TRY(file.read_at(0, prefix));
  length = load_le<std::uint64_t>(prefix);
  if (length > file.size() - kLengthBytes) {
    return corrupt(file, translated("a header of {} bytes", length),
                   translated("one within {} bytes; the file was cut or is not a safetensors file",
                              file.size()));
  }
  if (length > kMaxHeaderBytes) {
    return fail(Code::kLimit, "{}: found a header of {} bytes, expected at most {}", file.name(),
                length, kMaxHeaderBytes);
  }
  std::string text(length, '\0');
  SW_TRY(file.read_at(kLengthBytes, std::as_writable_bytes(std::span(text))));
  if (!text.starts_with('{')) {
    return corrupt(file, "a header that does not begin with '{'", "a JSON object");
  }
  // The format pads with spaces only; other white space would pass the JSON parser.
  text.resize(text.find_last_not_of(' ') + 1);
  if (!text.ends_with('}')) {
    return corrupt(file, "a header that does not end with '}' and spaces", "a JSON object");
  }
  return text;
}

Status check_names(const ReadableFile& file, const std::vector<SafetensorsTensor>& tensors) {
  std::vector<std::string_view> names;
  names.reserve(tensors.size());
  for (const SafetensorsTensor& tensor : tensors) names.push_back(tensor.desc.name);
  std::ranges::sort(names);
  const auto twin = std::ranges::adjacent_find(names);
  if (twin == names.end()) return {};
  return corrupt(file, translated("the name {} twice", json_string(*twin)), "it once");
}

/// Whether the tensors, still relative to the data, cover `data_bytes` without hole or overlap.
Status check_cover(const ReadableFile& file, const std::vector<SafetensorsTensor>& tensors,
                   std::uint64_t data_bytes) {
  std::vector<std::uint32_t> order(tensors.size());
  std::iota(order.begin(), order.end(), 0U);
  // Empty tensors lie in front of the one that begins where they do.
  std::ranges::sort(order, {}, [&](std::uint32_t index) {
    return std::pair(tensors[index].range.offset, tensors[index].range.length);
  });
  std::uint64_t position = 0;
  for (const std::uint32_t index : order) {
    const SafetensorsTensor& tensor = tensors[index];
    if (tensor.range.offset != position) {
      return fail(Code::kSafetensorsCorrupt,
                  "{} tensor {}: found its data at {}, expected it at {}: neither hole nor overlap",
                  file.name(), tensor.desc.name, tensor.range.offset, position);
    }
    position += tensor.range.length;
  }
  if (position == data_bytes) return {};
  return corrupt(file, translated("{} bytes of data", data_bytes),
                 translated("{} as the header says; the file was cut or has grown", position));
}

Result<SafetensorsHeader> read_header(const ReadableFile& file) {
  std::uint64_t length = 0;
  std::string text = SW_TRY(read_text(file, length));
  HeaderParser parser(file, length, count_entries(text));
  if (!nlohmann::json::sax_parse(text, &parser)) return std::unexpected(std::move(parser.error()));
  text = std::string();
  SafetensorsHeader header{std::move(parser.tensors()), std::move(parser.metadata()),
                           kLengthBytes + length};
  SW_TRY(check_names(file, header.tensors));
  SW_TRY(check_cover(file, header.tensors, file.size() - header.data_offset));
  for (SafetensorsTensor& tensor : header.tensors) tensor.range.offset += header.data_offset;
  return header;
}

}  // namespace

Result<SafetensorsHeader> read_safetensors_header(const ReadableFile& file) {
  Result<SafetensorsHeader> header = read_header(file);
  if (!header) {
    SW_TRY(refuse_stand_in(header.error().code, file, "a safetensors file", Contents::kBinary));
  }
  return header;
}

}  // namespace shardwright
