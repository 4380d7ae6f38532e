// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "codec/pickle_value.h"
#include "codec/torch_archive.h"

namespace shardwright {

/// The dict of a common state, to be changed. See CommonState for what it is.
class StateDocument {
 public:
  /// `common_state` is a torch.save archive. Error: kStateUnreadable, those of the archive reader.
  [[nodiscard]] static Result<StateDocument> read(const std::string& common_state);

  [[nodiscard]] pickle::Document& document() { return document_; }
  [[nodiscard]] pickle::Value dict() const { return document_.at(dict_); }

  /// A tensor in an added storage, for the dict. REQUIRES: `bytes` are those of the shape,
  /// row-major.
  [[nodiscard]] pickle::Value add_tensor(DType dtype, const Dims& shape, std::string bytes);

  /// The archive as it is now.
  [[nodiscard]] Result<std::string> encode() const;

 private:
  StateDocument(std::unique_ptr<ReadableFile> file, TorchArchive torch, pickle::Document document);

  std::unique_ptr<ReadableFile> file_;
  TorchArchive torch_;
  pickle::Document document_;
  std::vector<TorchStorage> added_;
  std::size_t next_storage_ = 0;  // a number that no storage has, or one below such
  std::uint32_t dict_ = 0;
};

/// A state's `content_metadata`, for entries named as Megatron-Core names those of its own models.
/// It asks for the keys that this describes, whatever the loading job's defaults are.
[[nodiscard]] pickle::Value make_content_metadata(pickle::Document& document,
                                                  bool has_numbered_layers);

}  // namespace shardwright
