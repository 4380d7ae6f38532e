// SPDX-License-Identifier: Apache-2.0
#include "cli/table.h"

#include <gtest/gtest.h>

namespace shardwright::cli {
namespace {

TEST(Table, AlignsByDisplayWidth) {
  Table table({{"name"}, {"bytes", Table::Align::kRight}, {"note"}});
  table.add_row({"模型", "5", "x"});
  table.add_row({"a", "12345678", ""});
  table.add_row({"b"});
  EXPECT_EQ(table.row_count(), 3u);
  EXPECT_EQ(table.text(),
            "name     bytes  note\n"
            "模型         5  x\n"
            "a     12345678\n"
            "b\n");
}

TEST(Table, HasNoHeaderWithoutTitles) {
  Table table({{}, {}});
  table.add_row({"a", "b"});
  EXPECT_EQ(table.text(2), "  a  b\n");
  EXPECT_EQ(Table({{}, {}}).text(), "");
}

TEST(Table, CannotBeBrokenByNamesFromFiles) {
  Table table({{"name"}, {"n"}});
  table.add_row({"a\n\x1b[31m", "1"});
  EXPECT_EQ(table.text(),
            "name         n\n"
            "a\\n\\x1b[31m  1\n");
}

}  // namespace
}  // namespace shardwright::cli
