// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "plan/lower.h"
#include "shardwright/checkpoint.h"
#include "shardwright/plan.h"

namespace shardwright {

/// What a TensorReader reads from: tensors under the names of one side, each made of what is
/// stored. Safe for concurrent use.
class TensorSource {
 public:
  virtual ~TensorSource() = default;
  [[nodiscard]] virtual const Checkpoint& checkpoint() const = 0;
  [[nodiscard]] virtual const Catalog& stored() const = 0;
  /// See TensorReader::order().
  [[nodiscard]] virtual std::vector<std::size_t> order() const;
  /// Files beside the weights, see TensorReader::documents().
  [[nodiscard]] virtual std::vector<std::string> documents() const { return {}; }
  [[nodiscard]] virtual Result<std::string> read_document(std::string_view name) const;

  /// See TensorReader::read().
  [[nodiscard]] Status read_checked(std::size_t tensor, const Box& box, std::span<std::byte> bytes);
  [[nodiscard]] std::span<const TensorDesc> tensors() const {
    return std::span(descs_).first(listed_);
  }
  [[nodiscard]] const TensorDesc& desc(std::size_t tensor) const { return descs_[tensor]; }
  [[nodiscard]] std::span<const std::string> objects() const { return objects_; }
  [[nodiscard]] std::optional<std::size_t> find(std::string_view name) const;
  /// See TensorReader::unreadable().
  [[nodiscard]] const std::map<std::string, Error, std::less<>>& unreadable() const {
    return unreadable_;
  }
  [[nodiscard]] Result<std::string> read_object(std::size_t index) const;
  std::vector<std::string> take_notes();

 protected:
  /// Of a box that is in the tensor, into as many bytes as it has.
  [[nodiscard]] virtual Status read(std::size_t tensor, const Box& box,
                                    std::span<std::byte> bytes) = 0;
  /// Once everything is known. `listed`: how many of the tensors are the checkpoint's; others are
  /// found by name only.
  void list(const Catalog& tensors, std::size_t listed);
  /// The bytes of an entry or file as they are stored.
  [[nodiscard]] Result<std::string> bytes_of(const StoredObject& object) const;

  std::mutex mutex_;  // of what is found out while reading
  std::vector<std::string> notes_;
  std::map<std::string, Error, std::less<>> unreadable_;

 private:
  std::vector<TensorDesc> descs_;
  std::size_t listed_ = 0;
  std::vector<std::string> objects_;
  std::unordered_map<std::string_view, std::size_t> numbers_;
};

/// Makes a box of one of a plan's targets.
[[nodiscard]] Status read_box(const Plan& plan, const Lowering& lowering, SourceFiles& files,
                              std::size_t tensor, const Box& box, std::span<std::byte> bytes);

}  // namespace shardwright
