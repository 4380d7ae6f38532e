// SPDX-License-Identifier: Apache-2.0
#include "model/module_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/mapping_file.h"

namespace shardwright {
namespace {

using testing::HasSubstr;

std::vector<ModuleWords> words_of(
    std::initializer_list<std::pair<std::string_view, std::string_view>> entries) {
  std::vector<ModuleWords> words;
  for (const auto& [files, modules] : entries) {
    words.push_back(parse_module_words(files, modules).value());
  }
  return words;
}

TEST(ModuleNames, ReplaceWholeWordsFromLeftToRight) {
  const auto words = words_of({{"block", "mlp"},
                               {"block.experts.*.w1", "mlp.experts.*.gate_proj"},
                               {"attn.*.of.*", "self_attn.*.*"},
                               {"^norm", "model.norm"}});
  const auto made = [&](std::string_view name) { return with_module_words(words, name); };
  EXPECT_EQ(made("model.layers.1.block.gate.weight"), "model.layers.1.mlp.gate.weight");
  EXPECT_EQ(made("model.layers.1.block.experts.12.w1.weight"),
            "model.layers.1.mlp.experts.12.gate_proj.weight")
      << "the entry with more words, and its own word for *";
  EXPECT_EQ(made("block.experts.12.w2.weight"), "mlp.experts.12.w2.weight");
  EXPECT_EQ(made("attn.q.of.k.weight"), "self_attn.q.k.weight");
  EXPECT_EQ(made("a.blocks.b"), "a.blocks.b") << "part of a word";
  EXPECT_EQ(made("norm.weight"), "model.norm.weight");
  EXPECT_EQ(made("layers.0.norm.weight"), "layers.0.norm.weight") << "not the beginning";
  EXPECT_EQ(made("attn.q.of"), "attn.q.of") << "the name ends before the entry does";
}

TEST(ModuleNames, ReplaceNothingTwice) {
  const auto words = words_of({{"a", "b"}, {"b", "c"}});
  EXPECT_EQ(with_module_words(words, "a.b.a"), "b.c.b");
}

TEST(ModuleNames, AreWordsWithAsManyStars) {
  for (const auto& [files, modules] : std::initializer_list<std::pair<const char*, const char*>>{
           {"a.*", "b"}, {"a..b", "c"}, {"", "c"}, {"a", ""}, {"a.^b", "c"}, {"a", "^c"}}) {
    const auto entry = parse_module_words(files, modules);
    ASSERT_FALSE(entry) << files << " " << modules;
    EXPECT_EQ(entry.error().code, Code::kMappingInvalid);
    EXPECT_THAT(entry.error().message, HasSubstr("as many *"));
  }
}

}  // namespace
}  // namespace shardwright
