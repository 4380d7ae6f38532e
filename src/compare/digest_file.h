// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/digest.h"
#include "exec/jobs.h"
#include "exec/payload_digests.h"
#include "shardwright/checkpoint.h"
#include "shardwright/storage.h"

namespace shardwright {

/// What `convert --digests` writes beside a checkpoint's data, see docs/formats/digest-file.md:
/// digests of each tensor, each of its pieces, and of what else is in the files.
inline constexpr std::string_view kDigestFile = "shardwright-digests.jsonl";

/// A file that is guarded: its size, and the digest of what is no piece of a tensor in it.
struct DigestedFile {
  std::string name;
  std::uint64_t bytes = 0;
  DigestBytes rest = {};
};

/// A piece of a tensor: where its bytes are, and their digest (digest_payload).
struct DigestedChunk {
  std::size_t file = 0;  ///< among those named before
  ByteRange range;
  DigestBytes digest = {};
};

/// A tensor: its digest is the XXH3-128 of those of its pieces, one behind the other.
struct DigestedTensor {
  std::string name;
  std::string dtype;
  std::vector<std::int64_t> shape;
  DigestBytes digest = {};
  std::vector<DigestedChunk> chunks;
};

/// Lines of the file, each with its end.
[[nodiscard]] std::string digest_file_head();
[[nodiscard]] std::string line_of(const DigestedFile& file);
[[nodiscard]] std::string line_of(const DigestedTensor& tensor);
/// The last one: `all` has the digest of every line before it.
[[nodiscard]] std::string digest_file_end(const Digest& all);

/// The digest of a tensor from those of its pieces.
[[nodiscard]] DigestBytes digest_of_pieces(const std::vector<DigestedChunk>& chunks);

/// The digest of what of a file's `bytes` is in none of the ranges. `buffer`: what it is read into.
[[nodiscard]] Result<DigestBytes> digest_rest(std::uint64_t bytes, std::vector<ByteRange> payloads,
                                              const ReadPayload& read, std::span<std::byte> buffer);

/// Reads such a file line by line, after its last line has proven that it is whole.
class DigestFileReader {
 public:
  using Entry = std::variant<DigestedFile, DigestedTensor>;
  /// Errors: kDigestMismatch where the file was altered or cut, kJsonCorrupt where it is of another
  /// version, those of reading.
  [[nodiscard]] static Result<DigestFileReader> open(const Directory& directory);
  /// Nothing at the end: the files, then the tensors. Error: kJsonCorrupt.
  [[nodiscard]] Result<std::optional<Entry>> next();

 private:
  explicit DigestFileReader(std::unique_ptr<ReadableFile> file) : file_(std::move(file)) {}
  [[nodiscard]] Status check_end();
  [[nodiscard]] Result<std::optional<std::string>> next_line();
  [[nodiscard]] std::unexpected<Error> refuse(std::string_view why) const;

  std::unique_ptr<ReadableFile> file_;
  std::uint64_t end_ = 0;   // of the lines before the last one
  std::uint64_t read_ = 0;  // up to where block_ reaches
  std::string block_;       // what was read and is not given yet
  std::uint64_t line_ = 0;
  std::vector<std::uint64_t> file_bytes_;
  bool has_tensors_ = false;
};

/// What a file of digests was found to guard.
struct DigestsChecked {
  std::size_t files = 0;                       ///< that were right
  std::size_t tensors = 0;                     ///< likewise
  std::set<std::string, std::less<>> guarded;  ///< names of files, right or not
};

/// Compares a checkpoint with the file of digests in its folder, where there is one. What is wrong
/// is told to `defects`: kDigestMismatch with the tensor, or with the file where the bytes are no
/// tensor's; those of DigestFileReader and of opening files.
[[nodiscard]] Result<DigestsChecked> check_digest_file(const Checkpoint& checkpoint,
                                                       const Workers& workers, Defects& defects);

}  // namespace shardwright
