// SPDX-License-Identifier: Apache-2.0
#include "codec/zstd_stream.h"

#include <zstd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/endian.h"
#include "base/fail.h"

namespace shardwright {
namespace {

// The library's own default: frames that ask for a larger window need 128 MiB and more of memory.
constexpr int kMostWindowLog = 27;
// Of a frame's header, which tells the decoded size where the writer knew it.
constexpr std::size_t kFrameHeadBytes = 18;
constexpr std::string_view kFrameMagic = "\x28\xb5\x2f\xfd";

struct FreeStream {
  void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
};

/// One layer: takes compressed bytes, hands on what they give.
class Layer {
 public:
  Layer(std::string where, std::uint64_t most_bytes, int layers_left, const ByteSink& sink)
      : where_(std::move(where)),
        most_bytes_(most_bytes),
        layers_left_(layers_left),
        sink_(sink),
        stream_(ZSTD_createDStream()),
        target_(ZSTD_DStreamOutSize()) {
    if (stream_) ZSTD_DCtx_setParameter(stream_.get(), ZSTD_d_windowLogMax, kMostWindowLog);
  }

  Status push(std::span<const std::byte> bytes) {
    if (!stream_) return fail(Code::kOutOfMemory, "{}: no memory for zstd", where_);
    SW_TRY(check_announced(bytes));
    ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
    bool is_full = false;
    while (in.pos < in.size || is_full) {
      ZSTD_outBuffer out{target_.data(), target_.size(), 0};
      wanted_ = ZSTD_decompressStream(stream_.get(), &out, &in);
      if (ZSTD_isError(wanted_) != 0) return refuse(ZSTD_getErrorName(wanted_));
      is_full = out.pos == out.size && wanted_ != 0;
      if (out.pos > most_bytes_ - decoded_) return refuse_size(decoded_ + out.pos);
      decoded_ += out.pos;
      SW_TRY(hand_on(std::span<const std::byte>(target_).first(out.pos)));
    }
    return {};
  }

  Status finish() {
    if (wanted_ != 0) return refuse("the end within a frame");
    if (inner_) return inner_->finish();
    return head_.empty() ? Status() : sink_(as_bytes(head_));
  }

 private:
  // A frame of known size is refused before the first byte of it is decoded.
  Status check_announced(std::span<const std::byte> bytes) {
    if (announced_.size() >= kFrameHeadBytes || is_announced_) return {};
    for (const std::byte byte : bytes.first(std::min(bytes.size(), kFrameHeadBytes))) {
      announced_ += static_cast<char>(byte);
    }
    const unsigned long long size = ZSTD_getFrameContentSize(announced_.data(), announced_.size());
    if (size == ZSTD_CONTENTSIZE_ERROR) return {};
    is_announced_ = true;
    if (size == ZSTD_CONTENTSIZE_UNKNOWN || size <= most_bytes_) return {};
    return refuse_size(size);
  }

  // The first bytes tell whether this is the last layer.
  Status hand_on(std::span<const std::byte> bytes) {
    if (inner_) return inner_->push(bytes);
    if (is_last_) return sink_(bytes);
    const std::size_t count = std::min(bytes.size(), kFrameMagic.size() - head_.size());
    for (const std::byte byte : bytes.first(count)) head_ += static_cast<char>(byte);
    if (head_.size() < kFrameMagic.size()) return {};
    const std::string head = std::move(head_);
    head_.clear();
    is_last_ = head != kFrameMagic;
    if (!is_last_) {
      if (layers_left_ == 1) return refuse("more layers of zstd than any writer makes");
      inner_ = std::make_unique<Layer>(where_, most_bytes_, layers_left_ - 1, sink_);
    }
    SW_TRY(is_last_ ? sink_(as_bytes(head)) : inner_->push(as_bytes(head)));
    return bytes.size() > count ? hand_on(bytes.subspan(count)) : Status();
  }

  [[nodiscard]] Status refuse(std::string_view found) const {
    return fail(Code::kItemTransformed, "{}: found {}, expected zstd frames; the file was damaged",
                where_, found);
  }
  [[nodiscard]] Status refuse_size(std::uint64_t bytes) const {
    return fail(Code::kLimit,
                "{}: found {} bytes behind zstd, expected at most {}; the file was damaged or made "
                "to exhaust the disk, get it again from who wrote it",
                where_, bytes, most_bytes_);
  }

  std::string where_;
  std::uint64_t most_bytes_;
  int layers_left_;
  const ByteSink& sink_;
  std::unique_ptr<ZSTD_DStream, FreeStream> stream_;
  std::vector<std::byte> target_;
  std::unique_ptr<Layer> inner_;
  std::string announced_;  // the first bytes
  bool is_announced_ = false;
  std::string head_;  // what was decoded before is_last_ or inner_ were known
  bool is_last_ = false;
  std::uint64_t decoded_ = 0;
  std::size_t wanted_ = 1;  // 0 once a frame is complete
};

}  // namespace

Status decode_zstd(const ReadableFile& file, ByteRange range, std::uint64_t most_bytes,
                   int most_layers, const ByteSink& sink) {
  Layer layer(fmt::format("{}@{}", file.name(), range.offset), most_bytes, most_layers, sink);
  std::vector<std::byte> source(ZSTD_DStreamInSize());
  for (std::uint64_t done = 0; done < range.length;) {
    const auto step =
        static_cast<std::size_t>(std::min<std::uint64_t>(source.size(), range.length - done));
    SW_TRY(file.read_at(range.offset + done, std::span(source).first(step)));
    done += step;
    SW_TRY(layer.push(std::span<const std::byte>(source).first(step)));
  }
  return layer.finish();
}

}  // namespace shardwright
