// SPDX-License-Identifier: Apache-2.0
// Files of torch.distributed.checkpoint at training time: items whose payloads lie in memory.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "_values.h"
#include "base/crc32.h"
#include "base/endian.h"
#include "base/fail.h"
#include "codec/torch_item.h"
#include "exec/threads.h"
#include "layout/shard_distribution.h"
#include "shardwright/storage.h"

namespace nb = nanobind;

namespace shardwright::python {
namespace {

using Payload = nb::ndarray<const std::uint8_t, nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/// Name, torch's dtype or "" for plain bytes, shape (of bytes: their number).
using Described = std::tuple<std::string, std::string, std::vector<std::int64_t>>;

/// Key, offset and bytes of a shard, and who holds it.
using Shared =
    std::tuple<std::string, std::vector<std::int64_t>, std::uint64_t, std::vector<std::uint32_t>>;

// What a thread takes at once: enough to keep a disk busy, little enough to share out a tensor.
constexpr std::uint64_t kRunBytes = std::uint64_t{4} << 20;

// An item and where it lies. `archive` is empty for plain bytes.
struct Item {
  std::string name;
  std::optional<TensorItem> archive;
  ByteRange range;
  std::uint64_t payload = 0;
};

// A part of an item's payload, written by one thread.
struct Run {
  std::size_t item = 0;
  std::uint64_t offset = 0;
  std::span<const std::byte> bytes;
};

// The CRC-32s of an item's runs, until the last is there.
struct Sums {
  std::vector<std::uint32_t> crcs;
  std::atomic<std::size_t> missing{0};
};

// Writes one `.distcp` file, whose items are known before: laid out at once, written in any number
// of calls. Not safe for concurrent use.
class ItemWriter {
 public:
  ItemWriter(const nb::bytes& folder, const std::string& name,
             const std::vector<Described>& described) {
    std::uint64_t end = 0;
    for (const auto& [item_name, dtype, shape] : described) {
      items_.push_back(lay_out(item_name, dtype, shape, end));
      end += items_.back().range.length;
    }
    const std::string path = to_path(folder);
    const nb::gil_scoped_release unlocked;
    const auto directory = take(open_local_directory(path));
    file_ = take(directory->create(name, end));
  }

  /// Offset and length of each item, in the order in which they were described.
  [[nodiscard]] std::vector<std::pair<std::uint64_t, std::uint64_t>> places() const {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> places;
    for (const Item& item : items_) places.emplace_back(item.range.offset, item.range.length);
    return places;
  }

  /// Writes the items from the `first` on, each with its payload, by `threads` threads (0: one for
  /// each processor).
  void write(std::size_t first, const std::vector<Payload>& payloads, int threads) {
    if (first > items_.size() || payloads.size() > items_.size() - first) {
      throw nb::value_error("more payloads than items");
    }
    std::vector<Run> runs;
    std::vector<Sums> sums(payloads.size());
    for (std::size_t i = 0; i < payloads.size(); ++i) {
      const std::span bytes(reinterpret_cast<const std::byte*>(payloads[i].data()),
                            payloads[i].size());
      add_runs(first + i, bytes, runs, sums[i]);
    }
    const nb::gil_scoped_release unlocked;
    std::atomic<std::size_t> next{0};
    const auto work = [&]() -> Status {
      for (std::size_t i = next++; i < runs.size(); i = next++) {
        const Status written = write_run(runs[i], sums[runs[i].item - first]);
        if (written) continue;
        next = runs.size();  // the others need not go on
        return written;
      }
      return {};
    };
    const auto most = static_cast<int>(std::min<std::size_t>(runs.size(), 64));
    take(run_on_threads(std::min(thread_count(threads), std::max(most, 1)), {}, work));
    written_ += payloads.size();
  }

  /// Makes the file durable. Raises ValueError unless every item was written.
  void finish() {
    if (written_ != items_.size()) throw nb::value_error("not all items were written");
    const nb::gil_scoped_release unlocked;
    take(file_->sync());
    file_.reset();
  }

 private:
  static Item lay_out(const std::string& name, const std::string& dtype,
                      const std::vector<std::int64_t>& shape, std::uint64_t base) {
    if (dtype.empty()) {
      const auto length = static_cast<std::uint64_t>(shape.at(0));
      return {name, std::nullopt, {base, length}, length};
    }
    const auto known = dtype_from_torch(dtype);
    if (!known) {
      take(Status(fail(Code::kDtypeUnsupported, "tensor {}: found type {}, expected one that {}",
                       name, dtype, "shardwright knows")));
    }
    const Dims dims = to_dims(shape);
    auto archive = take(TensorItem::make(*known, dims, base));
    const std::uint64_t length = archive.size();
    const auto payload = static_cast<std::uint64_t>(take(byte_count(dims, *known)));
    return {name, std::move(archive), {base, length}, payload};
  }

  void add_runs(std::size_t index, std::span<const std::byte> bytes, std::vector<Run>& runs,
                Sums& sums) const {
    const Item& item = items_[index];
    if (bytes.size() != item.payload) {
      take(Status(fail(Code::kShapeMismatch, "item {}: found {} bytes, expected {}", item.name,
                       bytes.size(), item.payload)));
    }
    const std::uint64_t count =
        std::max<std::uint64_t>((bytes.size() + kRunBytes - 1) / kRunBytes, 1);
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t offset = i * kRunBytes;
      runs.push_back(
          {index, offset,
           bytes.subspan(offset, std::min<std::uint64_t>(kRunBytes, bytes.size() - offset))});
    }
    sums.crcs.resize(count);
    sums.missing = count;
  }

  // The run's bytes; an archive's framing goes along with its last run.
  Status write_run(const Run& run, Sums& sums) const {
    const Item& item = items_[run.item];
    if (!item.archive) {
      SW_TRY(file_->write_at(item.range.offset + run.offset, run.bytes));
      file_->start_writeback(item.range.offset + run.offset, run.bytes.size());
      return {};
    }
    sums.crcs[run.offset / kRunBytes] = crc32(run.bytes);
    const bool is_whole = run.bytes.size() == item.payload;
    if (is_whole) return write_whole(item, run.bytes, sums.crcs[0]);
    const std::uint64_t at = item.range.offset + item.archive->payload_offset() + run.offset;
    SW_TRY(file_->write_at(at, run.bytes));
    file_->start_writeback(at, run.bytes.size());
    if (--sums.missing > 0) return {};
    return write_framing(item, sums.crcs);
  }

  Status write_whole(const Item& item, std::span<const std::byte> payload,
                     std::uint32_t crc) const {
    const std::string head = item.archive->head();
    const std::string tail = item.archive->tail(crc);
    const std::array<std::span<const std::byte>, 3> pieces = {as_bytes(head), payload,
                                                              as_bytes(tail)};
    SW_TRY(file_->write_at(item.range.offset, pieces));
    file_->start_writeback(item.range.offset, item.range.length);
    return {};
  }

  Status write_framing(const Item& item, const std::vector<std::uint32_t>& crcs) const {
    std::uint32_t crc = 0;
    for (std::size_t i = 0; i < crcs.size(); ++i) {
      const std::uint64_t offset = i * kRunBytes;
      crc = crc32_combine(crc, crcs[i], std::min(kRunBytes, item.payload - offset));
    }
    const std::string tail = item.archive->tail(crc);
    SW_TRY(file_->write_at(item.range.offset, as_bytes(item.archive->head())));
    return file_->write_at(item.range.offset + item.range.length - tail.size(), as_bytes(tail));
  }

  std::vector<Item> items_;
  std::unique_ptr<WritableFile> file_;
  std::size_t written_ = 0;
};

// By shard, which of the `ranks` writes it.
std::vector<std::uint32_t> distribute(const std::vector<Shared>& shared, std::size_t ranks) {
  std::vector<SharedShard> shards;
  for (const auto& [key, offset, bytes, holders] : shared) {
    const bool fits = std::ranges::all_of(holders, [&](auto rank) { return rank < ranks; });
    if (holders.empty() || !fits) throw nb::value_error("a shard without holders in the group");
    shards.push_back({.key = key, .offset = to_dims(offset), .bytes = bytes, .holders = holders});
  }
  return distribute_shards(shards, ranks).reader;
}

}  // namespace

void bind_writing(nb::module_& module) {
  nb::class_<ItemWriter>(module, "ItemWriter")
      .def(nb::init<const nb::bytes&, const std::string&, const std::vector<Described>&>(),
           nb::arg("folder"), nb::arg("name"), nb::arg("items"))
      .def("places", &ItemWriter::places)
      .def("write", &ItemWriter::write, nb::arg("first"), nb::arg("payloads"),
           nb::arg("threads") = 0)
      .def("finish", &ItemWriter::finish);
  module.def("distribute_shards", &distribute, nb::arg("shards"), nb::arg("ranks"));
  module.def(
      "knows_dtype", [](const std::string& name) { return dtype_from_torch(name).has_value(); },
      nb::arg("name"));
}

}  // namespace shardwright::python
