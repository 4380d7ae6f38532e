// SPDX-License-Identifier: Apache-2.0
#include "compare/digest_file.h"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/fail.h"
#include "base/text.h"
#include "codec/json_text.h"

namespace shardwright {
namespace {

constexpr std::string_view kDigestsSchema = "shardwright/digests/1";
constexpr std::size_t kLineReadBytes = std::size_t{256} << 10;
// A line is a tensor with all of its pieces.
constexpr std::size_t kMostLineBytes = std::size_t{64} << 20;
constexpr std::string_view kEndBegins = "{\"end\":\"";
constexpr std::string_view kEndEnds = "\"}\n";
constexpr std::size_t kEndBytes = kEndBegins.size() + kDigestDigits + kEndEnds.size();

std::string as_line(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::optional<std::uint64_t> size_in(const nlohmann::json& value) {
  if (!value.is_number_unsigned()) return std::nullopt;
  return value.get<std::uint64_t>();
}

std::optional<DigestBytes> digest_in(const nlohmann::json& value) {
  if (!value.is_string()) return std::nullopt;
  return digest_from_text(value.get_ref<const std::string&>());
}

std::optional<DigestedFile> file_of(const nlohmann::json& line) {
  const auto bytes = size_in(line.value("bytes", nlohmann::json()));
  const auto rest = digest_in(line.value("rest", nlohmann::json()));
  if (!line["file"].is_string() || !bytes || !rest) return std::nullopt;
  return DigestedFile{line["file"].get<std::string>(), *bytes, *rest};
}

// [file, offset, bytes, digest]
std::optional<DigestedChunk> chunk_of(const nlohmann::json& entry,
                                      const std::vector<std::uint64_t>& file_bytes) {
  if (!entry.is_array() || entry.size() != 4) return std::nullopt;
  const auto file = size_in(entry[0]);
  const auto offset = size_in(entry[1]);
  const auto length = size_in(entry[2]);
  const auto digest = digest_in(entry[3]);
  if (!file || !offset || !length || !digest || *file >= file_bytes.size()) return std::nullopt;
  const std::uint64_t size = file_bytes[static_cast<std::size_t>(*file)];
  if (*length > size || *offset > size - *length) return std::nullopt;
  return DigestedChunk{static_cast<std::size_t>(*file), {*offset, *length}, *digest};
}

std::optional<DigestedTensor> tensor_of(const nlohmann::json& line,
                                        const std::vector<std::uint64_t>& file_bytes) {
  const auto digest = digest_in(line.value("digest", nlohmann::json()));
  const nlohmann::json dtype = line.value("dtype", nlohmann::json());
  const nlohmann::json shape = line.value("shape", nlohmann::json());
  const auto chunks = line.find("chunks");
  if (!line["tensor"].is_string() || !digest || !dtype.is_string() || !shape.is_array() ||
      chunks == line.end() || !chunks->is_array()) {
    return std::nullopt;
  }
  DigestedTensor tensor{
      line["tensor"].get<std::string>(), dtype.get<std::string>(), {}, *digest, {}};
  for (const nlohmann::json& extent : shape) {
    const auto size = size_in(extent);
    if (!size || *size > std::numeric_limits<std::int64_t>::max()) return std::nullopt;
    tensor.shape.push_back(static_cast<std::int64_t>(*size));
  }
  for (const nlohmann::json& entry : *chunks) {
    const auto chunk = chunk_of(entry, file_bytes);
    if (!chunk) return std::nullopt;
    tensor.chunks.push_back(*chunk);
  }
  if (digest_of_pieces(tensor.chunks) != tensor.digest) return std::nullopt;
  return tensor;
}

}  // namespace

std::string digest_file_head() {
  nlohmann::ordered_json head;
  head["schema"] = kDigestsSchema;
  head["algorithm"] = "xxh3-128";
  head["block_bytes"] = kDigestBlockBytes;
  return as_line(head);
}

std::string line_of(const DigestedFile& file) {
  nlohmann::ordered_json line;
  line["file"] = file.name;
  line["bytes"] = file.bytes;
  line["rest"] = digest_text(file.rest);
  return as_line(line);
}

std::string line_of(const DigestedTensor& tensor) {
  nlohmann::ordered_json line;
  line["tensor"] = tensor.name;
  line["dtype"] = tensor.dtype;
  line["shape"] = tensor.shape;
  line["digest"] = digest_text(tensor.digest);
  nlohmann::ordered_json& chunks = line["chunks"] = nlohmann::ordered_json::array();
  for (const DigestedChunk& chunk : tensor.chunks) {
    chunks.push_back(
        {chunk.file, chunk.range.offset, chunk.range.length, digest_text(chunk.digest)});
  }
  return as_line(line);
}

std::string digest_file_end(const Digest& all) {
  return std::string(kEndBegins) + all.text() + std::string(kEndEnds);
}

DigestBytes digest_of_pieces(const std::vector<DigestedChunk>& chunks) {
  Digest whole;
  for (const DigestedChunk& chunk : chunks) whole.add(chunk.digest);
  return whole.bytes();
}

Result<DigestBytes> digest_rest(std::uint64_t bytes, std::vector<ByteRange> payloads,
                                const ReadPayload& read, std::span<std::byte> buffer) {
  std::ranges::sort(payloads, {}, &ByteRange::offset);
  payloads.push_back({bytes, 0});
  Digest rest;
  std::uint64_t at = 0;
  for (const ByteRange& payload : payloads) {
    while (at < payload.offset) {
      const auto piece = buffer.first(
          static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), payload.offset - at)));
      SW_TRY(read(at, piece));
      rest.add(piece);
      at += piece.size();
    }
    at = std::max(at, payload.offset + payload.length);
  }
  return rest.bytes();
}

std::unexpected<Error> DigestFileReader::refuse(std::string_view why) const {
  return fail(Code::kJsonCorrupt, "{}, line {}: {}; remove the file if its digests are of no use",
              kDigestFile, line_, why);
}

Result<DigestFileReader> DigestFileReader::open(const Directory& directory) {
  DigestFileReader reader(SW_TRY(directory.open(kDigestFile)));
  SW_TRY(reader.check_end());
  const std::optional<std::string> text = SW_TRY(reader.next_line());
  const nlohmann::json head = SW_TRY(parse_json(text.value_or(""), kDigestFile));
  const auto value = [&head](const char* key) {
    return head.is_object() ? head.value(key, nlohmann::json()) : nlohmann::json();
  };
  if (value("schema") != kDigestsSchema || value("algorithm") != "xxh3-128" ||
      value("block_bytes") != kDigestBlockBytes) {
    return reader.refuse(translated("expected the schema {}, xxh3-128 and blocks of {} bytes",
                                    kDigestsSchema, kDigestBlockBytes));
  }
  return reader;
}

// Before anything of it is believed.
Status DigestFileReader::check_end() {
  const auto altered = [](std::string_view what) {
    return fail(Code::kDigestMismatch,
                "{}: {}; restore it, or remove it if its digests are of no use", kDigestFile, what);
  };
  if (file_->size() < kEndBytes) return altered("it ends in the middle");
  end_ = file_->size() - kEndBytes;
  std::string found(kEndBytes, '\0');
  SW_TRY(file_->read_at(end_, std::as_writable_bytes(std::span(found))));
  Digest all;
  std::vector<std::byte> block(kLineReadBytes);
  for (std::uint64_t at = 0; at < end_;) {
    const auto bytes = std::span(block).first(
        static_cast<std::size_t>(std::min<std::uint64_t>(block.size(), end_ - at)));
    SW_TRY(file_->read_at(at, bytes));
    all.add(bytes);
    at += bytes.size();
  }
  if (found == digest_file_end(all)) return {};
  return altered("its last line is not the digest of the others: it was altered or cut");
}

Result<std::optional<std::string>> DigestFileReader::next_line() {
  std::size_t end = block_.find('\n');
  while (end == std::string::npos) {
    if (block_.size() > kMostLineBytes) return refuse("it is too long");
    if (read_ == end_) {
      if (block_.empty()) return std::optional<std::string>();
      return refuse("it has no end");
    }
    const std::size_t have = block_.size();
    const auto more =
        static_cast<std::size_t>(std::min<std::uint64_t>(kLineReadBytes, end_ - read_));
    block_.resize(have + more);
    SW_TRY(file_->read_at(read_, std::as_writable_bytes(std::span(block_).subspan(have))));
    read_ += more;
    end = block_.find('\n', have);
  }
  ++line_;
  std::string line = block_.substr(0, end);
  block_.erase(0, end + 1);
  return std::optional<std::string>(std::move(line));
}

Result<std::optional<DigestFileReader::Entry>> DigestFileReader::next() {
  const std::optional<std::string> text = SW_TRY(next_line());
  if (!text) return std::optional<Entry>();
  const nlohmann::json line = SW_TRY(parse_json(*text, kDigestFile));
  if (line.is_object() && line.contains("file") && !has_tensors_) {
    auto file = file_of(line);
    if (!file) return refuse("expected a file with bytes and rest");
    file_bytes_.push_back(file->bytes);
    return std::optional<Entry>(*std::move(file));
  }
  if (line.is_object() && line.contains("tensor")) {
    has_tensors_ = true;
    auto tensor = tensor_of(line, file_bytes_);
    if (!tensor) {
      return refuse(
          "expected a tensor with dtype, shape, chunks in files that are named before it, and a "
          "digest that is of theirs");
    }
    return std::optional<Entry>(*std::move(tensor));
  }
  return refuse("expected files and then tensors");
}

}  // namespace shardwright
