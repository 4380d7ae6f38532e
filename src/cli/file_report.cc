// SPDX-License-Identifier: Apache-2.0
#include "cli/file_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <span>

#include "base/endian.h"
#include "base/fail.h"
#include "cli/quantity.h"
#include "codec/pickle_decode.h"
#include "codec/safetensors_header.h"
#include "codec/torch_archive.h"
#include "dcp/dcp_metadata.h"
#include "format/pickle_files.h"
#include "format/sibling.h"
#include "remote/open_path.h"
#include "shardwright/storage.h"

namespace shardwright::cli {
namespace {

constexpr std::uint64_t kHeadBytes = 512;
constexpr std::uint64_t kMostPickleBytes = std::uint64_t{1} << 30;

struct OpenFile {
  std::unique_ptr<Directory> directory;
  std::string name;  // within the directory
  std::unique_ptr<ReadableFile> file;
  std::string head;
};

Result<OpenFile> open_file(const std::string& path) {
  OpenFile open;
  open.directory = SW_TRY(open_folder_of(path));
  open.name = path.substr(path.rfind('/') + 1);
  open.file = SW_TRY(open_named(path));
  open.head.resize(static_cast<std::size_t>(std::min(kHeadBytes, open.file->size())));
  SW_TRY(open.file->read_at(0, std::as_writable_bytes(std::span(open.head))));
  return open;
}

bool is_zip(std::string_view head) { return head.starts_with("PK\x03\x04"); }

// Protocols 2 and later say so; older ones are text and have only their name.
bool is_pickle(std::string_view head, std::string_view name) {
  constexpr char kLatestProtocol = 5;
  if (name.ends_with(".pkl") || name.ends_with(".pickle") || name == ".metadata") return true;
  return head.size() >= 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= kLatestProtocol;
}

bool is_safetensors(std::string_view head, std::uint64_t file_bytes) {
  constexpr std::size_t kLengthBytes = 8;
  if (head.size() <= kLengthBytes || head[kLengthBytes] != '{') return false;
  return load_le<std::uint64_t>(as_bytes(head).data()) <= file_bytes - kLengthBytes;
}

Status fill_safetensors(const OpenFile& open, FileReport& report) {
  const SafetensorsHeader header = SW_TRY(read_safetensors_header(*open.file));
  report.kind = "safetensors";
  report.reason = "a JSON header behind its length";
  report.catalog.files.push_back(open.name);
  for (const SafetensorsTensor& entry : header.tensors) {
    StoredTensor tensor{entry.desc, ChunkList(entry.desc.shape.size()), Encoding::kRaw};
    tensor.chunks.push_back({Box::whole(entry.desc.shape), 0, entry.range, {}});
    report.catalog.tensors.push_back(std::move(tensor));
  }
  for (const auto& [key, value] : header.metadata) report.metadata.emplace_back(key, value);
  report.facts = report.metadata;
  return {};
}

Status fill_torch_archive(const OpenFile& open, const TreeLimits& limits, FileReport& report) {
  const TorchArchive archive = SW_TRY(TorchArchive::open(*open.file));
  report.kind = "torch archive";
  report.reason = "a zip file with torch.save's records";
  std::uint64_t storages = 0;
  std::uint64_t storage_bytes = 0;
  const std::string data = archive.prefix() + "/data/";
  for (const zip::Entry& entry : archive.zip().entries()) {
    if (!entry.name.starts_with(data)) continue;
    ++storages;
    storage_bytes += entry.bytes;
  }
  report.counts = {{"records", archive.zip().entries().size()},
                   {"storages", storages},
                   {"storage_bytes", storage_bytes}};
  report.facts.emplace_back("records", format_count(archive.zip().entries().size()));
  report.facts.emplace_back(
      "storages", fmt::format("{}, {}", format_count(storages), format_bytes(storage_bytes)));
  report.values.push_back(describe_value(archive.root(), limits));
  return {};
}

// Torch files of before 1.6 are five pickles and then storages.
Status fill_pickle(const TreeLimits& limits, FileReport& report) {
  constexpr std::size_t kMostPickles = 8;
  const std::string text = SW_TRY(read_named(report.path, kMostPickleBytes));
  std::span<const std::byte> rest = as_bytes(text);
  report.kind = "pickle";
  std::size_t values = 0;
  while (!rest.empty() && report.values.size() < kMostPickles) {
    Result<pickle::Prefix> prefix = pickle::decode_prefix(rest);
    if (!prefix && report.values.empty()) {
      return std::unexpected(std::move(prefix).error().within(report.path));
    }
    if (!prefix) break;
    if (report.values.empty()) report.reason = fmt::format("protocol {}", prefix->protocol);
    values += prefix->document.node_count();
    report.values.push_back(describe_value(prefix->document.root(), limits));
    rest = rest.subspan(static_cast<std::size_t>(prefix->consumed));
  }
  if (report.values.empty()) {
    return fail(Code::kPickleCorrupt, "{} is empty", report.path);
  }
  report.counts = {
      {"values", values}, {"pickles", report.values.size()}, {"bytes_behind", rest.size()}};
  report.facts.emplace_back("values", format_count(values));
  if (report.values.size() > 1) {
    report.facts.emplace_back("pickles", format_count(report.values.size()));
  }
  if (!rest.empty()) {
    report.facts.emplace_back("behind them", format_count(rest.size(), "byte") + " not shown");
  }
  return {};
}

// The entries of a catalog that lie in one of its files.
Catalog part_in_file(const Catalog& whole, std::string_view file) {
  Catalog part;
  part.files.emplace_back(file);
  for (const StoredTensor& tensor : whole.tensors) {
    StoredTensor here{tensor.desc, ChunkList(tensor.chunks.axes()), tensor.encoding};
    for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
      if (whole.files[tensor.chunks.file(i)] != file) continue;
      Chunk chunk = tensor.chunks[i];
      chunk.file = 0;
      here.chunks.push_back(chunk);
    }
    if (!here.chunks.empty()) part.tensors.push_back(std::move(here));
  }
  for (const StoredObject& object : whole.objects) {
    if (whole.files[object.file] == file) part.objects.push_back({object.name, 0, object.range});
  }
  return part;
}

Status fill_distcp(const OpenFile& open, FileReport& report) {
  if (!open.directory->exists(".metadata")) {
    return fail(Code::kNotFound,
                "{}: no .metadata lies beside it, and a .distcp file has no directory of its own; "
                "restore it or inspect another file",
                report.path);
  }
  const std::unique_ptr<ReadableFile> file = SW_TRY(open.directory->open(".metadata"));
  const DcpMetadata metadata = SW_TRY(read_dcp_metadata(*file));
  report.kind = "distcp";
  report.reason = "the .metadata beside it tells what lies where";
  report.catalog = part_in_file(metadata.catalog, open.name);
  return {};
}

Status fill(const OpenFile& open, const TreeLimits& limits, FileReport& report) {
  // A .distcp file begins like a torch archive, and with one item it is one.
  if (open.name.ends_with(".distcp")) return fill_distcp(open, report);
  if (is_zip(open.head)) return fill_torch_archive(open, limits, report);
  if (is_safetensors(open.head, report.bytes)) return fill_safetensors(open, report);
  if (is_pickle(open.head, open.name)) return fill_pickle(limits, report);
  const Sibling* sibling = recognise_sibling_file(open.name);
  if (sibling != nullptr) return refuse_sibling(report.path, *sibling);
  return fail(Code::kUnknownFormat,
              "{}: found {}, expected a safetensors file, a torch archive, a pickle or a .distcp "
              "file; give the checkpoint's folder",
              report.path, identify_no_zip(open.head).value_or("an empty file"));
}

}  // namespace

Result<FileReport> inspect_file(const std::string& path, const TreeLimits& limits) {
  FileReport report;
  report.path = path;
  const OpenFile open = SW_TRY(open_file(path));
  report.bytes = open.file->size();
  const auto audit = audit_file(*open.file, {0, report.bytes});
  const bool has_pickles = audit && !open.name.ends_with(".distcp");
  if (has_pickles) report.warnings.add({PickleReport{report.path, *audit}});
  const Status filled = fill(open, limits, report);
  // What broke is less than what it would have run before.
  if (!filled && has_pickles && !audit->runs.empty()) {
    return std::unexpected(report.warnings.errors.front());
  }
  SW_TRY(Status(filled));
  return report;
}

}  // namespace shardwright::cli
