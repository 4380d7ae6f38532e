// SPDX-License-Identifier: Apache-2.0
#include "exec/execute.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "exec/finish_reading.h"
#include "exec/guarded_object.h"
#include "exec/target_writer.h"
#include "exec/threads.h"
#include "exec/tile_grid.h"
#include "exec/tile_reader.h"
#include "plan/repeated_tensors.h"

namespace shardwright {
namespace {

constexpr std::uint64_t kLeastBufferBytes = std::uint64_t{64} << 10;
// Beyond this a tile gains nothing and falls out of the cache.
constexpr std::uint64_t kMostTileBytes = std::uint64_t{4} << 20;

// One piece of work: a tile of a tensor, or a copied object.
struct Job {
  std::uint32_t index = 0;    // of the target tensor or object
  std::int64_t ordinal = -1;  // of the tile; -1 for objects
};

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
  Run(const Plan& plan, SourceFiles& files, TargetWriter& writer, const ExecuteOptions& options)
      : plan_(plan), files_(files), writer_(writer), options_(options), lowering_(plan) {
    const std::uint64_t threads = static_cast<std::uint64_t>(std::max(options.threads, 1));
    half_ = std::max(options.buffer_bytes / threads, kLeastBufferBytes) / 2;
    const std::int64_t tile = static_cast<std::int64_t>(std::min(half_, kMostTileBytes));
    const std::vector<bool> repeated = repeated_tensors(plan);
    for (std::size_t i = 0; i < plan.target.tensors.size(); ++i) {
      const TensorDesc& desc = plan.target.tensors[i].desc;
      // A transposed view reads whole source rows for a few target rows: large tiles waste less.
      const std::int64_t bytes = is_transposed(i) ? static_cast<std::int64_t>(half_) : tile;
      grids_.emplace_back(desc.shape, bytes_of(desc.dtype), bytes);
      is_repeated_.push_back(repeated[i]);
      for (std::int64_t ordinal = 0; !repeated[i] && ordinal < grids_.back().count(); ++ordinal) {
        jobs_.push_back({static_cast<std::uint32_t>(i), ordinal});
      }
      chunk_indexes_.emplace_back(plan.target.tensors[i].chunks);
    }
    for (std::size_t i = 0; i < plan.objects.size(); ++i) {
      if (plan.objects[i].is_copy) jobs_.push_back({static_cast<std::uint32_t>(i), -1});
    }
  }

  [[nodiscard]] Status work(Arena& arena);
  [[nodiscard]] std::uint64_t bytes_done() const { return bytes_done_; }
  [[nodiscard]] std::uint64_t arena_bytes() const { return 2 * half_; }

 private:
  [[nodiscard]] bool is_transposed(std::size_t tensor) const;
  [[nodiscard]] Status fill_tile(const Job& job, Arena& arena);
  [[nodiscard]] Status write_tile(std::size_t tensor, std::span<const std::uint32_t> chunks,
                                  std::span<const Part> parts);
  [[nodiscard]] Status copy_object(std::size_t object, Arena& arena);

  const Plan& plan_;
  SourceFiles& files_;
  TargetWriter& writer_;
  const ExecuteOptions& options_;
  Lowering lowering_;
  std::uint64_t half_ = 0;  // of a thread's buffer: the tile, and the scratch
  std::vector<TileGrid> grids_;
  std::vector<ChunkIndex> chunk_indexes_;
  std::vector<bool> is_repeated_;  // its tiles come with those of the tensor in front
  std::vector<Job> jobs_;
  std::atomic<std::size_t> next_job_{0};
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> bytes_done_{0};
};

bool Run::is_transposed(std::size_t tensor) const {
  for (const TensorView& view : plan_.tensors[tensor].views) {
    std::int64_t previous = -1;
    for (const std::int64_t axis : view.axis) {
      if (axis >= 0 && axis < previous) return true;
      previous = std::max(previous, axis);
    }
  }
  return false;
}

Status Run::work(Arena& arena) {
  while (!stop_) {
    if (options_.cancelled != nullptr && *options_.cancelled) {
      stop_ = true;
      return fail(Code::kCancelled, "stopped before the checkpoint was complete");
    }
    const std::size_t next = next_job_++;
    if (next >= jobs_.size()) return {};
    const Job& job = jobs_[next];
    Status status = job.ordinal >= 0 ? fill_tile(job, arena) : copy_object(job.index, arena);
    if (!status) {
      stop_ = true;
      return status;
    }
  }
  return {};
}

Status Run::fill_tile(const Job& job, Arena& arena) {
  const StoredTensor& target = plan_.target.tensors[job.index];
  const int element_bytes = bytes_of(target.desc.dtype);
  const Box tile = grids_[job.index].tile(job.ordinal);

  std::vector<std::uint32_t> chunks;
  chunk_indexes_[job.index].find(tile, chunks);
  std::vector<Part> parts;
  std::byte* place = arena.memory.data();
  for (const std::uint32_t chunk : chunks) {
    const Box box = *intersect(tile, target.chunks.box(chunk));
    parts.push_back(dense_part(box, place, element_bytes));
    place += box.volume() * element_bytes;
  }
  const std::size_t filled = static_cast<std::size_t>(place - arena.memory.data());
  TileReader reader(plan_, lowering_, files_,
                    arena.memory.subspan(static_cast<std::size_t>(half_)));
  SW_TRY(reader.read(job.index, tile, arena.memory.first(filled), parts));
  SW_TRY(write_tile(job.index, chunks, parts));
  for (std::size_t next = job.index + 1; next < is_repeated_.size() && is_repeated_[next]; ++next) {
    SW_TRY(write_tile(next, chunks, parts));
  }
  return {};
}

Status Run::write_tile(std::size_t tensor, std::span<const std::uint32_t> chunks,
                       std::span<const Part> parts) {
  const StoredTensor& target = plan_.target.tensors[tensor];
  const int element_bytes = bytes_of(target.desc.dtype);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Box whole = target.chunks.box(chunks[i]);
    const Dims strides = row_major_strides(whole.shape);
    std::int64_t first = 0;
    for (int axis = 0; axis < whole.axes(); ++axis) {
      first += (parts[i].box.origin[axis] - whole.origin[axis]) * strides[axis];
    }
    const std::size_t bytes = static_cast<std::size_t>(parts[i].box.volume() * element_bytes);
    SW_TRY(writer_.write_run(tensor, chunks[i], static_cast<std::uint64_t>(first * element_bytes),
                             std::span(parts[i].bytes, bytes)));
    bytes_done_ += bytes;
  }
  return {};
}

Status Run::copy_object(std::size_t object, Arena& arena) {
  const StoredObject& source = plan_.source.objects[plan_.objects[object].source];
  const StoredObject& target = plan_.target.objects[object];
  SW_TRY(expect_object(files_, source));
  for (std::uint64_t done = 0; done < source.range.length;) {
    const std::uint64_t step =
        std::min<std::uint64_t>(arena.memory.size(), source.range.length - done);
    const std::span<std::byte> buffer = arena.memory.first(static_cast<std::size_t>(step));
    SW_TRY(files_.read_at(source.file, source.range.offset + done, buffer));
    SW_TRY(writer_.write_raw(target.file, target.range.offset + done, buffer));
    done += step;
    bytes_done_ += step;
  }
  return {};
}

}  // namespace

Result<ExecuteReport> execute(const Plan& plan, SourceFiles& files, Directory& target,
                              const ExecuteOptions& options) {
  TargetWriter writer(plan, target);
  SW_TRY(writer.create());
  Run run(plan, files, writer, options);
  std::uint64_t total = 0;
  for (const StoredTensor& tensor : plan.target.tensors) {
    total += static_cast<std::uint64_t>(SW_TRY(byte_count(tensor.desc.shape, tensor.desc.dtype)));
  }
  const auto report_progress = [&] {
    if (options.on_progress) options.on_progress({run.bytes_done(), total});
  };
  const auto move_tensors = [&]() -> Status {
    Arena arena(run.arena_bytes());
    return run.work(arena);
  };
  SW_TRY(run_on_threads(options.threads, report_progress, move_tensors));
  SW_TRY(read_begun_records(files, options.threads, options.buffer_bytes));
  std::atomic<std::size_t> next_file{0};
  const auto make_durable = [&]() -> Status {
    for (std::size_t file = next_file++; file < writer.file_count(); file = next_file++) {
      SW_TRY(writer.sync(file));
    }
    return {};
  };
  SW_TRY(run_on_threads(options.threads, report_progress, make_durable));
  report_progress();
  return ExecuteReport{run.bytes_done()};
}

}  // namespace shardwright
