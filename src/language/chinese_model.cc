// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <span>

#include "language/chinese_tables.h"

namespace shardwright {

std::span<const Sentence> chinese_of_model() {
  static constexpr auto kSentences = std::to_array<Sentence>({
      {"tensor {}: found no {} beside it, which is its other half",
       "张量 {}: 旁边没有它的另一半 {}"},
      {"tensor {}: found rank {}, expected {} as in {}; adapters of one rank can be converted, "
       "for Megatron has one setting for all",
       "张量 {0}: rank 为 {1}，应与 {3} 一样为 {2}；只能转换 rank 相同的 adapter，因为 Megatron "
       "对全部只有一个设置"},
      {"{} tensor{}", "{0} 个张量"},
      {"; the model has nothing of its {}: 'shardwright split' it, then 'shardwright merge' the "
       "parts with --component {}=DIR (docs/recipes/merge.md)",
       "；模型没有它的 {}：请用 'shardwright split' 拆开它，再用 'shardwright merge' 以 "
       "--component {}=DIR 合并各部分（docs/recipes/merge.md）"},
      {" (nearest missing name: {})", "（最接近的缺失名字：{}）"},
      {"family {}: {} without a rule: {}{}; check the family and its numbers ({}){}",
       "家族 {}: {}没有规则：{}{}；请检查家族及其数字（{}）{}"},
      {"; config.json or the arguments say that the output layer is not tied to the word "
       "embeddings (tie_word_embeddings false), and the checkpoint has none of its own: give a "
       "config.json that says true (--hf-config)",
       "；config.json 或参数说明输出层不与词嵌入共享（tie_word_embeddings 为 false），而该 "
       "checkpoint 没有自己的输出层：请给出值为 true 的 config.json（--hf-config）"},
      {"; config.json or the arguments say that the output layer is tied to the word embeddings "
       "(tie_word_embeddings true), and the checkpoint has one of its own: give a config.json "
       "that says false (--hf-config)",
       "；config.json 或参数说明输出层与词嵌入共享（tie_word_embeddings 为 true），而该 "
       "checkpoint 有自己的输出层：请给出值为 false 的 config.json（--hf-config）"},
      {"family {}: {} missing that it needs: {}; check the family and its numbers ({}){}",
       "家族 {}: 缺少它需要的{}：{}；请检查家族及其数字（{}）{}"},
      {"tensor {}: found shape {} in the Megatron checkpoint, expected {} as it was imported",
       "张量 {}: 在 Megatron 检查点中的形状为 {}，应与导入时一样为 {}"},
      {"tensor {}: found dtype {}, expected floating-point numbers: a model computes with them",
       "张量 {}: dtype 为 {}，应为浮点数：模型用它们计算"},
      {"tensor {}: found dtype {}, expected bfloat16, float16 or float32; values without their "
       "scales mean nothing",
       "张量 {}: dtype 为 {}，应为 bfloat16、float16 或 float32；没有缩放的值没有意义"},
      {"tensor {}: found {} rows, expected {} as in {}: Megatron pads the vocabulary of {} to one "
       "height",
       "张量 {0}: 有 {1} 行，应与 {3} 一样为 {2} 行：Megatron 把 {4} 行的词表填充到同一高度"},
      {"tensor {}: found dtype {}, expected {} as of {}: Megatron stores layers that are alike as "
       "one tensor; --dtype makes all of them one",
       "张量 {0}: dtype 为 {1}，应与 {3} 一样为 {2}：Megatron 把相同的层存为一个张量；--dtype "
       "使它们一致"},
      {"rope.freqs shows heads of {}, but the model's settings (params.json, or config.json where "
       "there is one) say {}, by which rows would be those of other heads; give the model's own",
       "rope.freqs 表明每个头为 {}，但模型的设置（params.json，若有则为 "
       "config.json）写的是 {}，按它各行会属于别的头；请给出模型自己的设置"},
      {"{}; {} lies in {}", "{}；{} 位于 {}"},
      {"{}: was saved as {}{}, the file of another rank; give each file the name that it was saved "
       "under",
       "{}: 保存时名为 {}{}，是另一个 rank 的文件；请恢复各文件保存时的名字"},
      {"{}: was saved as {}{}, in front of {}, which was saved as {}{}: they are in each other's "
       "place; give each file the name that it was saved under",
       "{}: 保存时名为 {}{}，排在 {}（保存时名为 "
       "{}{}）之前：两者互换了位置；请恢复各文件保存时的名字"},
      {"tensor {}: found dtype {}, expected {} as in {}; both are parts of one tensor",
       "张量 {0}: dtype 为 {1}，应与 {3} 一样为 {2}；两者是同一个张量的部分"},
      {"{}: found tensor {} in a second rule, expected one; change the mapping file",
       "{}: 张量 {} 出现在第二条规则中，应为一条；请修改映射文件"},
      {"found shape {}, expected {} = ({}); check that the configuration belongs to these "
       "tensors",
       "形状为 {}，应为 {} =（{}）；请检查配置是否属于这些张量"},
      {"tensor {}: there is none to map", "张量 {}: 没有可映射的"},
      {"tensor {}: found shape {}, expected {} as in {}",
       "张量 {0}: 形状为 {1}，应与 {3} 一样为 {2}"},
      {"{}: found {} axes, expected fewer than {}", "{}: 有 {} 个轴，应少于 {}"},
      {"{}: found shape {}, expected a first axis of {} ('{}'); check that the configuration "
       "belongs to these tensors",
       "{}: 形状为 {}，第一个轴应为 {}（'{}'）；请检查配置是否属于这些张量"},
      {"{}: found shape {}, expected at least {} rows ('vocab'); check vocab_size",
       "{}: 形状为 {}，至少应有 {} 行（'vocab'）；请检查 vocab_size"},
      {"block: found axis {} without an HF axis", "block: 轴 {} 没有对应的 HF 轴"},
      {"tensor {}: found a block at {} of axis {}, expected it inside {}",
       "张量 {0}: 轴 {2} 的 {1} 处有一个 block，应在 {3} 之内"},
      {"tensor {}: found rows at {} twice, expected them once",
       "张量 {}: {} 处的行出现两次，应为一次"},
      {"tensor {}: found blocks for {} elements, expected {}; the mapping file does not "
       "describe this tensor",
       "张量 {}: 各 block 共有 {} 个元素，应为 {}；映射文件与该张量不符"},
      {"block: found tensor {} and {}, expected known ones",
       "block: 发现张量 {} 和 {}，应为已知的"},
      {"{} families fit ({}); name the right one with --family",
       "有 {} 个家族相符（{}）；请用 --family 指定正确的一个"},
      {"config.json has no {}, which family {} needs", "config.json 没有 {}，家族 {} 需要它"},
      {"config.json: found {} = {}, expected {}: family {} knows no other; name another family "
       "with --family, or extend this one with a mapping file of your own (--map)",
       "config.json: {} = {}，应为 {}：家族 {} 不认识其他值；请用 --family 指定另一个家族，或用"
       "自己的映射文件扩展它（--map）"},
      {"config.json: no known family has the architecture '{}' (model_type '{}'){}; name one "
       "with --family (see 'shardwright map list')",
       "config.json: 没有已知家族具有架构 '{}'（model_type '{}'）{}；请用 --family 指定一个（见 "
       "'shardwright map list'）"},
      {", near to {}", "，接近的有 {}"},
      {"no family is called '{}'; {}", "没有叫作 '{}' 的家族；{}"},
      {"family {}: other tensors", "家族 {}: 张量不同"},
      {"no known family matches these arguments and {} tensors; nearest is {}: {}",
       "没有已知家族与这些参数和 {} 个张量相符；最接近的是 {}：{}"},
      {"no known family matches these arguments and {} tensors; nearest is {}, which has no rule "
       "for {} and lacks {}; check their names, or name the family (--family)",
       "没有已知家族与这些参数和 {} 个张量相符；最接近的是 {}，它没有 {} 的规则，并缺少 "
       "{}；请检查其名称，"
       "或用 --family 指定家族"},
      {"no known family matches these arguments and {} tensors; nearest is {}, which needs {} "
       "more: "
       "{}; check that no part was lost, or name the family (--family)",
       "没有已知家族与这些参数和 {} 个张量相符；最接近的是 {}，它还需要 {} "
       "个：{}；请检查是否丢失"
       "了一部分，或用 --family 指定家族"},
      {", such as {}", "（如 {}）"},
      {"no known family matches these arguments and {} tensors{} (see 'shardwright map list'); "
       "name one with --family to see what does not fit, or give --hf-config",
       "没有已知家族与这些参数和 {} 个张量{}相符（见 'shardwright map list'）；请用 --family 指定"
       "一个以查看哪里不符，或给出 --hf-config"},
      {"'{}': found {}, expected {} to {}", "'{}': 发现 {}，应为 {} 到 {}"},
      {"{} rows with copies", "{} 行（含副本）"},
      {"'{}': found too many rows in one group, expected at most {}",
       "'{}': 一组中的行数过多，最多应为 {}"},
      {"{} rows at {}", "{1} 处的 {0} 行"},
      {"them inside a stride of {}", "它们在步长 {} 之内"},
      {"'{}': found {} rows in one group, expected at most {}",
       "'{}': 一组中有 {} 行，最多应为 {}"},
      {"{} rows of one tensor in a group", "一组中同一张量的 {} 行"},
      {"'{}': found {} groups of {} runs, expected at most {} runs",
       "'{}': 有 {} 组，每组 {} 段，最多应为 {} 段"},
      {"{} rows in {}", "{1} 中的 {0} 行"},
      {"keys of a number of heads that divides {}", "头数能整除 {} 的 key"},
      {"{} but for axis 0", "除轴 0 外为 {}"},
      {"family {}: found {} beside {}, expected one of them: the head of rewards, values or "
       "classes takes the place of the language model's; leave one out with --exclude",
       "家族 {0}: {2} 旁边有 {1}，应只有其中一个：奖励、价值或分类的 head 取代语言模型的；请用 "
       "--exclude 不写出其中一个"},
      {"tensor {}: found {} rows, expected {}: config.json has so many labels (id2label or "
       "num_labels); they belong to different models, or one of them was changed",
       "张量 {}: 发现 {} 行，应为 {}：config.json 有这么多标签（id2label 或 num_labels）；它们属"
       "于不同的模型，或其中一个被改动过"},
      {"{} more arguments", "另外 {} 个参数"},
      {"other values of some tensors", "某些张量的值不同"},
      {"nothing otherwise", "其他都相同"},
      {"{} {}, which takes {} of {} tensors{}", "{0} {1}，它用到 {3} 个张量中的 {2} 个{4}"},
      {"as near as any is", "同样接近的是"},
      {"nearest is", "最接近的是"},
      {"; as many are taken by ", "；同样多的还有 "},
      {"; --family says which of them the model is", "；请用 --family 说明模型是其中哪一个"},
      {"found {}, expected {}; check that the configuration belongs to these tensors",
       "发现 {}，应为 {}；请检查配置是否属于这些张量"},
      {"at least {} axes", "至少 {} 个轴"},
      {"{} but for axis {}", "除轴 {1} 外为 {0}"},
      {"axis {}: found an extent beyond 64 bits", "轴 {}: 范围超过 64 位"},
      {"axis {} to hold its {} parts exactly", "轴 {} 恰好容纳它的 {} 个部分"},
      {"{} like the first", "{}，与第一个相同"},
      {"axis {} to be a multiple of {}", "轴 {} 是 {} 的倍数"},
      {"an even extent of axis {}", "轴 {} 为偶数"},
      {"{} to {} axes", "{} 到 {} 个轴"},
      {"an extent of {} at axis {}", "轴 {1} 的范围为 {0}"},
      {"an extent of 1 at axis {}", "轴 {} 的范围为 1"},
      {"constant: has no pieces to lower", "constant: 没有可降低的部分"},
      {"see 'shardwright map list'", "请看 'shardwright map list'"},
  });
  return kSentences;
}

}  // namespace shardwright
