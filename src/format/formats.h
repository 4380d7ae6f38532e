// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "format/source_format.h"

namespace shardwright {

/// All formats that checkpoints are read from. Where a folder can be read as several, those that
/// Megatron would look for first come first.
[[nodiscard]] std::span<const SourceFormat* const> source_formats();

/// The format of that name; null if there is none.
[[nodiscard]] const SourceFormat* find_source_format(std::string_view name);

/// How that checkpoint has a Megatron model. Where it has no format, made by no reader, it is
/// torch_dist's form.
[[nodiscard]] const ModelForm& form_of(const Checkpoint& checkpoint);

/// Error: kUsage for a name that no format has, with the nearest one. No name is no choice.
[[nodiscard]] Status check_format_name(const FormatChoice& choice);

/// What an opened checkpoint is: the dialect that its tensors speak, or the format it was found as.
[[nodiscard]] const SourceFormat& refined_format(const SourceFormat& found,
                                                 const Checkpoint& checkpoint);

/// What `container` says in reports about that format, which need not be one that is read.
[[nodiscard]] std::string_view shown_container(std::string_view format);

}  // namespace shardwright
