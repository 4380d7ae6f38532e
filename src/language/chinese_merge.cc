// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <span>

#include "language/chinese_tables.h"

namespace shardwright {

std::span<const Sentence> chinese_of_merge() {
  static constexpr auto kSentences = std::to_array<Sentence>({
      {"--config is missing; give the whole model's config.json or its folder",
       "缺少 --config；请给出整个模型的 config.json 或其文件夹"},
      {"{} differs from the embedding, but the whole model's config says that they are one "
       "tensor (tie_word_embeddings)",
       "{} 与 embedding 不同，而整个模型的配置说它们是同一个张量（tie_word_embeddings）"},
      {"--component is missing; give one for each part of the model, for example --component "
       "language=LLM --component images=VIT",
       "缺少 --component；请为模型的每个部分给出一个，例如 --component language=LLM --component "
       "images=VIT"},
      {"{} {}: {} has no such part; it has {}", "{} {}: {} 没有这个部分；它有 {}"},
      {"--component {}: found tensors of {} in {}, named as in a whole model, expected this "
       "part's alone; `split` that model first and give its folder {}",
       "--component {0}: {2} 中有 {1} 的张量，名字与整个模型中的一样，应只有这个部分的；请先对该"
       "模型执行 `split`，再给出其文件夹 {3}"},
      {"family {} cannot be taken apart: its mapping file does not say what each part's tensors "
       "are called ('hf' in components)",
       "家族 {} 不能拆开：它的映射文件没有说明各部分的张量叫什么（components 中的 'hf'）"},
      {"--component {} is given twice; give one folder for each part",
       "--component {} 给出了两次；每个部分请只给一个文件夹"},
      {"--component {}: found a {} checkpoint in {}, expected Hugging Face files; convert it "
       "with --to hf first",
       "--component {0}: {2} 中是 {1} 检查点，应为 Hugging Face 文件；请先用 --to hf 转换"},
      {"--without {} contradicts --component {}; give one of the two",
       "--without {} 与 --component {} 矛盾；请只给其中一个"},
      {"family {}: found more than {} ways to name the parts' tensors",
       "家族 {}: 命名各部分张量的方式超过 {} 种"},
      {"{} tensors are left out (--without {}): the model's own software will not find them",
       "{} 个张量不写出（--without {}）：模型自己的软件将找不到它们"},
      {"found {} tensors of it in no folder; give --component {}=DIR with them, or --without {} "
       "to leave all of it out",
       "它有 {} 个张量不在任何文件夹中；请用 --component {}=DIR 给出，或用 --without {} 全部不写"
       "出"},
      {"found {} tensors that the model has no place for, expected only this part's, named as "
       "in the whole model or as in a checkpoint of the part alone",
       "有 {} 个张量在模型中没有位置，应只有该部分的张量，名字与整个模型中或该部分单独的检查点中"
       "一样"},
      {"config.json: found an output width of {}, expected the language model's hidden size {}",
       "config.json: 输出宽度为 {}，应为语言模型的隐藏大小 {}"},
      {"found {} tensors that {} ({}) has too, expected each in one folder",
       "有 {} 个张量在 {}（{}）中也有，每个应只在一个文件夹中"},
      {"{} is written as a copy of {}: the part's config says that they are one tensor, the "
       "whole model's that they are two",
       "{} 写成 {} 的副本：该部分的配置说它们是同一个张量，整个模型的配置说是两个"},
      {"its own config.json says otherwise than the whole model's: {}",
       "它自己的 config.json 与整个模型的不同：{}"},
      {"parts have different types: {}; each keeps its own",
       "各部分的类型不同：{}；各自保持自己的类型"},
      {"{}: found {} tensors that belong to no part of {}: {}; the 'hf' prefixes of its mapping "
       "file's components say what does",
       "{0}: 有 {1} 个张量不属于 {2} 的任何部分：{3}；归属由其映射文件中各组件的 'hf' 前缀说明"},
      {"{}: found {} tensors for which family {} has no rule: {}; check the family and the numbers "
       "in config.json",
       "{0}: 有 {1} 个张量在家族 {2} 中没有规则：{3}；请检查家族和 config.json 中的数字"},
      {"the model has no tensors of {}: no folder is written for it",
       "模型没有 {} 的张量：不为它写文件夹"},
      {"config.json has no {}: {} gets no config.json", "config.json 没有 {}：{} 没有 config.json"},
      {"{} {} (here {})", "{} {}（此处为 {}）"},
  });
  return kSentences;
}

}  // namespace shardwright
