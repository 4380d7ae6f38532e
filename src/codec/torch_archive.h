// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "codec/pickle_decode.h"
#include "codec/torch_layout.h"
#include "codec/torch_tensor.h"
#include "codec/zip_reader.h"

namespace shardwright {

/// Where the elements of a tensor lie in a file.
struct LocatedTensor {
  DType dtype = DType::kU8;
  Dims shape;
  Dims strides;                   ///< elements; empty for row-major without gaps
  ByteRange range;                ///< in the file: from the first element to the last one used
  ByteRange storage;              ///< in the file: the whole record
  std::uint32_t storage_crc = 0;  ///< CRC-32 of the record; 0 when the file doesn't have it
  std::string record;             ///< its name in the archive; empty where there is no archive
  SignFlips flips;                ///< still to be done to the elements
};

/// A storage to be written: its key, and its bytes.
struct TorchStorage {
  std::string key;
  std::string bytes;
};

/// What a file is by its first bytes (512 are enough): nullopt for a zip archive, else a phrase for
/// a message, such as "a torch file of before 1.6".
[[nodiscard]] std::optional<std::string> identify_no_zip(std::string_view head);

/// A torch.save archive: its pickle, decoded inertly, and its storages, which stay in the file.
/// Immutable once opened; concurrent use of the const methods is safe. The file must outlive it.
class TorchArchive {
 public:
  /// Opens the archive in a window of a file. Errors: kUnsupportedFormat (TorchScript, big-endian,
  /// files of before torch 1.6, other formats: each is named), kTorchArchive (records missing or of
  /// the wrong size), those of zip::Archive and of pickle::decode.
  [[nodiscard]] static Result<TorchArchive> open(const ReadableFile& file, ByteRange window,
                                                 const pickle::Limits& limits = {});
  [[nodiscard]] static Result<TorchArchive> open(const ReadableFile& file) {
    return open(file, {0, file.size()});
  }

  [[nodiscard]] const pickle::Document& document() const { return *document_; }
  [[nodiscard]] pickle::Value root() const { return document_->root(); }
  [[nodiscard]] const zip::Archive& zip() const { return zip_; }
  /// The folder of the records, without its slash.
  [[nodiscard]] const std::string& prefix() const { return prefix_; }
  /// A record by its name within the folder, or null.
  [[nodiscard]] const zip::Entry* record(std::string_view name) const;

  /// Reads the tensor that a node of the document spells and finds its bytes: one small read, and
  /// none of a server's file whose storages lie as torch's writer puts them and have a CRC-32.
  /// Errors: kTorchArchive, kZipUnsupported (a compressed storage).
  [[nodiscard]] Result<LocatedTensor> locate(pickle::Value tensor) const;

  /// The bytes of an archive with this one's records and `pickle` instead of data.pkl; storages and
  /// all other records are copied, and `added` storages are put behind them. For small files: the
  /// result and each record are in memory. Errors: kLimit above `limit_bytes`.
  [[nodiscard]] Result<std::string> with_pickle(const std::string& pickle,
                                                std::uint64_t limit_bytes,
                                                std::span<const TorchStorage> added = {}) const;

 private:
  TorchArchive(zip::Archive zip, std::string prefix)
      : zip_(std::move(zip)), prefix_(std::move(prefix)) {}
  [[nodiscard]] Status check_records() const;

  zip::Archive zip_;
  std::string prefix_;
  bool has_usual_places_ = false;  // of the storages: those of a server's file may be deduced
  std::unique_ptr<pickle::Document> document_;  // in its own place: handles survive a move
};

}  // namespace shardwright
