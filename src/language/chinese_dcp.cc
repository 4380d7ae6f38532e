// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <span>

#include "language/chinese_tables.h"

namespace shardwright {

std::span<const Sentence> chinese_of_dcp() {
  static constexpr auto kSentences = std::to_array<Sentence>({
      {"the ranks' own __N.metadata beside .metadata are not read: {}; move them away if they are "
       "of "
       "another save",
       ".metadata 旁边各 rank 自己的 __N.metadata 未被读取：{}；若属于另一次保存，请把它们移走"},
      {".metadata is read; the ranks' own __N.metadata beside it say otherwise of {}: they are of "
       "two "
       "saves, move the files of the other away",
       "读取的是 .metadata；旁边各 rank 自己的 __N.metadata 对 {} "
       "的说法不同：它们属于两次保存，请把另一次的文件移走"},
      {"{}: tensor {}: its bytes end at {}, but the file has {}; it was cut or does not belong "
       "to this metadata",
       "{}: 张量 {}: 它的数据结束于 {}，而文件只有 {} 字节；它被截断，或不属于该元数据"},
      {"tensor {}: {} bytes of memory were given for {}, which has {}",
       "张量 {0}: 为 {2} 给出了 {1} 字节的内存，而它有 {3} 字节"},
      {"decoded items", "解码后的条目"},
      {"its zstd items", "它的 zstd 条目"},
      {"decoded items: the catalog and its files differ in number",
       "解码后的条目: 目录与其文件数量不同"},
      {"entry {}: found the stream extension {}, expected {} or none; re-save it without that "
       "extension",
       "条目 {}: 发现流扩展 {}，应为 {} 或没有；请不用该扩展重新保存"},
      {"tensor {}: found {} of {} chunks stored through {}, expected all or none",
       "张量 {0}: {2} 个 chunk 中有 {1} 个经 {3} 存储，应全部或都不"},
      {"--exclude leaves tensors out by name, and --replica N takes the copies of tensor rank N",
       "--exclude 可按名字不写出张量，--replica N 取张量 rank N 的副本"},
      {"its piece {} is cut otherwise than {} of {}", "它的第 {0} 块与 {2} 的 {1} 切法不同"},
      {"tensor {}: it is {}, and {} is {}", "张量 {}: 它是 {}，而 {} 是 {}"},
      {"tensor {}: only one of it and {} is compressed", "张量 {}: 它与 {} 中只有一个是压缩的"},
      {"--replica {}: tensor {} has no copy of that tensor rank; it has those of {}",
       "--replica {}: 张量 {} 没有该张量 rank 的副本；有的是 {} 的"},
      {"tensor {}: found a copy of tensor rank {}, but the run that saved it had {} tensor "
       "ranks for it, numbered from 0; the copy belongs to another save, or the run's arguments "
       "do; {}",
       "张量 {}: 发现张量 rank {} 的副本，但保存它的训练对该张量有 {} 个张量 rank（从 0 编号）；"
       "该副本或训练参数属于另一次保存；{}"},
      {"{} {}: the name says that it is one rank's copy of something else, and no model looks "
       "for it; --exclude leaves it out",
       "{} {}: 名字表明它是某个 rank 对别的内容的副本，没有模型会查找它；--exclude 可不写出它"},
      {"{}; ranks stored {} apart, and their copies must be alike; {}",
       "{}；各 rank 分别存储了 {}，它们的副本必须相同；{}"},
      {"{} tensor{}, {} the first, {} {}", "{0} 个张量（第一个是 {2}）{4}"},
      {"stored once by each tensor rank, as NAME.__tp_replica_RANK: the copies are taken for "
       "replicas of NAME",
       "由每个张量 rank 各存了一份，名为 NAME.__tp_replica_RANK：这些副本当作 NAME 的副本"},
      {"stored once more in part, as __shadow_RANK__NAME, for the ranks that load them: those "
       "are taken for replicas of NAME",
       "另有部分存储，名为 __shadow_RANK__NAME，供加载它们的 rank 使用：当作 NAME 的副本"},
      {"stored without a tensor rank too: that is taken for one more replica",
       "也有不带张量 rank 的存储：当作又一个副本"},
      {"without the whole copy of tensor rank {}: the other copies serve",
       "没有张量 rank {} 的完整副本：使用其他副本"},
      {"--replica {}: no tensor has copies that tensor ranks stored under names of their own "
       "(NAME.__tp_replica_RANK); leave the flag out",
       "--replica {}: 没有张量带有各张量 rank 以自己的名字存储的副本（NAME.__tp_replica_RANK）；"
       "请去掉该参数"},
      {"--replica {}: {} tensors, {} the first, are taken as tensor rank {} stored them; what "
       "other ranks hold is not looked at",
       "--replica {0}: {1} 个张量（第一个是 {2}）取张量 rank {3} 存储的那份；不看其他 rank 的内"
       "容"},
      {"entry {}: found a tensor on one rank and an object on another",
       "条目 {}: 在一个 rank 上是张量，在另一个上是对象"},
      {"{}: tensor {}: found {} {}, expected {} {} as the ranks before it say; they do not "
       "belong to one save",
       "{}: 张量 {}: 发现 {} {}，前面的 rank 说应为 {} {}；它们不属于同一次保存"},
      {"{}: not found, expected one file for each rank up to {}",
       "{}: 不存在，应为每个 rank 一个文件，直到 {}"},
      {"entry {} is left out: the ranks that saved it have different values",
       "条目 {} 不写出：保存它的各 rank 的值不同"},
      {"resolved views", "解析后的视图"},
      {"resolved views: the catalog and its files differ in number",
       "解析后的视图: 目录与其文件数量不同"},
      {"@{}: no tensor begins there, says the file's safetensors header",
       "@{}: 该文件的 safetensors 头说那里没有张量开始"},
      {"{}: tensor {}: the archive of chunk {} holds {} {}, expected {} {}; the metadata and "
       "the file do not belong together, or torch wrote them wrong",
       "{}: 张量 {}: chunk {} 的归档为 {} {}，应为 {} {}；元数据与该文件不配套，或 torch 写错了"},
      {"tensor {}: the metadata describes its strided shards wrong (a fault of torch 2.12 and "
       "2.13); {} chunks are read at the rows that their items hold",
       "张量 {}: 元数据对它的跨步分片描述有误（torch 2.12 和 2.13 的缺陷）；{} 个 chunk 按其条目"
       "所含的行读取"},
      {"{}: is a {}, which torch loads only where Megatron-Core is there",
       "{}: 是 {}，torch 只有在装有 Megatron-Core 时才能加载"},
      {"{}; torch itself fails on it or loads something else; a converted copy (--to dcp, for "
       "one) is described right",
       "{}；torch 自己会加载失败，或加载出别的内容；转换后的副本（例如 --to dcp）是正确的"},
  });
  return kSentences;
}

}  // namespace shardwright
