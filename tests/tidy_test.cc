// SPDX-License-Identifier: Apache-2.0
#include "tidy.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>

#include "testing/golden_files.h"

namespace shardwright::tidy {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

std::string describe(const Findings& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    text += fmt::format("{} {}: {}\n", finding.rule, finding.path, finding.message);
  }
  return text;
}

/// `RULE PATH` of each finding.
std::vector<std::string> names(const Findings& findings) {
  std::vector<std::string> result;
  for (const Finding& finding : findings) {
    result.push_back(fmt::format("{} {}", finding.rule, finding.path));
  }
  return result;
}

std::string lines(std::size_t count, std::string_view line) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += fmt::format("{}\n", line);
  return text;
}

// The project itself.

TEST(ProjectTest, KeepsItsRules) {
  const Tree tree = read_tree(source_path(""));
  ASSERT_TRUE(tree.contains("include/shardwright/error.h"));
  const auto allow = tree.find("tests/tidy_allow.txt");
  ASSERT_NE(allow, tree.end());
  const Findings findings = apply_exceptions(check_all(tree), allow->second);
  EXPECT_TRUE(findings.empty()) << describe(findings);
}

// The rules, on planted text: each must find what it is there for, and only that.

TEST(IncludeTest, ArrowsPointDownwards) {
  const Tree tree = {
      {"src/io/a.cc", "#include \"base/fail.h\"\n#include \"io/a.h\"\n"},
      {"src/tensor/b.cc", "#include \"io/a.h\"\n"},
      {"src/plan/c.h", "#  include   \"shardwright/storage.h\"\n"},
      {"src/layout/d_test.cc", "#include \"format/x.h\"\n#include \"testing/golden_files.h\"\n"},
      {"src/layout/d.cc", "#include \"testing/golden_files.h\"\n"},
      {"src/cli/e.cc", "#include \"exec/run.h\"\n#include <iostream>\n"},
      {"include/shardwright/tensor.h", "#include \"shardwright/storage.h\"\n"},
  };
  EXPECT_THAT(names(check_includes(tree)),
              ElementsAre("include-arrow include/shardwright/tensor.h",
                          "include-arrow src/layout/d.cc", "include-arrow src/layout/d_test.cc",
                          "include-arrow src/plan/c.h", "include-arrow src/tensor/b.cc"));
}

TEST(IncludeTest, NoLayerMayBeUnknown) {
  const Tree tree = {
      {"include/shardwright/novel.h", ""},
      {"src/codec/a.cc", "#include \"a.h\"\n"},
      {"python/shardwright/a.cc", "#include \"a.h\"\n"},
      {"src/mystery/b.cc", ""},
  };
  EXPECT_THAT(names(check_includes(tree)),
              ElementsAre("include-unknown include/shardwright/novel.h",
                          "include-unknown src/codec/a.cc", "include-unknown src/mystery/b.cc"));
}

TEST(IncludeTest, HeavyAndBannedHeaders) {
  const Tree tree = {
      {"src/codec/fine.cc", "#include <nlohmann/json.hpp>\n#include <CLI/CLI.hpp>\n"},
      {"src/codec/fine.h", "#include <nlohmann/json_fwd.hpp>\n"},
      {"src/codec/heavy.h", "#include <nlohmann/json.hpp>\n"},
      {"src/codec/regex.cc", "#include <regex>\n"},
      {"src/exec/mpi.cc", "#include <mpi.h>\n"},
      {"src/model/yaml.h", "#include <yaml-cpp/yaml.h>\n"},
  };
  EXPECT_THAT(names(check_includes(tree)),
              ElementsAre("include-heavy src/codec/heavy.h", "include-banned src/codec/regex.cc",
                          "include-banned src/exec/mpi.cc", "include-heavy src/model/yaml.h"));
}

TEST(SizeTest, Files) {
  const Tree tree = {
      {"src/io/long.cc", lines(501, ";")},       {"src/io/long.h", lines(251, ";")},
      {"src/io/ok.cc", lines(500, ";")},         {"src/io/ok.h", lines(250, ";")},
      {"src/io/long_test.cc", lines(1001, ";")}, {"src/io/ok_test.cc", lines(1000, ";")},
      {"tests/golden/big.py", lines(2000, "1")},
  };
  EXPECT_THAT(names(check_sizes(tree)),
              ElementsAre("file-lines src/io/long.cc", "file-lines src/io/long.h",
                          "file-lines src/io/long_test.cc"));
}

TEST(SizeTest, ColumnsAreCodePoints) {
  std::string wide = "// ";
  for (int i = 0; i < 97; ++i) wide += "\xe7\xa2\x8e";  // one CJK character
  EXPECT_THAT(check_sizes({{"src/io/a.cc", wide}}), IsEmpty());
  EXPECT_THAT(names(check_sizes({{"src/io/a.cc", wide + "x"}})),
              ElementsAre("columns src/io/a.cc"));
}

TEST(SizeTest, Functions) {
  const auto body = [](std::size_t count) {
    return "void f() {\n" + lines(count, "  g();") + "}\n";
  };
  EXPECT_THAT(check_sizes({{"src/io/a.cc", body(68)}}), IsEmpty());
  EXPECT_THAT(names(check_sizes({{"src/io/a.cc", body(69)}})),
              ElementsAre("function-lines src/io/a.cc"));
}

struct Extent {
  std::size_t first_line;
  std::size_t count;
  bool operator==(const Extent&) const = default;
};

void PrintTo(const Extent& extent, std::ostream* out) {
  *out << extent.count << " lines from line " << extent.first_line;
}

std::vector<Extent> extents(std::string_view text) {
  std::vector<Extent> result;
  for (const Function& function : find_functions(text)) {
    result.push_back({function.first_line, function.lines});
  }
  return result;
}

TEST(FunctionTest, InNamespacesAndClasses) {
  EXPECT_THAT(extents("namespace a {\n"
                      "class B {\n"
                      " public:\n"
                      "  int one() const { return 1; }\n"
                      "  B(int x,\n"
                      "    int y) : x_{x}, y_(y) {\n"
                      "  }\n"
                      "};\n"
                      "template <class T, class U = std::vector<T>>\n"
                      "struct C two(T t) {\n"
                      "  if (t) {\n"
                      "  }\n"
                      "}\n"
                      "}  // namespace a\n"),
              ElementsAre(Extent{4, 1}, Extent{5, 3}, Extent{9, 5}));
}

TEST(FunctionTest, TablesAreNotFunctions) {
  EXPECT_THAT(extents("constexpr std::array kTable = {\n  f(1),\n  g({2}),\n};\n"
                      "const std::vector<int> kMore{1, 2};\n"
                      "enum class E : int { a, b };\n"
                      "int last() {\n}\n"),
              ElementsAre(Extent{7, 2}));
}

TEST(FunctionTest, BracesInTextDoNotCount) {
  EXPECT_THAT(extents("#define OPEN(x) \\\n  {\n"
                      "int f() {\n"
                      "  // {\n"
                      "  /* { */\n"
                      "  g('{', \"{\\\"{\", 1'000, R\"x({)\" {)x\");\n"
                      "}\n"
                      "int h() { return 1; }\n"),
              ElementsAre(Extent{3, 5}, Extent{8, 1}));
}

TEST(ListedTest, EverySourceIsBuilt) {
  const Tree tree = {
      {"CMakeLists.txt", "root.cc"},
      {"src/io/CMakeLists.txt", "sw_layer(io SOURCES a.cc # b.cc\n TESTS sub/d.cc xa_test.cc)"},
      {"src/io/a.cc", ""},
      {"src/io/b.cc", ""},
      {"src/io/a_test.cc", ""},
      {"src/io/sub/d.cc", ""},
      {"src/new/root.cc", ""},
      {"fuzz/CMakeLists.txt", "sw_fuzz(zip LAYERS codec)"},
      {"fuzz/fuzz_zip.cc", ""},
      {"fuzz/fuzz_zi.cc", ""},
      {"cmake/layer.cmake", "target_sources(${target} PRIVATE replay_main.cc)"},
      {"fuzz/replay_main.cc", ""},
  };
  EXPECT_THAT(names(check_listed(tree)),
              ElementsAre("unlisted fuzz/fuzz_zi.cc", "unlisted src/io/a_test.cc",
                          "unlisted src/io/b.cc", "unlisted src/new/root.cc"));
}

TEST(WordTest, NamesLeftoversAndLicences) {
  const std::string licence = "// SPDX-License-Identifier: Apache-2.0\n";
  const Tree tree = {
      {"docs/notes.md",
       "a TO"
       "DO here"},
      {"src/format/common_state.cc", licence},
      {"src/io/common.h", licence},
      {"src/io/common/thing.h", licence},
      {"src/io/file_utils.cc", licence},
      {"src/io/fine.cc", licence + "mkdtemp(\"aXXXXXX\"); // no kTO"
                                   "DOs\n"},
      {"src/io/note.cc", licence + "// FIX"
                                   "ME later\n"},
      {"src/io/plain.cc", "int x;\n"},
      {"tests/golden/common.pt.py",
       "XX"
       "X"},
      {"tests/a.sh", "#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\n"},
      {"tests/b.py", "#!/usr/bin/env python3\n"},
  };
  EXPECT_THAT(
      names(check_words(tree)),
      ElementsAre("leftover docs/notes.md", "file-name src/io/common.h",
                  "file-name src/io/common/thing.h", "file-name src/io/file_utils.cc",
                  "leftover src/io/note.cc", "licence src/io/plain.cc", "licence tests/b.py"));
}

TEST(MachineTraceTest, PathsAndHosts) {
  const Tree tree = {
      {"a.md",
       "see /wo"
       "rk/main"},
      {"b.txt",
       "https://pypi"
       ".org/simple"},
      {"c.md", "pip install torch; network/works"},
  };
  EXPECT_THAT(names(check_machine_traces(tree)),
              ElementsAre("machine-trace a.md", "machine-trace b.txt"));
}

TEST(PublicApiTest, CodesAreUnique) {
  const std::string path = "include/shardwright/error.h";
  EXPECT_THAT(check_public_api({{path, "  kA = 1,\n  kB = 2,\n  // kC = 2,\n"}}), IsEmpty());
  const Findings twice = check_public_api({{path, "  kA = 1,\n  kB = 1,\n"}});
  ASSERT_THAT(twice, SizeIs(1));
  EXPECT_EQ(twice[0].message, "kA and kB are both 1");
  EXPECT_THAT(check_public_api({{path, ""}}), SizeIs(1));
  EXPECT_THAT(check_public_api({}), SizeIs(1));
}

TEST(PublicApiTest, AtMostTwelveHeaders) {
  Tree tree = {{"include/shardwright/error.h", "  kA = 1,\n"}};
  for (int i = 0; i < 11; ++i) tree[fmt::format("include/shardwright/h{}.h", i)] = "";
  EXPECT_THAT(check_public_api(tree), IsEmpty());
  tree["include/shardwright/one_more.h"] = "";
  EXPECT_THAT(names(check_public_api(tree)), ElementsAre("public-headers include/shardwright"));
}

TEST(ExceptionTest, ExcuseExactlyOneRuleInOneFile) {
  const Findings findings = {
      {"columns", "a.cc", "1"}, {"columns", "a.cc", "2"}, {"columns", "b.cc", "3"}};
  EXPECT_THAT(names(apply_exceptions(findings, "# why\n\ncolumns a.cc: a table of test data\n")),
              ElementsAre("columns b.cc"));
}

TEST(ExceptionTest, UnusedOrUnreasonedOnesAreFindings) {
  EXPECT_THAT(apply_exceptions({}, "columns a.cc: nothing there any more\n"), SizeIs(1));
  EXPECT_THAT(apply_exceptions({{"columns", "a.cc", "1"}}, "columns a.cc\n"), SizeIs(2));
  EXPECT_THAT(apply_exceptions({{"columns", "a.cc", "1"}}, "columns a.cc:  \n"), SizeIs(2));
}

}  // namespace
}  // namespace shardwright::tidy
