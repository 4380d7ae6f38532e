// SPDX-License-Identifier: Apache-2.0
#include "cli/value_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/endian.h"
#include "codec/pickle_decode.h"

namespace shardwright::cli {
namespace {

using ::testing::HasSubstr;
using namespace std::string_view_literals;

std::string shown(const pickle::Document& document, TreeLimits limits = {}) {
  return tree_text(describe_value(document.root(), limits));
}

TEST(DescribeValue, ShowsPlainValuesInOneLineEach) {
  pickle::Document document;
  const pickle::Value dict = document.dict();
  document.set_root(dict);
  document.set(dict, "iteration", document.integer(5));
  document.set(dict, "ratio", document.real(0.5));
  document.set(dict, "none", document.none());
  document.set(dict, "flag", document.boolean(true));
  document.set(dict, "name", document.string("模型\n"));
  document.set(dict, "raw", document.bytes("abc"));
  document.set(dict, "shape", document.tuple({document.integer(2), document.integer(3)}));
  document.set(dict, "empty", document.list());
  document.add_pair(dict, document.integer(7), document.string("x"));
  EXPECT_EQ(shown(document),
            "dict 9 entries\n"
            "  iteration: 5\n"
            "  ratio: 0.5\n"
            "  none: None\n"
            "  flag: True\n"
            "  name: '模型\\n'\n"
            "  raw: 3 bytes\n"
            "  shape: tuple (2, 3)\n"
            "  empty: list 0 elements\n"
            "  7: 'x'\n");
}

TEST(DescribeValue, NamesWhatWouldBeCalled) {
  pickle::Document document;
  const pickle::Value arguments = document.tuple({document.string("rm -rf /")});
  const pickle::Value call = document.reduce(document.global("os", "system"), arguments);
  const pickle::Value object = document.object(document.global("argparse", "Namespace"));
  document.set_attribute(object, "tp", document.integer(2));
  const pickle::Value ordered = document.ordered_dict();
  document.set(ordered, "k", document.global("evil\x1b[2J", "name"));
  document.set_root(document.tuple({call, object, ordered}));
  EXPECT_EQ(shown(document),
            "tuple 3 elements\n"
            "  [0]: call os.system\n"
            "    arguments: tuple ('rm -rf /')\n"
            "  [1]: object argparse.Namespace\n"
            "    tp: 2\n"
            "  [2]: call collections.OrderedDict\n"
            "    k: global evil\\x1b[2J.name\n");
}

TEST(DescribeValue, ShowsTensorsAsTensors) {
  // What torch.save writes for a float32 tensor of shape (2,).
  pickle::Document document;
  const pickle::Value id = document.persistent_id(
      document.tuple({document.string("storage"), document.global("torch", "FloatStorage"),
                      document.string("0"), document.string("cpu"), document.integer(2)}));
  const pickle::Value arguments = document.tuple(
      {id, document.integer(0), document.tuple({document.integer(2)}),
       document.tuple({document.integer(1)}), document.boolean(false), document.ordered_dict()});
  document.set_root(
      document.reduce(document.global("torch._utils", "_rebuild_tensor_v2"), arguments));
  EXPECT_EQ(shown(document), "tensor float32 (2,), storage 0\n");
}

TEST(DescribeValue, SurvivesCyclesAndDepth) {
  pickle::Document document;
  const pickle::Value list = document.list();
  document.append(list, list);
  document.set_root(list);
  EXPECT_THAT(shown(document), HasSubstr("[0]: list within itself: a cycle"));

  pickle::Document deep;
  pickle::Value value = deep.list();
  for (int i = 0; i < 100'000; ++i) {
    const pickle::Value outer = deep.list();
    deep.append(outer, value);
    value = outer;
  }
  deep.set_root(value);
  EXPECT_EQ(shown(deep, {.depth = 2, .nodes = 1000}),
            "list 1 element\n  [0]: list 1 element\n    [0]: list 1 element\n");
}

TEST(DescribeValue, IsBoundedByItsLimits) {
  // Each list holds the one before twice: 2^60 leaves in sixty nodes.
  pickle::Document document;
  pickle::Value value = document.list();
  document.append(value, document.dict());
  for (int i = 0; i < 60; ++i) {
    const pickle::Value outer = document.list();
    document.append(outer, value);
    document.append(outer, value);
    value = outer;
  }
  document.set_root(value);
  const std::string text = shown(document, {.depth = 100, .nodes = 200});
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 500);
  EXPECT_THAT(text, HasSubstr("more"));
}

TEST(DescribeValue, CutsLongContainersAndTexts) {
  pickle::Document document;
  const pickle::Value list = document.list();
  for (int i = 0; i < 1234; ++i) document.append(list, document.dict());
  document.set_root(document.tuple({list, document.string(std::string(1 << 20, 'a'))}));
  const ValueNode root = describe_value(document.root(), {.depth = 4, .nodes = 200});
  ASSERT_EQ(root.children.size(), 2u);
  EXPECT_EQ(root.children[0].children.size(), 20u);
  EXPECT_EQ(root.children[0].left_out, 1214u);
  EXPECT_THAT(tree_text(root), HasSubstr("… 1,214 more\n"));
  EXPECT_LT(root.children[1].text.size(), 200u);
}

TEST(DescribeValue, WritesTheSameTreeAsJson) {
  pickle::Document document;
  const pickle::Value dict = document.dict();
  document.set(dict, "a", document.dict());
  document.set_root(dict);
  JsonWriter json;
  write_tree(json, describe_value(document.root(), {}));
  EXPECT_EQ(json.take(), R"({
  "kind": "dict",
  "text": "1 entry",
  "children": [
    {
      "label": "a",
      "kind": "dict",
      "text": "0 entries"
    }
  ]
}
)");
}

}  // namespace
}  // namespace shardwright::cli
