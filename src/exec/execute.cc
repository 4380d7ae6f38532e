// SPDX-License-Identifier: Apache-2.0
#include "exec/execute.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "exec/finish_reading.h"
#include "exec/guarded_object.h"
#include "exec/payload_writer.h"
#include "exec/piece_in_work.h"
#include "exec/piece_sharing.h"
#include "exec/target_framing.h"
#include "exec/threads.h"
#include "exec/tile_reader.h"

namespace shardwright {
namespace {

constexpr std::uint64_t kLeastBufferBytes = std::uint64_t{64} << 10;

// A buffer that no thread shares and nothing resizes. Not cleared: touching it costs page faults.
struct Arena {
  explicit Arena(std::uint64_t bytes)
      : owned(std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(bytes))),
        memory(owned.get(), static_cast<std::size_t>(bytes)) {}
  std::unique_ptr<std::byte[]> owned;
  std::span<std::byte> memory;
};

// What the worker threads share.
class Run {
 public:
  Run(const Plan& plan, const PieceList& pieces, SourceFiles& files, TargetFiles& target,
      const TargetFraming& framing, PieceQueue& queue, const ExecuteOptions& options)
      : plan_(plan),
        pieces_(pieces),
        files_(files),
        framing_(framing),
        queue_(queue),
        options_(options),
        lowering_(plan),
        writer_(plan, target) {
    const std::uint64_t threads = static_cast<std::uint64_t>(std::max(options.threads, 1));
    half_ = std::max(options.buffer_bytes / threads, kLeastBufferBytes) / 2;
    const std::int64_t tile = static_cast<std::int64_t>(std::min(half_, options.tile_bytes));
    tile_bytes_.reserve(plan.target.tensors.size());
    for (std::size_t i = 0; i < plan.target.tensors.size(); ++i) {
      // A transposed view reads whole source rows for a few target rows, and what is quantised
      // whole blocks: large tiles waste less.
      const bool is_large = is_transposed(i) || plan.tensors[i].quantising != nullptr;
      tile_bytes_.push_back(is_large ? static_cast<std::int64_t>(half_) : tile);
    }
  }

  [[nodiscard]] Status work(Arena& arena);
  [[nodiscard]] std::uint64_t bytes_done() const { return bytes_done_; }
  [[nodiscard]] std::uint64_t arena_bytes() const { return 2 * half_; }

 private:
  struct Step {
    std::shared_ptr<PieceInWork> piece;
    const TileJob* job = nullptr;
  };

  void stop() {
    stop_ = true;
    queue_.close();
  }
  [[nodiscard]] bool is_transposed(std::size_t tensor) const;
  [[nodiscard]] Step next_step();
  [[nodiscard]] Status do_step(const Step& step, Arena& arena);
  [[nodiscard]] Status finish(PieceInWork& piece);
  [[nodiscard]] Status fill_tile(const TileJob& job, Arena& arena, std::vector<WrittenRun>& runs);
  [[nodiscard]] Status write_tile(std::uint32_t tensor, std::span<const std::uint32_t> chunks,
                                  std::span<const TilePart> parts, std::vector<WrittenRun>& runs);
  [[nodiscard]] Status copy_object(std::uint32_t object, Arena& arena,
                                   std::vector<WrittenRun>& runs);

  const Plan& plan_;
  const PieceList& pieces_;
  SourceFiles& files_;
  const TargetFraming& framing_;
  PieceQueue& queue_;
  const ExecuteOptions& options_;
  Lowering lowering_;
  PayloadWriter writer_;
  std::uint64_t half_ = 0;  // of a thread's buffer: the tile, and the scratch
  TileBytes tile_bytes_;
  std::mutex mutex_;
  std::shared_ptr<PieceInWork> current_;  // of which steps are left
  bool has_more_ = true;
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> bytes_done_{0};
};

// By a view, or as its source is stored.
bool Run::is_transposed(std::size_t tensor) const {
  for (const TensorView& view : plan_.tensors[tensor].views) {
    const ChunkList& chunks = plan_.source.tensors[view.source].chunks;
    const bool may_be_stored_so = !plan_.quantised.empty() && chunks.size() == 1;
    const Dims strides = may_be_stored_so ? chunks[0].strides : Dims();
    std::int64_t previous = -1;
    for (const std::int64_t axis : view.axis) {
      if (axis < 0) continue;
      if (axis < previous) return true;
      const int before = static_cast<int>(previous);
      if (before >= 0 && !strides.empty() && strides[before] < strides[static_cast<int>(axis)]) {
        return true;
      }
      previous = axis;
    }
  }
  return false;
}

// All threads work on one piece until its steps are taken. A thread that waits for the next piece
// lets the others wait too: there is nothing to do.
Run::Step Run::next_step() {
  const std::scoped_lock lock(mutex_);
  while (has_more_) {
    if (current_ != nullptr) {
      if (const TileJob* job = current_->take()) return {current_, job};
    }
    const std::optional<std::uint32_t> piece = queue_.take();
    has_more_ = piece.has_value();
    current_ =
        has_more_ ? std::make_shared<PieceInWork>(plan_, pieces_, *piece, tile_bytes_) : nullptr;
  }
  return {};
}

Status Run::work(Arena& arena) {
  while (!stop_) {
    if (options_.cancelled != nullptr && *options_.cancelled) {
      stop();
      return fail(Code::kCancelled, "stopped before the checkpoint was complete");
    }
    const Step step = next_step();
    if (step.job == nullptr) return {};
    Status status = do_step(step, arena);
    if (!status) {
      stop();
      return status;
    }
  }
  return {};
}

Status Run::do_step(const Step& step, Arena& arena) {
  std::vector<WrittenRun> runs;
  const TileJob& job = *step.job;
  SW_TRY(job.unit.is_object() ? copy_object(job.unit.index, arena, runs)
                              : fill_tile(job, arena, runs));
  return step.piece->add(std::move(runs)) ? finish(*step.piece) : Status{};
}

Status Run::finish(PieceInWork& piece) {
  const std::vector<WrittenRun> runs = piece.joined(pieces_.runs(piece.piece()));
  SW_TRY(framing_.frame_all(runs));
  PieceCrcs crcs;
  crcs.reserve(runs.size());
  for (const WrittenRun& run : runs) crcs.push_back(run.crc);
  return queue_.finish(piece.piece(), std::move(crcs));
}

Status Run::fill_tile(const TileJob& job, Arena& arena, std::vector<WrittenRun>& runs) {
  const std::uint32_t tensor = job.unit.index;
  const StoredTensor& target = plan_.target.tensors[tensor];
  const int element_bytes = bytes_of(target.desc.dtype);

  std::vector<std::uint32_t> chunks;
  pieces_.find_chunks(tensor, job.tile, chunks);
  std::vector<TilePart> parts;
  std::byte* place = arena.memory.data();
  for (const std::uint32_t chunk : chunks) {
    const Box box = *intersect(job.tile, target.chunks.box(chunk));
    if (!parts.empty() && parts.back().box == box) continue;  // a replica: they stand in a row
    parts.push_back(dense_part(box, place, element_bytes));
    place += box.volume() * element_bytes;
  }
  const std::size_t filled = static_cast<std::size_t>(place - arena.memory.data());
  TileReader reader(plan_, lowering_, files_,
                    arena.memory.subspan(static_cast<std::size_t>(half_)));
  SW_TRY(reader.read(tensor, job.tile, arena.memory.first(filled), parts));
  SW_TRY(write_tile(tensor, chunks, parts, runs));
  for (std::uint32_t next = tensor + 1; pieces_.is_repeated(next); ++next) {
    SW_TRY(write_tile(next, chunks, parts, runs));
  }
  return {};
}

Status Run::write_tile(std::uint32_t tensor, std::span<const std::uint32_t> chunks,
                       std::span<const TilePart> parts, std::vector<WrittenRun>& runs) {
  const StoredTensor& target = plan_.target.tensors[tensor];
  auto part = parts.begin();
  for (const std::uint32_t chunk : chunks) {
    const Box whole = target.chunks.box(chunk);
    if (!contains(whole, part->box)) ++part;  // those that share one are replicas
    const ByteRange range = run_in_chunk(whole, part->box, bytes_of(target.desc.dtype));
    const PieceRun run{tensor, chunk, range.offset, range.length};
    const std::span bytes(part->bytes, static_cast<std::size_t>(range.length));
    runs.push_back(SW_TRY(writer_.write(run, bytes)));
    if (options_.digests != nullptr) options_.digests->add(run, bytes);
    bytes_done_ += range.length;
  }
  return {};
}

Status Run::copy_object(std::uint32_t object, Arena& arena, std::vector<WrittenRun>& runs) {
  const StoredObject& source = plan_.source.objects[plan_.objects[object].source];
  SW_TRY(expect_object(files_, source));
  for (std::uint64_t done = 0; done < source.range.length;) {
    const std::uint64_t step =
        std::min<std::uint64_t>(arena.memory.size(), source.range.length - done);
    const std::span<std::byte> buffer = arena.memory.first(static_cast<std::size_t>(step));
    SW_TRY(files_.read_at(source.file, source.range.offset + done, buffer));
    runs.push_back(SW_TRY(writer_.write({object, PieceRun::kObject, done, step}, buffer)));
    done += step;
    bytes_done_ += step;
  }
  return {};
}

// One process does all that is not done.
class AllPieces final : public PieceQueue {
 public:
  explicit AllPieces(WholeRun& run) : run_(run) {}

  std::optional<std::uint32_t> take() override {
    while (next_ < run_.finished.size() && run_.finished[next_]) ++next_;
    if (next_ >= run_.finished.size()) return std::nullopt;
    return next_++;
  }
  // Of `finished` each thread touches another element, and take() none that is being done.
  Status finish(std::uint32_t piece, PieceCrcs crcs) override {
    if (run_.on_finished) SW_TRY(run_.on_finished(piece, crcs));
    run_.finished[piece] = std::move(crcs);
    return {};
  }

 private:
  WholeRun& run_;
  std::uint32_t next_ = 0;
};

// The same with others, who write nothing any more when this has failed.
Status execute_shared(const Plan& plan, const PieceList& pieces, SourceFiles& files,
                      TargetFiles& target, const TargetFraming& framing, WholeRun& run,
                      const ExecuteOptions& options) {
  const auto share_out = [&]() -> Status {
    SW_TRY(run.sharing->begin(pieces, run));
    SW_TRY(execute_pieces(plan, pieces, files, target, framing, run.sharing->queue(), options));
    return run.sharing->finish();
  };
  Status status = share_out();
  if (!status) run.sharing->stop(status.error());
  return status;
}

// What an earlier run wrote may lack its framing: that is not what its CRC-32s are of.
Status frame_finished(const PieceList& pieces, const FinishedPieces& finished,
                      const TargetFraming& framing) {
  for (std::uint32_t piece = 0; piece < pieces.size(); ++piece) {
    if (!finished[piece]) continue;
    const std::vector<PieceRun> runs = pieces.runs(piece);
    std::vector<WrittenRun> written;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      written.push_back({runs[i], (*finished[piece])[i], false});
    }
    SW_TRY(framing.frame_all(written));
  }
  return {};
}

}  // namespace

Status execute_pieces(const Plan& plan, const PieceList& pieces, SourceFiles& files,
                      TargetFiles& target, const TargetFraming& framing, PieceQueue& queue,
                      const ExecuteOptions& options) {
  const LastReading last(files);
  Run run(plan, pieces, files, target, framing, queue, options);
  const auto report_progress = [&] {
    if (options.on_progress) options.on_progress({run.bytes_done(), pieces.total_bytes()});
  };
  const auto move_tensors = [&]() -> Status {
    Arena arena(run.arena_bytes());
    return run.work(arena);
  };
  SW_TRY(run_on_threads(options.threads, report_progress, move_tensors));
  report_progress();
  return read_begun_records(files, options.threads, options.buffer_bytes);
}

Status execute(const Plan& plan, const PieceList& pieces, SourceFiles& files, Directory& target,
               WholeRun run, const ExecuteOptions& options) {
  const bool goes_on = !run.finished.empty();
  run.finished.resize(pieces.size());
  TargetFiles written(plan, target);
  SW_TRY(goes_on ? written.open_all() : written.create_all());
  const TargetFraming framing(plan, written);
  SW_TRY(framing.write_known());
  SW_TRY(frame_finished(pieces, run.finished, framing));
  if (run.sharing == nullptr) {
    AllPieces queue(run);
    SW_TRY(execute_pieces(plan, pieces, files, written, framing, queue, options));
  } else {
    SW_TRY(execute_shared(plan, pieces, files, written, framing, run, options));
  }
  SW_TRY(framing.finish(pieces, run.finished));
  return written.sync(options.threads);
}

Status execute(const Plan& plan, SourceFiles& files, Directory& target,
               const ExecuteOptions& options) {
  const PieceList pieces(plan, default_piece_bytes(cost_of(plan).bytes_written));
  return execute(plan, pieces, files, target, {}, options);
}

}  // namespace shardwright
