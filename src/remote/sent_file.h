// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/spool_file.h"
#include "remote/byte_ranges.h"
#include "remote/job_queue.h"
#include "remote/s3_writer.h"

namespace shardwright {

/// How a file is cut into parts that S3 takes. `asked` is grown where there would be too many.
[[nodiscard]] std::uint64_t part_bytes_for(std::uint64_t file_bytes, std::uint64_t asked);

/// A file on its way to a bucket. One that is no longer than a part is sent when it is shown.
class SentFile {
 public:
  /// Borrows writer and queue, which has to be stopped before this ends.
  SentFile(S3Writer& writer, JobQueue& queue, std::string key, std::unique_ptr<SpoolFile> spool,
           std::uint64_t part_bytes);

  [[nodiscard]] std::uint64_t size() const { return spool_->size(); }
  [[nodiscard]] const std::string& key() const { return upload_.key; }

  /// Thread-safe. Error: kInternal for bytes that were written before.
  [[nodiscard]] Status write(std::uint64_t offset,
                             std::span<const std::span<const std::byte>> pieces);
  /// Sends what is left, and waits for all.
  [[nodiscard]] Status send_rest();
  /// Lets it appear.
  [[nodiscard]] Status show();

  /// The upload that may be unfinished on the server, if any. REQUIRES: the queue is stopped.
  [[nodiscard]] std::optional<S3Upload> unfinished() const;
  /// Whether it was shown, or may have been.
  [[nodiscard]] bool may_be_shown() const { return may_be_shown_; }

 private:
  [[nodiscard]] std::uint64_t parts() const { return tags_.size(); }
  [[nodiscard]] ByteRange range_of(std::uint64_t part) const;
  [[nodiscard]] Status send_later(std::uint64_t part);
  [[nodiscard]] Status send(std::uint64_t part);

  S3Writer& writer_;
  JobQueue& queue_;
  std::unique_ptr<SpoolFile> spool_;
  std::uint64_t part_bytes_;
  std::mutex beginning_;  // of the upload: whoever comes second waits for its id
  S3Upload upload_;
  bool may_be_shown_ = false;
  bool is_shown_ = false;
  std::mutex mutex_;  // of what follows
  ByteRanges claimed_;
  ByteRanges written_;
  std::vector<bool> is_queued_;
  std::vector<std::string> tags_;  // of the parts; empty for a file that is sent whole
};

}  // namespace shardwright
