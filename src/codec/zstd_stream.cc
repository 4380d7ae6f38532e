// SPDX-License-Identifier: Apache-2.0
#include "codec/zstd_stream.h"

#include <zstd.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "base/fail.h"

namespace shardwright {
namespace {

// The library's own default: frames that ask for a larger window need 128 MiB and more of memory.
constexpr int kMostWindowLog = 27;

struct FreeStream {
  void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
};

}  // namespace

Status decode_zstd(const ReadableFile& file, ByteRange range, std::uint64_t most_bytes,
                   const std::function<Status(std::span<const std::byte>)>& sink) {
  const auto refuse = [&](std::string_view found) {
    return fail(Code::kItemTransformed,
                "{}@{}: found {}, expected zstd frames; the file was damaged", file.name(),
                range.offset, found);
  };
  const std::unique_ptr<ZSTD_DStream, FreeStream> stream(ZSTD_createDStream());
  if (!stream) return fail(Code::kLimit, "out of memory for zstd");
  ZSTD_DCtx_setParameter(stream.get(), ZSTD_d_windowLogMax, kMostWindowLog);
  std::vector<std::byte> source(ZSTD_DStreamInSize());
  std::vector<std::byte> target(ZSTD_DStreamOutSize());
  std::uint64_t decoded = 0;
  std::size_t wanted = 1;  // 0 once a frame is complete
  for (std::uint64_t done = 0; done < range.length;) {
    const auto step =
        static_cast<std::size_t>(std::min<std::uint64_t>(source.size(), range.length - done));
    SW_TRY(file.read_at(range.offset + done, std::span(source).first(step)));
    done += step;
    ZSTD_inBuffer in{source.data(), step, 0};
    bool is_full = false;
    while (in.pos < in.size || is_full) {
      ZSTD_outBuffer out{target.data(), target.size(), 0};
      wanted = ZSTD_decompressStream(stream.get(), &out, &in);
      if (ZSTD_isError(wanted) != 0) return refuse(ZSTD_getErrorName(wanted));
      is_full = out.pos == out.size && wanted != 0;
      if (out.pos > most_bytes - decoded) {
        return fail(Code::kLimit, "{}@{}: found more than {} bytes behind zstd, expected fewer",
                    file.name(), range.offset, most_bytes);
      }
      decoded += out.pos;
      SW_TRY(sink(std::span<const std::byte>(target).first(out.pos)));
    }
  }
  if (wanted != 0) return refuse("the end within a frame");
  return {};
}

}  // namespace shardwright
