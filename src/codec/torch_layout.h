// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codec/zip_layout.h"
#include "shardwright/tensor.h"

namespace shardwright {

/// How a torch.save archive is laid out. The defaults give the bytes of torch 2.13.
struct TorchLayoutOptions {
  std::string prefix = "archive";  ///< torch's name for a stream
  std::uint64_t base = 0;  ///< the archive's position in its file: storages are aligned there
  std::uint32_t storage_alignment = 64;
  /// `.format_version` and `.storage_alignment`: from them torch.load(mmap=True) may compute where
  /// storages lie, so they are only true of the default base and alignment. Every torch loads files
  /// without them.
  bool format_records = true;
  bool serialization_id = true;
};

/// The pickle of one dense row-major CPU tensor whose storage `0` holds nothing else, byte for byte
/// as torch.save writes it (protocol 2).
[[nodiscard]] std::string torch_tensor_pickle(DType dtype, const Dims& shape);

/// A torch.save archive whose storages are not at hand yet: where everything goes, and all bytes
/// around the storages. In the file: head(), storage 0, between(0, crc), storage 1, ...,
/// tail(crcs). Offsets count from the archive's start. Immutable, safe for concurrent use.
class TorchLayout {
 public:
  /// Storage i gets the key `i`. Errors as zip::Layout::make.
  [[nodiscard]] static Result<TorchLayout> make(std::string pickle,
                                                std::span<const std::uint64_t> storage_bytes,
                                                const TorchLayoutOptions& options = {});

  [[nodiscard]] std::size_t storage_count() const { return storage_count_; }
  [[nodiscard]] ByteRange storage(std::size_t index) const {
    return layout_.payload(first_storage_ + index);
  }
  [[nodiscard]] std::uint64_t total_bytes() const { return layout_.total_bytes(); }

  /// Everything before storage 0, or before `tail` where there are no storages.
  [[nodiscard]] std::string head() const;
  /// From the end of storage `index` to the next storage. REQUIRES: index + 1 < storage_count().
  [[nodiscard]] std::string between(std::size_t index, std::uint32_t crc) const;
  /// From the end of the last storage to the archive's end. REQUIRES: the CRC-32 of each storage.
  [[nodiscard]] std::string tail(std::span<const std::uint32_t> storage_crcs) const;

 private:
  explicit TorchLayout(zip::Layout layout) : layout_(std::move(layout)) {}
  void append_record(std::size_t record, std::string_view contents, std::string& out) const;
  [[nodiscard]] std::string serialization_id(std::span<const std::uint32_t> crcs) const;

  zip::Layout layout_;
  std::size_t prefix_bytes_ = 0;  // of the folder and its slash
  std::size_t first_storage_ = 0;
  std::size_t storage_count_ = 0;
  bool has_serialization_id_ = false;
  std::vector<std::string> contents_;  // of the records in front of the storages
  std::vector<std::uint32_t> crcs_;    // likewise
};

/// A whole archive without storages: what torch.save makes of an object without tensors.
[[nodiscard]] Result<std::string> encode_torch_object(std::string pickle,
                                                      const TorchLayoutOptions& options = {});

}  // namespace shardwright
