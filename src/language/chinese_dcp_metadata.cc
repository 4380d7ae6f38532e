// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <span>

#include "language/chinese_tables.h"

namespace shardwright {

std::span<const Sentence> chinese_of_dcp_metadata() {
  static constexpr auto kSentences = std::to_array<Sentence>({
      {" tensor {}: found relative_path '{}' {}, expected a file inside the checkpoint; do not "
       "use this checkpoint",
       " 张量 {}: relative_path '{}' {}，应为检查点之内的文件；不要使用该检查点"},
      {"which is empty", "是空的"},
      {"with a NUL", "含有 NUL"},
      {"with a backslash", "含有反斜杠"},
      {"which is absolute", "是绝对路径"},
      {"with a part '..', '.' or ''", "含有 '..'、'.' 或 '' 部分"},
      {" tensor {}: found dtype torch.{}, expected a plain number type; quantised tensors are "
       "not supported, save them dequantised",
       " 张量 {}: 发现 dtype torch.{}，应为普通数字类型；不支持量化张量，请反量化后保存"},
      {" tensor {}: found layout {}, expected torch.strided",
       " 张量 {}: 发现 layout {}，应为 torch.strided"},
      {" tensor {}: found a name that is no UTF-8, expected UTF-8",
       " 张量 {}: 名字不是 UTF-8，应为 UTF-8"},
      {"what is wrong with its entries", "它的条目中有什么错误"},
      {" tensor {}: found chunk {} at {} of shape {}, expected it inside {}; the file was "
       "damaged, restore it",
       " 张量 {}: chunk {} 位于 {}，形状 {}，应在 {} 之内；该文件已损坏，请恢复它"},
      {"its tensors", "它的张量"},
      {" tensor {}: found the name twice, expected it once", " 张量 {}: 名字出现两次，应为一次"},
      {" tensor {}", " 张量 {}"},
      {" tensor {}: found chunks of {} axes in a tensor of {}, expected the same",
       " 张量 {0}: 有 {1} 个轴的 chunk，而张量有 {2} 个轴，应相同"},
      {"its entries", "它的条目"},
      {" object {}: found the name twice, expected it once", " 对象 {}: 名字出现两次，应为一次"},
      {"its storage entries", "它的存储条目"},
      {" tensor {}: found offset {} and length {} in {}, expected a range of bytes",
       " 张量 {0}: {3} 中的偏移 {1}、长度 {2} 不是字节范围"},
      {" object {}: found two storage entries, expected one",
       " 对象 {}: 发现两个存储条目，应为一个"},
      {" tensor {}: found a storage entry for a chunk at {}, expected it among its {} chunks; "
       "the file was damaged, restore it",
       " 张量 {}: 发现位于 {} 的 chunk 的存储条目，应在它的 {} 个 chunk 之中；该文件已损坏，请恢"
       "复它"},
      {" tensor {}: found two storage entries for chunk {}, expected one",
       " 张量 {}: chunk {} 有两个存储条目，应为一个"},
      {"its original shapes", "它的原始形状"},
      {" tensor {}: no storage entry says in which file chunk {} lies; the file is damaged, "
       "restore it",
       " 张量 {}: 没有存储条目说明 chunk {} 位于哪个文件；该文件已损坏，请恢复它"},
      {" tensor {}: found a storage entry for a name without a description, expected it in "
       "state_dict_metadata; the file was damaged, restore it",
       " 张量 {}: 发现没有描述的名字的存储条目，state_dict_metadata 中应有它；该文件已损坏，请恢"
       "复它"},
      {" object {}: no storage entry says in which file it lies; the file is damaged",
       " 对象 {}: 没有存储条目说明它位于哪个文件；该文件已损坏"},
      {"has lists for sizes or offsets, where torch wants torch.Size or tuples",
       "用列表表示大小或偏移，而 torch 需要 torch.Size 或元组"},
      {"has storage entries of tensors without an offset, by which torch looks them up",
       "张量的存储条目没有偏移，而 torch 按偏移查找"},
      {": found more values waiting than the limit", ": 等待中的值超过上限"},
      {": found an empty stack, expected a value", ": 发现空栈，应有一个值"},
      {": found a memo slot set twice", ": memo 槽设置了两次"},
      {": found a use of an unknown memo slot", ": 使用了未知的 memo 槽"},
      {": found a use of memo slot {}, which was never set", ": 使用了从未设置过的 memo 槽 {}"},
      {": found values nested deeper than the limit", ": 值的嵌套深度超过上限"},
      {": no MARK on the stack", ": 栈上没有 MARK"},
      {": found too many strings that collide", ": 发生碰撞的字符串过多"},
      {"its lists", "它的列表"},
      {": found an empty stack, expected a list", ": 发现空栈，应有一个 list"},
      {": found an empty stack, expected a dict", ": 发现空栈，应有一个 dict"},
      {": found a key without a value", ": 发现没有值的键"},
      {": found opcode {:#04x}, expected one that .metadata files use",
       ": 发现操作码 {:#04x}，应为 .metadata 文件使用的操作码"},
      {": found {} values at STOP, expected one", ": STOP 处有 {} 个值，应为一个"},
      {": found a global whose name is not a string", ": 发现名字不是字符串的 global"},
      {": found BUILD twice on one object, expected it once",
       ": 对同一对象执行了两次 BUILD，应为一次"},
      {"a change of ", "修改了 "},
      {": found a chunk of more than {} axes", ": 发现超过 {} 个轴的 chunk"},
      {": found a chunk with an extent beyond int64", ": 发现范围超过 int64 的 chunk"},
      {": a chunk's offsets and sizes are missing or of different lengths",
       ": chunk 的偏移和大小缺失，或长度不同"},
      {": found a storage entry without an fqn, expected a string",
       ": 发现没有 fqn 的存储条目，应为字符串"},
      {" tensor {}: found a storage entry whose offset is not a tuple of at most {} integers",
       " 张量 {}: 存储条目的偏移不是最多 {} 个整数的元组"},
      {": found a relative_path that is not a string", ": relative_path 不是字符串"},
      {": found an offset or length in {} that is no 64-bit integer",
       ": {} 中的偏移或长度不是 64 位整数"},
      {": found transform_descriptors that are not a list of strings",
       ": transform_descriptors 不是字符串列表"},
      {"has TensorProperties whose state is not the five values that torch wants, the fourth "
       "one a memory format",
       "的 TensorProperties 的状态不是 torch 需要的五个值（第四个为内存格式）"},
      {"mixes TensorProperties of torch 2.3 and later with memory formats of earlier ones, "
       "which only torch 2.0 to 2.2 loads",
       "混用了 torch 2.3 及更高版本的 TensorProperties 与更早版本的内存格式，只有 torch 2.0 到 "
       "2.2 能加载"},
      {"mixes TensorProperties of torch before 2.3 with memory formats of later ones, which no "
       "torch loads",
       "混用了 torch 2.3 之前的 TensorProperties 与更高版本的内存格式，没有 torch 能加载"},
      {": found TensorProperties without a dtype", ": 发现没有 dtype 的 TensorProperties"},
      {": found {} without attributes, expected a dict of them", ": {} 没有属性，应为属性的 dict"},
      {": found two dicts of {}, expected one", ": 发现两个 {} 的 dict，应为一个"},
      {"storage entries", "存储条目"},
      {"planner paths", "planner 路径"},
      {"original shapes", "原始形状"},
      {": found an object with too many known attributes", ": 发现已知属性过多的对象"},
      {" tensor {}: found {}", " 张量 {}: 发现 {}"},
      {"no properties, expected TensorProperties", "没有属性，应为 TensorProperties"},
      {"more than {} axes", "超过 {} 个轴"},
      {"an extent beyond int64", "超过 int64 的范围"},
      {"no size, expected a torch.Size", "没有大小，应为 torch.Size"},
      {"chunks that are not a list of ChunkStorageMetadata of one axis count",
       "不是轴数相同的 ChunkStorageMetadata 列表的 chunks"},
      {"its shared lists of chunks", "它共享的 chunk 列表"},
      {"its planner paths", "它的 planner 路径"},
      {": found entries of {} outside of it", ": {} 的条目出现在它之外"},
      {": found {} that is not a dict", ": {} 不是 dict"},
      {": found {} entries of unknown classes in {} (the first: {}), expected none; the file is "
       "from an unknown writer",
       ": {1} 中有 {0} 个未知类的条目（第一个：{2}），应没有；该文件来自未知的写出者"},
      {"something else", "别的内容"},
      {": found {}, expected a Metadata object of torch.distributed.checkpoint",
       ": 发现 {}，应为 torch.distributed.checkpoint 的 Metadata 对象"},
      {" (and it is not metadata: {})", "（而且它不是元数据：{}）"},
      {"a pickle of DCP metadata", "DCP 元数据的 pickle"},
      {".metadata tensor {}: found file {} at {}+{}, expected one of the {} files and a range "
       "below 2^63",
       ".metadata 张量 {}: 发现文件 {}，位于 {}+{}，应为 {} 个文件之一，范围低于 2^63"},
      {".metadata: found two entries {}, expected one of each name",
       ".metadata: 有两个条目叫 {}，每个名称应只有一个"},
      {".metadata tensor {}: found two chunks that begin at {}, expected one item there",
       ".metadata 张量 {}: 两个 chunk 都始于 {}，那里应只有一个"},
      {"pickle@{}: found memo slot {}, expected one near {}",
       "pickle@{}: 发现 memo 槽 {}，应接近 {}"},
      {"pickle@{}: found a use of memo slot {}, which was never set",
       "pickle@{}: 使用了从未设置过的 memo 槽 {}"},
  });
  return kSentences;
}

}  // namespace shardwright
