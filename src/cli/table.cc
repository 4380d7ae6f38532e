// SPDX-License-Identifier: Apache-2.0
#include "cli/table.h"

#include <algorithm>
#include <cstddef>

#include "base/text.h"

namespace shardwright::cli {
namespace {

constexpr std::size_t kGap = 2;

void append_cell(std::string& line, const std::string& cell, int width, Table::Align align) {
  const auto padding = static_cast<std::size_t>(width - display_width(cell));
  if (align == Table::Align::kRight) line.append(padding, ' ');
  line += cell;
  if (align == Table::Align::kLeft) line.append(padding, ' ');
}

}  // namespace

void Table::add_row(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  for (std::string& cell : cells) cell = printable(cell);
  rows_.push_back(std::move(cells));
}

std::string Table::text(int indent) const {
  std::vector<std::string> titles;
  std::vector<int> widths;
  for (const Column& column : columns_) {
    titles.push_back(column.title);
    widths.push_back(display_width(column.title));
  }
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], display_width(row[i]));
    }
  }

  std::string text;
  const auto append_line = [&](const std::vector<std::string>& row) {
    std::string line(static_cast<std::size_t>(indent), ' ');
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) line.append(kGap, ' ');
      append_cell(line, row[i], widths[i], columns_[i].align);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  };
  const bool has_titles = std::any_of(titles.begin(), titles.end(),
                                      [](const std::string& title) { return !title.empty(); });
  if (has_titles) append_line(titles);
  for (const auto& row : rows_) append_line(row);
  return text;
}

}  // namespace shardwright::cli
