// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shardwright/error.h"

namespace shardwright {

/// What lies in a folder of a web server, as far as that is known; sizes are not.
struct WebNames {
  std::vector<std::string> files;
  std::vector<std::string> folders;
};

/// The names on a page that a server (nginx, Apache, Python's http.server, Caddy) makes of a folder
/// at `folder_path`; nothing of a page that is no such list. Names of more than one word are none.
[[nodiscard]] WebNames names_on_page(std::string_view html, std::string_view folder_path);

/// Names that files of checkpoints have, to be tried where a server shows no list.
[[nodiscard]] std::span<const std::string_view> known_web_names();

/// The name of the file that Meta's ranks have after this one, `consolidated.01.pth` after
/// `consolidated.00.pth`: nothing lists them. nullopt for other names, and after the hundredth.
[[nodiscard]] std::optional<std::string> next_rank_file(std::string_view name);

/// The files that an index of safetensors or torch files names. Error: kJsonCorrupt.
[[nodiscard]] Result<std::vector<std::string>> files_in_index(std::string_view text,
                                                              std::string_view name);

}  // namespace shardwright
