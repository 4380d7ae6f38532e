// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace shardwright::cli {

/// Text in aligned columns, measured as a terminal shows it. Cells are made printable, so names
/// from files may stand in them.
class Table {
 public:
  enum class Align { kLeft, kRight };
  struct Column {
    std::string title;
    Align align = Align::kLeft;
  };

  /// With no titles at all there is no header line.
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// Missing cells are empty. REQUIRES: no more cells than columns.
  void add_row(std::vector<std::string> cells);
  [[nodiscard]] std::size_t row_count() const { return rows_.size(); }
  /// One line per row, each indented by `indent` spaces, without spaces at the ends of lines.
  [[nodiscard]] std::string text(int indent = 0) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace shardwright::cli
