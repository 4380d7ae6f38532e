// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "shardwright/storage.h"

namespace shardwright {

/// How an operation goes wrong.
enum class Fault : std::uint8_t {
  kError,    ///< nothing is done; kIo
  kShorten,  ///< a read gives kShortRead; a write does its first half, then kIo
  kNoSpace,  ///< create, write and sync give kDiskFull; the others work and are not counted
};

/// Passes everything on to another directory, except that the N-th operation (open, create, list,
/// read, write or sync; from 1) goes wrong, once or from then on. A test loops N upwards until
/// fired() stays false. Thread-safe. The files may outlive it; the inner directory must outlive
/// both.
class FaultyDirectory final : public Directory {
 public:
  enum class Duration : std::uint8_t { kOnce, kForGood };

  FaultyDirectory(Directory& inner, Fault fault, std::uint64_t nth,
                  Duration duration = Duration::kOnce)
      : inner_(inner), trigger_(std::make_shared<Trigger>(fault, nth, duration)) {}

  /// Whether the fault was met.
  [[nodiscard]] bool fired() const { return trigger_->fired; }
  /// Operations counted so far.
  [[nodiscard]] std::uint64_t operations() const { return trigger_->count; }

  [[nodiscard]] Result<std::unique_ptr<ReadableFile>> open(std::string_view path) const override;
  [[nodiscard]] Result<std::unique_ptr<WritableFile>> create(std::string_view path,
                                                             std::uint64_t size) override;
  [[nodiscard]] Result<std::unique_ptr<WritableFile>> reopen(std::string_view path,
                                                             std::uint64_t size) override;
  [[nodiscard]] Result<std::vector<DirectoryEntry>> list(std::string_view path) const override;
  [[nodiscard]] Result<FileVersion> version(std::string_view path) const override;
  [[nodiscard]] Status check_unchanged() const override { return inner_.check_unchanged(); }
  [[nodiscard]] bool exists(std::string_view path) const override { return inner_.exists(path); }
  [[nodiscard]] const std::string& name() const override { return inner_.name(); }

  /// Counts operations and says which of them go wrong.
  struct Trigger {
    Trigger(Fault fault_, std::uint64_t nth_, Duration duration_)
        : fault(fault_), nth(nth_), duration(duration_) {}
    /// Counts one operation; true if it must go wrong. Those that take no space are free of
    /// kNoSpace.
    bool next(bool takes_space);

    Fault fault;
    std::uint64_t nth;
    Duration duration;
    std::atomic<std::uint64_t> count = 0;
    std::atomic<bool> fired = false;
  };

 private:
  Directory& inner_;
  std::shared_ptr<Trigger> trigger_;
};

}  // namespace shardwright
