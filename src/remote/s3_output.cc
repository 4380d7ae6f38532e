// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <utility>

#include "base/fail.h"
#include "base/shell_path.h"
#include "base/text.h"
#include "io/beneath.h"
#include "io/remote_path.h"
#include "remote/reach_bucket.h"
#include "remote/remote_output.h"
#include "remote/s3_store.h"
#include "remote/sent_file.h"
#include "remote/url.h"

namespace shardwright {
namespace {

constexpr int kSendingThreads = 8;

/// $SHARDWRIGHT_REMOTE_PART_SIZE, in bytes. Error: kUsage.
Result<std::uint64_t> asked_part_bytes() {
  constexpr std::int64_t kUsual = std::int64_t{16} << 20;
  constexpr std::int64_t kLeast = 1024;
  constexpr std::int64_t kMost = std::int64_t{5} << 30;
  const char* const text = std::getenv("SHARDWRIGHT_REMOTE_PART_SIZE");
  if (text == nullptr || *text == '\0') return kUsual;
  std::string_view rest = text;
  const auto number = take_number(rest);
  if (number && rest.empty() && *number >= kLeast && *number <= kMost) {
    return static_cast<std::uint64_t>(*number);
  }
  return fail(Code::kUsage,
              "$SHARDWRIGHT_REMOTE_PART_SIZE: found '{}', expected a number of bytes from {} to {}",
              printable(text), kLeast, kMost);
}

class SentFileHandle final : public WritableFile {
 public:
  explicit SentFileHandle(SentFile& file) : file_(file) {}

  Status write_at(std::uint64_t offset, std::span<const std::byte> bytes) const override {
    return file_.write(offset, std::span(&bytes, 1));
  }
  Status write_at(std::uint64_t offset,
                  std::span<const std::span<const std::byte>> pieces) const override {
    return file_.write(offset, pieces);
  }
  void start_writeback(std::uint64_t /*offset*/, std::uint64_t /*length*/) const override {}
  Status sync() override { return file_.send_rest(); }

 private:
  SentFile& file_;
};

class S3Output final : public RemoteOutput, private Directory {
 public:
  S3Output(std::unique_ptr<S3Bucket> bucket, const std::atomic<bool>* cancelled,
           std::uint64_t part_bytes)
      : writer_(std::move(bucket), cancelled), part_bytes_(part_bytes) {}
  ~S3Output() override { static_cast<void>(S3Output::abandon()); }

  [[nodiscard]] const S3Writer& writer() const { return writer_; }

  Directory& directory() override { return *this; }

  Status show(std::string_view path) override {
    SentFile* file = nullptr;
    {
      const std::scoped_lock lock(mutex_);
      const auto found = files_.find(path);
      if (found != files_.end()) file = found->second.get();
    }
    if (file != nullptr) return file->show();
    return fail(Code::kInternal, "{}: is shown and was never made", bucket().shown_name(path));
  }

  std::vector<std::string> finish() override {
    queue_.stop();
    std::vector<std::string> left;
    if (writer_.may_have_lost_one()) abort_lost(left);
    files_.clear();
    is_over_ = true;
    return left;
  }

  std::vector<std::string> abandon() override {
    if (std::exchange(is_over_, true)) return {};
    queue_.stop();
    std::vector<std::string> left;
    for (const auto& [path, file] : files_) {
      const std::optional<S3Upload> upload = file->unfinished();
      const bool is_aborted = !upload || writer_.abort(*upload);
      const bool is_removed = !file->may_be_shown() || writer_.remove(file->key());
      if (!is_aborted || !is_removed) left.push_back(bucket().shown_key(file->key()));
    }
    if (writer_.may_have_lost_one()) abort_lost(left);
    files_.clear();
    return left;
  }

 private:
  [[nodiscard]] const S3Bucket& bucket() const { return writer_.bucket(); }

  // A server may have begun an upload whose id did not arrive.
  void abort_lost(std::vector<std::string>& left) const {
    const auto uploads = writer_.uploads(bucket().prefix_of(""), true);
    if (!uploads) {
      left.push_back(bucket().name());
      return;
    }
    for (const S3Upload& upload : *uploads) {
      if (!writer_.abort(upload)) left.push_back(bucket().shown_key(upload.key));
    }
  }

  Result<std::unique_ptr<ReadableFile>> open(std::string_view path) const override {
    return not_read(path);
  }
  Result<std::vector<DirectoryEntry>> list(std::string_view path) const override {
    return not_read(path);
  }
  bool exists(std::string_view /*path*/) const override { return false; }
  const std::string& name() const override { return bucket().name(); }

  [[nodiscard]] std::unexpected<Error> not_read(std::string_view path) const {
    return fail(Code::kInternal, "{}: is written to a server and not read back",
                bucket().shown_name(path));
  }

  Result<std::unique_ptr<WritableFile>> create(std::string_view path, std::uint64_t size) override {
    SW_TRY(check_relative_path(path));
    auto spool = SW_TRY(SpoolFile::create(bucket().shown_name(path)));
    SW_TRY(spool->resize(size));
    auto file = std::make_unique<SentFile>(writer_, queue_, bucket().key_of(path), std::move(spool),
                                           part_bytes_for(size, part_bytes_));
    const std::scoped_lock lock(mutex_);
    const auto [place, is_new] = files_.emplace(path, std::move(file));
    if (is_new) return std::make_unique<SentFileHandle>(*place->second);
    return fail(Code::kTargetExists, "{}: found something there, expected to make a new file",
                bucket().shown_name(path));
  }

  S3Writer writer_;
  std::uint64_t part_bytes_;
  JobQueue queue_{kSendingThreads};
  std::mutex mutex_;  // of what follows
  std::map<std::string, std::unique_ptr<SentFile>, std::less<>> files_;
  bool is_over_ = false;
};

// Of a server's own address for a bucket nobody can tell.
Status check_apart_from(const std::string& path, const std::vector<std::string>& sources) {
  const S3Path target = SW_TRY(parse_s3_path(with_lower_scheme(path)));
  for (const std::string& source : sources) {
    if (!is_remote_output(source)) continue;
    const S3Path other = SW_TRY(parse_s3_path(with_lower_scheme(source)));
    const bool is_apart =
        target.bucket != other.bucket ||
        (!other.prefix.empty() && !(target.prefix + "/").starts_with(other.prefix + "/"));
    if (is_apart) continue;
    return fail(Code::kTargetInsideSource,
                "{}: found the target {} the source {}, expected them apart; choose another target",
                printable(path), translated("in"), printable(source));
  }
  return {};
}

Status check_nothing_there(const std::string& path) {
  const std::unique_ptr<S3Bucket> bucket = SW_TRY(reach_bucket(path));
  const std::vector<DirectoryEntry> entries = SW_TRY(list_s3_folder(*bucket, "", nullptr));
  if (entries.empty()) return {};
  return fail(
      Code::kTargetExists,
      "{}: found {} there, expected nothing: nothing in a bucket is replaced; choose another "
      "prefix, or remove what is there",
      printable(path), printable(entries.front().name));
}

// Without permission to list, other runs cannot be seen; nor on servers that list none.
Status check_nobody_writes(const std::string& path, const S3Writer& writer) {
  const auto uploads = writer.uploads(writer.bucket().prefix_of(""));
  if (!uploads || uploads->empty()) return {};
  return fail(
      Code::kTargetExists,
      "{}: found {} unfinished uploads there, begun {}: another run writes them, or one that "
      "was killed left them; wait for it, or remove them with 'shardwright clean {} "
      "--remove'",
      printable(path), uploads->size(), printable(uploads->front().begun), shell_path(path));
}

}  // namespace

bool is_remote_output(std::string_view path) {
  return with_lower_scheme(path).starts_with("s3://");
}

Status check_output_path(const std::string& path) {
  if (!is_remote_output(path)) {
    Status status = check_local_output(path);
    if (!status) status.error().message += translated(", or write to s3://BUCKET/PREFIX");
    return status;
  }
  SW_TRY(asked_part_bytes());
  SW_TRY(parse_s3_path(with_lower_scheme(path)));
  return {};
}

Result<std::unique_ptr<RemoteOutput>> begin_remote_output(const std::string& path,
                                                          const std::vector<std::string>& sources,
                                                          const std::atomic<bool>* cancelled) {
  const std::uint64_t part_bytes = SW_TRY(asked_part_bytes());
  SW_TRY(check_apart_from(path, sources));
  SW_TRY(check_nothing_there(path));
  auto output = std::make_unique<S3Output>(SW_TRY(reach_bucket(path)), cancelled, part_bytes);
  SW_TRY(check_nobody_writes(path, output->writer()));
  return output;
}

Result<std::vector<UnfinishedUpload>> list_unfinished_uploads(const std::string& path) {
  const S3Writer writer(SW_TRY(reach_bucket(path)), nullptr);
  std::vector<UnfinishedUpload> found;
  for (const S3Upload& upload : SW_TRY(writer.uploads(writer.bucket().prefix_of("")))) {
    std::string shown = writer.bucket().shown_key(upload.key);
    found.push_back({std::move(shown), upload.key, upload.id, upload.begun});
  }
  return found;
}

Status remove_unfinished_upload(const std::string& path, const UnfinishedUpload& upload) {
  const S3Writer writer(SW_TRY(reach_bucket(path)), nullptr);
  return writer.abort({upload.key, upload.id, upload.begun});
}

}  // namespace shardwright
