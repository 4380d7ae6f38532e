// SPDX-License-Identifier: Apache-2.0
#include "compare/digest_writer.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "compare/digest_file.h"
#include "compare/listed_digests.h"
#include "exec/payload_place.h"
#include "exec/threads.h"
#include "io/append_file.h"
#include "io/source_files.h"

namespace shardwright {
namespace {

constexpr std::size_t kOpenWritten = 256;
// Of how many pieces the digests are held in memory before their lines are written.
constexpr std::size_t kWrittenChunks = std::size_t{64} << 10;
constexpr std::size_t kUnlisted = std::numeric_limits<std::size_t>::max();

class DigestWriter {
 public:
  DigestWriter(const Directory& directory, const Plan& plan, const PayloadDigests& digests,
               int threads)
      : plan_(plan),
        digests_(digests),
        threads_(threads),
        files_(directory, plan.target.files, kOpenWritten) {}

  Status write(const std::string& folder) {
    const std::string part = digested_folder(plan_.target.files);
    out_ = SW_TRY(AppendFile::open(folder + "/" + part + std::string(kDigestFile)));
    SW_TRY(out_->truncate(0));
    SW_TRY(put(digest_file_head()));
    list_files(part);
    SW_TRY(find_payloads());
    SW_TRY(put_files(part.size()));
    SW_TRY(put_tensors());
    const std::string end = digest_file_end(all_);
    SW_TRY(out_->append(std::as_bytes(std::span(end))));
    return out_->sync();
  }

 private:
  // REQUIRES: in the order of the lines.
  Status put(const std::string& lines) {
    all_.add(lines);
    return out_->append(std::as_bytes(std::span(lines)));
  }

  void list_files(const std::string& part) {
    number_.assign(plan_.target.files.size(), kUnlisted);
    for (std::uint32_t file = 0; file < plan_.target.files.size(); ++file) {
      if (!plan_.target.files[file].starts_with(part)) continue;
      number_[file] = listed_.size();
      listed_.push_back(file);
    }
    payloads_.resize(listed_.size());
  }

  Status find_payloads() {
    for (const StoredTensor& tensor : plan_.target.tensors) {
      for (std::uint32_t chunk = 0; chunk < tensor.chunks.size(); ++chunk) {
        const PayloadPlace place = SW_TRY(place_of_payload(tensor, chunk));
        const std::uint64_t bytes = payload_bytes(tensor, chunk);
        if (bytes == 0 || number_[place.file] == kUnlisted) continue;
        payloads_[number_[place.file]].push_back({place.offset, bytes});
      }
    }
    return {};
  }

  [[nodiscard]] ReadPayload reader_of(std::uint32_t file, std::uint64_t begin) {
    return [this, file, begin](std::uint64_t offset, std::span<std::byte> into) {
      return files_.read_at(file, begin + offset, into);
    };
  }

  Status put_files(std::size_t part_size) {
    std::vector<DigestedFile> found(listed_.size());
    const auto digest = [&](std::size_t i, std::span<std::byte> buffer) -> Status {
      const std::uint32_t file = listed_[i];
      const std::uint64_t bytes = plan_.file_sizes[file];
      const DigestBytes rest =
          SW_TRY(digest_rest(bytes, std::move(payloads_[i]), reader_of(file, 0), buffer));
      found[i] = {plan_.target.files[file].substr(part_size), bytes, rest};
      return {};
    };
    SW_TRY(on_threads(listed_.size(), digest));
    for (const DigestedFile& file : found) SW_TRY(put(line_of(file)));
    return {};
  }

  Status put_tensors() {
    const std::vector<StoredTensor>& tensors = plan_.target.tensors;
    for (std::uint32_t begin = 0; begin < tensors.size();) {
      std::uint32_t end = begin;
      for (std::size_t chunks = 0; end < tensors.size() && chunks < kWrittenChunks; ++end) {
        chunks += tensors[end].chunks.size() + 1;
      }
      SW_TRY(put_batch(begin, end));
      begin = end;
    }
    return {};
  }

  Status put_batch(std::uint32_t begin, std::uint32_t end) {
    std::vector<DigestedTensor> batch;
    std::vector<std::pair<std::size_t, std::uint32_t>> pieces;  // of the batch, and its chunk
    std::vector<std::size_t> places;                            // of each among its tensor's
    for (std::uint32_t t = begin; t < end; ++t) {
      const TensorDesc& desc = plan_.target.tensors[t].desc;
      DigestedTensor& tensor = batch.emplace_back();
      tensor.name = desc.name;
      tensor.dtype = torch_name(desc.dtype);
      tensor.shape.assign(desc.shape.begin(), desc.shape.end());
      for (std::uint32_t c = 0; c < plan_.target.tensors[t].chunks.size(); ++c) {
        const PayloadPlace place = SW_TRY(place_of_payload(plan_.target.tensors[t], c));
        const std::uint64_t bytes = payload_bytes(plan_.target.tensors[t], c);
        if (bytes == 0 || number_[place.file] == kUnlisted) continue;
        pieces.emplace_back(batch.size() - 1, c);
        places.push_back(tensor.chunks.size());
        tensor.chunks.push_back({number_[place.file], {place.offset, bytes}, {}});
      }
    }
    const auto digest = [&](std::size_t i, std::span<std::byte> buffer) -> Status {
      const auto [t, c] = pieces[i];
      DigestedChunk& chunk = batch[t].chunks[places[i]];
      chunk.digest = SW_TRY(
          digest_payload(chunk.range.length, reader_of(listed_[chunk.file], chunk.range.offset),
                         digests_.blocks(begin + static_cast<std::uint32_t>(t), c), buffer));
      return {};
    };
    SW_TRY(on_threads(pieces.size(), digest));
    std::string lines;
    for (DigestedTensor& tensor : batch) {
      tensor.digest = digest_of_pieces(tensor.chunks);
      lines += line_of(tensor);
    }
    return put(lines);
  }

  Status on_threads(std::size_t count,
                    const std::function<Status(std::size_t, std::span<std::byte>)>& work) const {
    std::atomic<std::size_t> next{0};
    return run_on_threads(threads_, {}, [&]() -> Status {
      if (next >= count) return {};
      const auto buffer = std::make_unique_for_overwrite<std::byte[]>(kDigestBlockBytes);
      for (std::size_t i = next++; i < count; i = next++) {
        SW_TRY(work(i, std::span(buffer.get(), static_cast<std::size_t>(kDigestBlockBytes))));
      }
      return {};
    });
  }

  const Plan& plan_;
  const PayloadDigests& digests_;
  int threads_;
  SourceFiles files_;
  std::unique_ptr<AppendFile> out_;
  Digest all_;
  std::vector<std::uint32_t> listed_;             // files of the plan
  std::vector<std::size_t> number_;               // of each file of the plan, in listed_
  std::vector<std::vector<ByteRange>> payloads_;  // of each listed file
};

}  // namespace

std::string digest_file_path(const Plan& plan) {
  return digested_folder(plan.target.files) + std::string(kDigestFile);
}

Status write_digest_file(const Directory& directory, const std::string& folder, const Plan& plan,
                         const PayloadDigests& digests, int threads) {
  return DigestWriter(directory, plan, digests, threads).write(folder);
}

}  // namespace shardwright
