// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/folder.h"
#include "format/model_form.h"
#include "format/sibling.h"
#include "shardwright/checkpoint.h"
#include "shardwright/diagnose.h"

namespace shardwright {

/// That a folder holds a checkpoint of some format, and why.
struct Recognition {
  enum class Strength : std::uint8_t {
    kSure,
    kRemains,  ///< part of one, or what lies beside another: counts where nothing is sure
  };
  Strength strength = Strength::kSure;
  std::vector<std::string> facts;  ///< what on disk says so, the most telling first
};

/// A format that checkpoints are read from: the only place that knows how to tell it from others
/// and how to open it. There is one object of each, listed in formats.cc.
class SourceFormat {
 public:
  SourceFormat() = default;
  virtual ~SourceFormat() = default;
  SourceFormat(const SourceFormat&) = delete;
  SourceFormat& operator=(const SourceFormat&) = delete;

  /// What users call it, everywhere: `hf`, `torch_dist`, `fsdp_dtensor`.
  [[nodiscard]] virtual std::string_view name() const = 0;

  /// What its files are like. Of a dialect those that it usually lies in.
  [[nodiscard]] virtual SourceTraits traits() const = 0;

  /// What a diagnosis says of a folder that holds one, and the format that most want of it. Empty
  /// for formats that are diagnosed in a way of their own.
  [[nodiscard]] virtual Phrase summary() const { return {}; }
  [[nodiscard]] virtual std::string_view usual_target() const { return {}; }

  /// What `container` is in reports, which scripts read before there was `format`.
  [[nodiscard]] virtual std::string_view shown_container() const { return name(); }

  /// Whether a folder holds one, by its listing and small files. A dialect that only tensors' names
  /// show recognises none, see is_spoken_in(). Errors: those of reading.
  [[nodiscard]] virtual Result<std::optional<Recognition>> recognise(const Folder& folder) const;

  /// Whether a file of this name, given by itself, may be a checkpoint.
  [[nodiscard]] virtual bool reads_file(std::string_view name) const;

  /// Fills in what is read when a checkpoint is opened: catalog, state, artifacts.
  [[nodiscard]] virtual Status open(Checkpoint& checkpoint, Defects& defects) const = 0;

  /// Whether a checkpoint that was found as another format may turn out to be this one, a dialect
  /// of it, once it is open.
  [[nodiscard]] virtual bool may_lie_in(const SourceTraits& found) const;

  /// Whether an opened checkpoint that was found as another format is this one. REQUIRES:
  /// may_lie_in() its traits.
  [[nodiscard]] virtual bool is_spoken_in(const Checkpoint& checkpoint) const;

  /// What a dialect makes of an opened checkpoint that is one: its names, what lies beside it.
  [[nodiscard]] virtual Status settle(Checkpoint& checkpoint, Defects& defects) const;

  /// How it has a Megatron model; torch_dist's form where that is not said.
  [[nodiscard]] virtual const ModelForm& form() const { return ordinary_form(); }

  /// What it is told as that is recognised only to be named; null for what is read.
  [[nodiscard]] virtual const Sibling* told_as() const { return nullptr; }

  /// Adds to a diagnosis what only this format has to say of an opened checkpoint.
  virtual void add_findings(const Checkpoint& checkpoint, Diagnosis& diagnosis) const;

  /// What is wrong with files beside the data of an opened checkpoint that only this format has:
  /// their name, and what it is.
  [[nodiscard]] virtual std::vector<std::pair<std::string, Error>> defects_beside(
      const Checkpoint& checkpoint) const;

  /// The traits of an opened checkpoint of this format: of a dialect those that it was found with.
  [[nodiscard]] virtual SourceTraits traits_of(const Checkpoint& checkpoint) const;
};

}  // namespace shardwright
