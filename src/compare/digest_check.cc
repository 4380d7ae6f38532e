// SPDX-License-Identifier: Apache-2.0
// Holds a checkpoint's files against the digests beside them.
#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "base/fail.h"
#include "base/text.h"
#include "compare/digest_file.h"
#include "exec/jobs.h"
#include "exec/payload_digests.h"
#include "io/source_files.h"

namespace shardwright {
namespace {

constexpr std::size_t kOpenDigested = 256;
// Tensors that are held in memory at a time: so many bytes of theirs, or so many pieces.
constexpr std::uint64_t kBatchBytes = std::uint64_t{1} << 30;
constexpr std::size_t kBatchChunks = std::size_t{64} << 10;

class DigestCheck {
 public:
  DigestCheck(const Directory& directory, const Workers& workers, Defects& defects)
      : directory_(directory),
        files_(directory, {}, kOpenDigested),
        workers_(workers),
        defects_(defects) {}

  Result<DigestsChecked> run() {
    DigestFileReader reader = SW_TRY(DigestFileReader::open(directory_));
    for (bool is_end = false; !is_end;) {
      auto entry = SW_TRY(reader.next());
      is_end = !entry.has_value();
      if (!is_end && std::holds_alternative<DigestedFile>(*entry)) {
        SW_TRY(take_file(std::get<DigestedFile>(*std::move(entry))));
      } else if (!is_end) {
        take_tensor(std::get<DigestedTensor>(*std::move(entry)));
      }
      if (is_end || batch_bytes_ >= kBatchBytes || batch_chunks_ >= kBatchChunks) {
        SW_TRY(check_batch());
      }
    }
    SW_TRY(check_rests());
    return std::move(checked_);
  }

 private:
  Status take_file(DigestedFile file) {
    files_.add(file.name);
    checked_.guarded.insert(file.name);
    const auto version = files_.version(static_cast<std::uint32_t>(listed_.size()));
    const bool is_there = version.has_value();
    bool is_whole = is_there;
    if (!is_there) {
      SW_TRY(defects_.report(std::unexpected(Error(version.error()).within(kDigestFile))));
    } else if (version->size_bytes != file.bytes) {
      is_whole = false;
      SW_TRY(defects_.report(
          fail(Code::kDigestMismatch,
               "{}: found {} bytes, expected {} as {} says; it was altered, or is of another save; "
               "restore it",
               printable(file.name), version->size_bytes, file.bytes, kDigestFile)));
    }
    listed_.push_back({std::move(file), is_there, is_whole});
    payloads_.emplace_back();
    payload_bytes_.push_back(0);
    return {};
  }

  void take_tensor(DigestedTensor tensor) {
    for (const DigestedChunk& chunk : tensor.chunks) {
      payloads_[chunk.file].push_back(chunk.range);
      payload_bytes_[chunk.file] += chunk.range.length;
      batch_bytes_ += chunk.range.length;
    }
    batch_chunks_ += tensor.chunks.size() + 1;
    batch_.push_back(std::move(tensor));
  }

  Status check_batch() {
    // Pieces are what is shared out: a tensor may be most of a checkpoint.
    std::vector<std::pair<std::size_t, std::size_t>> pieces;
    std::vector<std::uint64_t> bytes;
    for (std::size_t t = 0; t < batch_.size(); ++t) {
      for (std::size_t c = 0; c < batch_[t].chunks.size(); ++c) {
        pieces.emplace_back(t, c);
        bytes.push_back(batch_[t].chunks[c].range.length);
      }
    }
    const auto check = [&](std::size_t i, std::span<std::byte> buffer) -> Status {
      const auto [t, c] = pieces[i];
      // That a file is not there was told.
      if (!listed_[batch_[t].chunks[c].file].is_there) return {};
      return check_chunk(batch_[t], c, buffer);
    };
    const std::vector<std::string> found = SW_TRY(do_jobs(bytes, check));
    std::vector<bool> is_right(batch_.size(), true);
    for (std::size_t i = 0; i < found.size(); ++i) {
      const auto [t, c] = pieces[i];
      Status status = SW_TRY(status_in(found[i]));
      if (!status || !listed_[batch_[t].chunks[c].file].is_there) is_right[t] = false;
      SW_TRY(defects_.report(std::move(status)));
    }
    checked_.tensors += static_cast<std::size_t>(std::ranges::count(is_right, true));
    batch_.clear();
    batch_bytes_ = 0;
    batch_chunks_ = 0;
    return {};
  }

  Status check_chunk(const DigestedTensor& tensor, std::size_t number,
                     std::span<std::byte> buffer) {
    const DigestedChunk& chunk = tensor.chunks[number];
    const DigestedFile& file = listed_[chunk.file].file;
    const auto found = digest_payload(
        chunk.range.length,
        [&](std::uint64_t offset, std::span<std::byte> into) {
          return files_.read_at(static_cast<std::uint32_t>(chunk.file), chunk.range.offset + offset,
                                into);
        },
        {}, buffer);
    const std::string what = fmt::format("tensor {}", printable(tensor.name));
    if (!found) return std::unexpected(Error(found.error()).within(what));
    if (*found == chunk.digest) return {};
    return fail(Code::kDigestMismatch,
                "{}: piece {} of {}, bytes {} to {} of {}: found XXH3-128 {}, expected {} as {} "
                "says; it was altered, or is of another save; restore it",
                what, number + 1, tensor.chunks.size(), chunk.range.offset,
                chunk.range.offset + chunk.range.length, printable(file.name), digest_text(*found),
                digest_text(chunk.digest), kDigestFile);
  }

  // What lies around the tensors, and files without any.
  Status check_rests() {
    std::vector<std::uint64_t> bytes;
    for (std::size_t i = 0; i < listed_.size(); ++i) {
      bytes.push_back(listed_[i].file.bytes - std::min(listed_[i].file.bytes, payload_bytes_[i]));
    }
    const auto check = [&](std::size_t i, std::span<std::byte> buffer) -> Status {
      return listed_[i].is_whole ? check_rest(i, buffer) : Status();
    };
    const std::vector<std::string> found = SW_TRY(do_jobs(bytes, check));
    for (std::size_t i = 0; i < found.size(); ++i) {
      Status status = SW_TRY(status_in(found[i]));
      if (listed_[i].is_whole && status) ++checked_.files;
      SW_TRY(defects_.report(std::move(status)));
    }
    return {};
  }

  Status check_rest(std::size_t number, std::span<std::byte> buffer) {
    const DigestedFile& file = listed_[number].file;
    const auto read = [&](std::uint64_t offset, std::span<std::byte> into) {
      return files_.read_at(static_cast<std::uint32_t>(number), offset, into);
    };
    const auto found = digest_rest(file.bytes, payloads_[number], read, buffer);
    if (!found) return std::unexpected(Error(found.error()).within(kDigestFile));
    if (*found == file.rest) return {};
    return fail(Code::kDigestMismatch,
                "{}: {}found XXH3-128 {}, expected {} as {} says; it was altered, or is of another "
                "save; restore it",
                printable(file.name),
                payloads_[number].empty() ? "" : "around its tensors: ", digest_text(*found),
                digest_text(file.rest), kDigestFile);
  }

  Result<std::vector<std::string>> do_jobs(
      std::span<const std::uint64_t> bytes,
      const std::function<Status(std::size_t, std::span<std::byte>)>& check) {
    const auto make_worker = [&]() -> JobWorker {
      const auto buffer =
          std::make_shared<std::vector<std::byte>>(static_cast<std::size_t>(kDigestBlockBytes));
      return [this, &check, buffer](std::size_t job) -> Result<JobResult> {
        return result_of(check(job, *buffer), defects_);
      };
    };
    return run_jobs({"comparing digests", bytes}, workers_, make_worker);
  }

  struct Listed {
    DigestedFile file;
    bool is_there = false;
    bool is_whole = false;  // of the size that it should have
  };

  const Directory& directory_;
  SourceFiles files_;
  const Workers& workers_;
  Defects& defects_;
  DigestsChecked checked_;
  std::vector<Listed> listed_;
  std::vector<std::vector<ByteRange>> payloads_;  // of each file
  std::vector<std::uint64_t> payload_bytes_;      // likewise
  std::vector<DigestedTensor> batch_;
  std::uint64_t batch_bytes_ = 0;
  std::size_t batch_chunks_ = 0;
};

}  // namespace

Result<DigestsChecked> check_digest_file(const Checkpoint& checkpoint, const Workers& workers,
                                         Defects& defects) {
  const Directory& directory = *checkpoint.directory;
  if (!directory.exists(kDigestFile)) return DigestsChecked{};
  Result<DigestsChecked> checked = DigestCheck(directory, workers, defects).run();
  if (checked) return checked;
  SW_TRY(defects.report(std::unexpected(std::move(checked).error())));
  return DigestsChecked{};
}

}  // namespace shardwright
