// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "io/known_bytes.h"
#include "shardwright/storage.h"

namespace shardwright {

/// Tells `known` what is read of a file.
[[nodiscard]] std::unique_ptr<ReadableFile> noting_file(std::unique_ptr<ReadableFile> file,
                                                        std::shared_ptr<KnownBytes> known);

/// The same of all files that are opened in a directory.
[[nodiscard]] std::unique_ptr<Directory> noting_directory(std::unique_ptr<Directory> inner,
                                                          std::shared_ptr<KnownBytes> known);

/// How a file is opened.
using OpenFile = std::function<Result<std::unique_ptr<ReadableFile>>()>;

/// A file that is opened once something of it is asked for that `known` lacks; `now` is what it is
/// here. Errors: kRanksDiffer, where that is not what `known` says of it; kSourceChanged, when it
/// is another once it is opened.
[[nodiscard]] Result<std::unique_ptr<ReadableFile>> known_file(
    const std::string& name, const FileVersion& now, std::shared_ptr<const KnownBytes> known,
    OpenFile open);

/// Gives such files of a directory. One that `known` knows nothing of is opened at once.
[[nodiscard]] std::unique_ptr<Directory> knowing_directory(std::unique_ptr<Directory> inner,
                                                           std::shared_ptr<const KnownBytes> known);

}  // namespace shardwright
