// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <span>

#include "language/chinese_tables.h"

namespace shardwright {

std::span<const Sentence> chinese_of_plan() {
  static constexpr auto kSentences = std::to_array<Sentence>({
      {"tensor {}: its chunk {} does not fill storage {} of an archive",
       "张量 {}: 它的 chunk {} 没有填满归档的 storage {}"},
      {"plan: nothing fills storage {} of an archive", "plan: 没有内容填充归档的 storage {}"},
      {"tensor {}: a chunk lies outside of its archive's storages",
       "张量 {}: 有 chunk 位于其归档的 storage 之外"},
      {"plan: an archive is in a file that is not there, in that of another, or has no storages",
       "plan: 有归档所在的文件不存在，或在另一归档的文件中，或没有 storage"},
      {"tensor {}: view of {} {}", "张量 {}: 视图 {} {}"},
      {"reads a tensor that is not there", "读取不存在的张量"},
      {"leaves the tensor", "超出张量"},
      {"has the wrong number of axes", "轴数不对"},
      {"names a source axis twice or none", "源轴写了两次或没有"},
      {"reads {} of source {} {}", "读取源 {1} {2} 的 {0}"},
      {"tensor {}: no conversion from {} to {}", "张量 {}: 没有从 {} 到 {} 的转换"},
      {"tensor {}: {} cannot be filled with {}", "张量 {}: {} 不能用 {} 填充"},
      {"plan: recipes and target catalog differ in length", "plan: 配方与目标目录的长度不同"},
      {"plan: object {} is new and has no bytes", "plan: 对象 {} 是新的，没有内容"},
      {"tensor {}: found two tensors of scales for it, expected one",
       "张量 {}: 有两个 scale 张量，应为一个"},
      {"plan: an adapter's matrices are tensors that are not there",
       "plan: adapter 的矩阵是不存在的张量"},
      {"tensor {}: what is added to it, {} {}, {}", "张量 {}: 加到它上面的 {} {} {}"},
      {"tensor {}: found {}, expected float32, bfloat16 or float16; nothing is added to other "
       "types",
       "张量 {}: 发现 {}，应为 float32、bfloat16 或 float16；其他类型不能相加"},
      {"does not have the shape for {}", "的形状不适合 {}"},
      {"{}: tensor {}: found {}, expected float32, bfloat16 or float16; numbers of other types are "
       "not added to {}: convert the adapter first",
       "{}: 张量 {}: 为 {}，应为 float32、bfloat16 或 float16；其他类型的数不会加到 {} "
       "上：请先转换 "
       "adapter"},
      {"{}: its numbers are finite, but their weighted sum with those of the other models is too "
       "large for float32; see that all are of one model, and choose other weights",
       "{}: 它的数都有限，但与其他模型的加权和超出 "
       "float32；请确认它们出自同一个模型，并换用其他权重"},
      {"{}: its numbers and the adapter's are finite, but with what is added to them they are too "
       "large for float32; see that the adapter is of this model",
       "{}: 它的数与 adapter 的数都有限，但相加后超出 float32；请确认该 adapter 属于这个模型"},
      {"is not one whole chunk", "不是一个完整的 chunk"},
      {"has no finite scale", "没有有限的 scale"},
      {"has not one factor for each row", "不是每行一个系数"},
      {"tensor {}: an adapter is added to it twice", "张量 {}: 对它加了两次 adapter"},
      {"plan: a term is a tensor that is not there", "plan: 有一项是不存在的张量"},
      {"tensor {}: found {} of {} as lower halves of {}, expected int16",
       "张量 {}: 发现 {}（{}）作为 {} 的低半部分，应为 int16"},
      {"{}: found a master weight that is no remainder among others that are; convert without the "
       "optimizer (--optimizer drop)",
       "{}: 在余数形式的主权重中发现一个不是余数的值；请不带优化器转换（--optimizer drop）"},
      {"tensor {}: its weight in a sum is no finite number", "张量 {}: 它在和中的权重不是有限的数"},
      {"tensor {}: it is two terms of sums", "张量 {}: 它是和中的两项"},
      {"tensor {}: it is made of terms of a sum and of other tensors",
       "张量 {}: 它由和的各项与其他张量共同构成"},
      {"tensor {}: a constant is added to a sum", "张量 {}: 对和加了常量"},
      {"tensor {}: a sum is quantised", "张量 {}: 对和做了量化"},
      {"tensor {}: found {}, expected float32, bfloat16 or float16, whose sums are made in "
       "float32",
       "张量 {}: 发现 {}，应为 float32、bfloat16 或 float16，它们以 float32 求和"},
      {"tensor {}: not in the source checkpoint", "张量 {}: 不在源检查点中"},
      {"tensor {}: the checkpoint lacks {}", "张量 {}: 检查点中缺少 {}"},
      {"are multiplied with what is no single number", "与不是单个数的值相乘"},
      {"have groups that no column finds", "有任何列都找不到的组"},
      {"tensor {}: its scales {} {} {}", "张量 {}: 它的 scale {} {} {}"},
      {"multiply values that are not quantised", "与未量化的值相乘"},
      {"or the values are not one whole chunk", "或者值不是一个完整的 chunk"},
      {"have no such words", "没有这样的字"},
      {"belong to values that end before the tensor does", "所属的值在张量结束之前就结束了"},
      {"are of a type that scales do not have", "的类型不是 scale 的类型"},
      {"have no blocks or lie too far apart", "没有块，或相距过远"},
      {"end before the values do", "在值结束之前就结束了"},
      {"have zeros in no words", "的零点不在字中"},
      {"have zeros that are not one whole chunk", "的零点不是一个完整的 chunk"},
      {"have zeros that end before the values do", "的零点在值结束之前就结束了"},
      {"plan: scales or their values are tensors that are not there",
       "plan: scale 或它们的值是不存在的张量"},
      {"tensor {}: {} {} {}", "张量 {}: {} {} {}"},
      {"is made of no matrix", "不是由矩阵构成"},
      {"has no groups of pairs", "没有成对的组"},
      {"has not the shape of what it is made of", "的形状与其来源不同"},
      {"has not the type of what it is made of", "的类型与其来源不同"},
  });
  return kSentences;
}

}  // namespace shardwright
