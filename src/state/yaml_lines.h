// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shardwright/error.h"

namespace YAML {
class Node;
}

namespace shardwright {

/// A YAML file in block style, as PyYAML dumps it, whose entries are replaced line by line:
/// everything else stays byte for byte. An entry is named by the keys that lead to it.
///
/// Errors of all methods: kYamlCorrupt for what is no YAML, kLimit for a file that is too long, and
/// kYamlCorrupt for an entry in another style, with its keys.
class YamlLines {
 public:
  using Path = std::vector<std::string>;

  [[nodiscard]] static Result<YamlLines> read(std::string_view text);

  /// Whether there is such an entry.
  [[nodiscard]] bool has(const Path& path) const;
  /// The text of a scalar; nullopt for null, for other values, and where nothing is.
  [[nodiscard]] std::optional<std::string> scalar(const Path& path) const;
  /// The keys of a map, in their order; empty for other values.
  [[nodiscard]] std::vector<std::string> keys(const Path& path) const;

  /// Replaces an entry's value, or adds the entry to the map that its path leads to. `value` is
  /// what stands behind the colon.
  [[nodiscard]] Status set(const Path& path, std::string_view value);
  /// The same with lines below the key, indented as if they were a document's.
  [[nodiscard]] Status set_lines(const Path& path, std::span<const std::string> lines);
  /// Takes an entry out.
  [[nodiscard]] Status erase(const Path& path);
  /// The lines below a key, indented as if they were a document's.
  [[nodiscard]] Result<std::vector<std::string>> lines_below(const Path& path) const;

  [[nodiscard]] std::string text() const;

 private:
  // Lines of an entry, and how far its key is indented.
  struct Entry {
    std::size_t first = 0;
    std::size_t count = 0;
    std::size_t indent = 0;
  };

  [[nodiscard]] Result<std::optional<Entry>> find(const Path& path) const;
  [[nodiscard]] Status replace(const Entry& entry, std::span<const std::string> lines);
  [[nodiscard]] Status check_is_there(const Path& path) const;
  // Where a new entry of the map at `path` would stand: an entry of no lines.
  [[nodiscard]] Result<Entry> place_in(const Path& path) const;
  [[nodiscard]] Result<Entry> find_or_place(const Path& path) const;

  std::vector<std::string> lines_;
  std::shared_ptr<const YAML::Node> document_;  // what the lines say
};

}  // namespace shardwright
