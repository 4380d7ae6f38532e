// SPDX-License-Identifier: Apache-2.0
#include "verify/payload_check.h"

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "base/crc32.h"
#include "base/fail.h"
#include "base/message.h"
#include "codec/torch_archive.h"
#include "codec/zip_reader.h"
#include "dcp/torch_items.h"
#include "io/prefetched_file.h"
#include "io/source_files.h"
#include "remote/open_path.h"
#include "verify/findings.h"
#include "verify/workload.h"

namespace shardwright {
namespace {

constexpr std::uint64_t kMostDeflatedBytes = std::uint64_t{16} << 20;
constexpr std::uint64_t kMagicBytes = 512;

// What was wrong with an item.
struct Told {
  Code code;
  std::string object;
  std::string message;
};

// What checking some items has shown.
struct Tally {
  std::uint64_t checked = 0;
  std::uint64_t unguarded = 0;
  std::uint64_t bytes = 0;
  std::vector<Told> told;

  [[nodiscard]] std::string in_bytes() const {
    MessageWriter message;
    message.number(checked).number(unguarded).number(bytes).number(told.size());
    for (const Told& one : told) {
      message.number(static_cast<std::uint64_t>(one.code)).text(one.object).text(one.message);
    }
    return message.take();
  }
  [[nodiscard]] static Result<Tally> from(const std::string& bytes) {
    MessageReader reader(bytes);
    Tally tally;
    tally.checked = SW_TRY(reader.number());
    tally.unguarded = SW_TRY(reader.number());
    tally.bytes = SW_TRY(reader.number());
    for (std::uint64_t count = SW_TRY(reader.number()); count > 0; --count) {
      const auto code = static_cast<Code>(SW_TRY(reader.number()));
      std::string object = SW_TRY(reader.text());
      tally.told.push_back({code, std::move(object), SW_TRY(reader.text())});
    }
    return tally;
  }
};

class Check {
 public:
  Check(const Checkpoint& checkpoint, const std::vector<PayloadItem>& items,
        const ProofOptions& options, VerifyReport& report)
      : checkpoint_(checkpoint),
        items_(items),
        workload_(options, total(items), is_remote_path(checkpoint.location.path)),
        block_bytes_(workload_.buffer_bytes(2)),
        report_(report) {}

  Status run() {
    make_jobs();
    const auto make_worker = [&]() -> JobWorker {
      const auto block = std::make_shared<std::vector<std::byte>>(block_bytes_);
      return [this, block](std::size_t job) -> Result<JobResult> {
        Tally tally;
        for (std::size_t item = job == 0 ? 0 : ends_[job - 1]; item < ends_[job]; ++item) {
          SW_TRY(check_item(items_[item], *block, tally));
        }
        return JobResult{tally.in_bytes()};
      };
    };
    for (const std::string& result :
         SW_TRY(workload_.share("reading the records", bytes_, make_worker))) {
      Tally tally = SW_TRY(Tally::from(result));
      report_.payloads_checked += tally.checked;
      report_.payloads_unguarded += tally.unguarded;
      report_.payload_bytes += tally.bytes;
      for (Told& one : tally.told) {
        add_finding(report_, one.code, std::move(one.object), std::move(one.message));
      }
    }
    return {};
  }

 private:
  static std::uint64_t total(const std::vector<PayloadItem>& items) {
    std::uint64_t bytes = 0;
    for (const PayloadItem& item : items) bytes += item.range.length;
    return bytes;
  }

  // Neighbours together.
  void make_jobs() {
    const std::uint64_t wanted = shared_job_bytes(total(items_));
    for (std::size_t i = 0; i < items_.size(); ++i) {
      const std::uint64_t bytes = items_[i].range.length;
      if (!bytes_.empty() && bytes_.back() + bytes <= wanted) {
        ends_.back() = i + 1;
        bytes_.back() += bytes;
      } else {
        ends_.push_back(i + 1);
        bytes_.push_back(bytes);
      }
    }
  }

  [[nodiscard]] const std::string& path_of(const PayloadItem& item) const {
    return checkpoint_.catalog.files[item.file];
  }

  void tell(const PayloadItem& item, const Error& error, Tally& tally) const {
    std::string message = error.message;
    // A reader's message may name the file already.
    if (message.find(path_of(item)) == std::string::npos) {
      message = fmt::format("{}@{}: {}", path_of(item), item.range.offset, message);
    }
    if (!item.name.empty()) message = fmt::format("{}: {}", item.name, message);
    tally.told.push_back({error.code, item.name.empty() ? path_of(item) : std::string(item.name),
                          std::move(message)});
  }

  Status check_item(const PayloadItem& item, std::vector<std::byte>& block, Tally& tally) {
    const auto open = SW_TRY(checkpoint_.files->get(item.file));
    PrefetchedFile file(*open);
    // A small archive costs one read.
    if (item.range.length <= block_bytes_) {
      SW_TRY(file.fetch(item.range.offset, item.range.length));
    }
    const auto archive = zip::Archive::open(file, item.range);
    if (!archive) {
      SW_TRY(tell_broken(item, file, archive.error(), tally));
    } else {
      for (const zip::Entry& entry : archive->entries()) {
        SW_TRY(check_record(item, *archive, entry, block, tally));
      }
    }
    workload_.add_bytes(item.range.length);
    tally.bytes += item.range.length;
    return {};
  }

  // What is no zip archive at all has no checksums: objects that were only pickled, files of before
  // torch 1.6.
  Status tell_broken(const PayloadItem& item, const ReadableFile& file, const Error& error,
                     Tally& tally) {
    std::string head(static_cast<std::size_t>(std::min(item.range.length, kMagicBytes)), '\0');
    SW_TRY(file.read_at(item.range.offset, std::as_writable_bytes(std::span(head))));
    const bool is_a_tensor = std::ranges::any_of(
        checkpoint_.catalog.tensors,
        [&](const StoredTensor& tensor) { return tensor.desc.name == item.name; });
    if (!is_a_tensor && identify_no_zip(head)) {
      ++tally.unguarded;
    } else {
      tell(item, error, tally);
    }
    return {};
  }

  Status check_record(const PayloadItem& item, const zip::Archive& archive, const zip::Entry& entry,
                      std::vector<std::byte>& block, Tally& tally) {
    const auto place = archive.locate(entry);
    if (!place) {
      tell(item, place.error(), tally);
      return {};
    }
    if (entry.bytes == 0) return {};
    if (entry.crc == 0) {
      ++tally.unguarded;
      return {};
    }
    if (entry.method != 0) {
      const auto bytes = archive.read(entry, kMostDeflatedBytes);
      if (!bytes) tell(item, bytes.error(), tally);
      tally.checked += bytes ? 1U : 0U;
      return {};
    }
    const std::uint32_t crc = SW_TRY(crc_of(archive.file(), *place, block));
    if (crc == entry.crc) {
      ++tally.checked;
      return {};
    }
    tell(item,
         Error{Code::kPayloadDamaged,
               translated("{}@{}: found CRC-32 {:08x} of record '{}' ({} bytes), expected {:08x}; "
                          "its bytes were altered, restore the file",
                          path_of(item), place->offset, crc, entry.name, place->length, entry.crc),
               0},
         tally);
    return {};
  }

  static Result<std::uint32_t> crc_of(const ReadableFile& file, ByteRange range,
                                      std::vector<std::byte>& block) {
    std::uint32_t crc = 0;
    for (std::uint64_t done = 0; done < range.length;) {
      const std::uint64_t step = std::min<std::uint64_t>(block.size(), range.length - done);
      const std::span<std::byte> bytes = std::span(block).first(static_cast<std::size_t>(step));
      SW_TRY(file.read_at(range.offset + done, bytes));
      crc = crc32(bytes, crc);
      done += step;
    }
    return crc;
  }

  const Checkpoint& checkpoint_;
  const std::vector<PayloadItem>& items_;
  Workload workload_;
  std::size_t block_bytes_;
  VerifyReport& report_;
  std::vector<std::size_t> ends_;     // of each job, in items_
  std::vector<std::uint64_t> bytes_;  // of each job
};

// Archives whose records are the model's tensors.
std::vector<PayloadItem> whole_files(const Checkpoint& checkpoint) {
  std::set<std::uint32_t> used;
  for (const StoredTensor& tensor : checkpoint.catalog.tensors) {
    for (std::size_t c = 0; c < tensor.chunks.size(); ++c) used.insert(tensor.chunks.file(c));
  }
  std::vector<PayloadItem> items;
  for (const std::uint32_t number : used) {
    const auto file = checkpoint.files->get(number);
    if (file) items.push_back({{0, (*file)->size()}, {}, number, 0});
  }
  return items;
}

// Files of torch.save that hold more than one tensor: a rank's, its optimizer's, the common state.
Status list_torch_files(Checkpoint& checkpoint, Defects& defects, std::vector<PayloadItem>& items) {
  const Directory& directory = *checkpoint.directory;
  const auto add = [&](const std::string& path, const DirectoryEntry& entry) -> Status {
    if (entry.is_directory || !entry.name.ends_with(".pt")) return {};
    if (entry.problem) return defects.report(std::unexpected(*entry.problem));
    const auto known = std::ranges::find(checkpoint.catalog.files, path);
    auto file = static_cast<std::uint32_t>(known - checkpoint.catalog.files.begin());
    if (known == checkpoint.catalog.files.end()) {
      file = checkpoint.files->add(path);
      checkpoint.catalog.files.push_back(path);
    }
    items.push_back({{0, entry.size_bytes}, {}, file, 0});
    return {};
  };
  for (const DirectoryEntry& entry : SW_TRY(directory.list(""))) {
    SW_TRY(add(entry.name, entry));
    // One that can't be read was reported when the ranks were.
    if (!entry.is_directory || entry.problem || !entry.name.starts_with("mp_rank_")) continue;
    for (const DirectoryEntry& inner : SW_TRY(directory.list(entry.name))) {
      SW_TRY(add(entry.name + "/" + inner.name, inner));
    }
  }
  return {};
}

// In the order of their places. What several tensors have in common is told of the first by name; a
// whole file is no item of its own.
void keep_one_each(std::vector<PayloadItem>& items) {
  std::ranges::sort(items, {}, [](const PayloadItem& item) {
    return std::tuple(item.file, item.range.offset, item.name, item.chunk);
  });
  const auto more = std::ranges::unique(items, {}, [](const PayloadItem& item) {
    return std::tuple(item.file, item.range.offset, item.name.empty());
  });
  items.erase(more.begin(), more.end());
}

}  // namespace

Result<std::vector<PayloadItem>> list_payloads(Checkpoint& checkpoint, Defects& defects) {
  std::vector<PayloadItem> items;
  const Records records = checkpoint.location.traits.records;
  if (records == Records::kFiles) return whole_files(checkpoint);
  if (records == Records::kNone) return items;
  for (const StoredTensor& tensor : checkpoint.catalog.tensors) {
    if (tensor.encoding != Encoding::kTorchItem) continue;
    for (std::uint32_t c = 0; c < tensor.chunks.size(); ++c) {
      if (tensor.chunks.box(c).is_empty() || is_safetensors_item(tensor, c)) continue;
      items.push_back({tensor.chunks.range(c), tensor.desc.name, tensor.chunks.file(c), c});
    }
  }
  for (const StoredObject& object : checkpoint.catalog.objects) {
    const auto file = checkpoint.files->get(object.file);
    const bool is_inside = file && object.range.offset <= (*file)->size() &&
                           object.range.length <= (*file)->size() - object.range.offset;
    if (is_inside) items.push_back({object.range, object.name, object.file, 0});
  }
  SW_TRY(list_torch_files(checkpoint, defects, items));
  keep_one_each(items);
  return items;
}

std::vector<PayloadItem> without_lost(std::vector<PayloadItem> items, const Defects& defects) {
  std::erase_if(items,
                [&](const PayloadItem& item) { return defects.is_lost(item.name, item.chunk); });
  return items;
}

Status check_payloads(const Checkpoint& checkpoint, const std::vector<PayloadItem>& items,
                      const ProofOptions& options, VerifyReport& report) {
  return Check(checkpoint, items, options, report).run();
}

}  // namespace shardwright
