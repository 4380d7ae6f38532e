// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <span>

#include "language/chinese_tables.h"

namespace shardwright {

std::span<const Sentence> chinese_of_verify() {
  static constexpr auto kSentences = std::to_array<Sentence>({
      {"the models compute with other settings, which are not compared (left | right): {}",
       "两个模型计算所用的设置不同，这里不比较（左 | 右）：{}"},
      {"comparing tensors", "正在比较张量"},
      {"{}: its optimizer states are not compared: {}", "{}：它的优化器状态没有比较：{}"},
      {"only one side has any", "只有一侧有"},
      {": nothing says which of them belong to which tensor of the model",
       "：没有信息说明哪些属于模型的哪个张量"},
      {"NOT ALL COMPARED", "未全部比较"},
      {"one side has them as states of the model's tensors, the other as they are stored ({})",
       "一侧是模型张量的状态，另一侧保持存储时的形式（{}）"},
      {"{} values that only Hugging Face stores are not compared: only one side keeps them",
       "不比较 {} 个只有 Hugging Face 才存储的值：只有一侧保留它们"},
      {"{} optimizer states are not compared: {}", "不比较 {} 个优化器状态：{}"},
      {" is not compared: only one side keeps it", "不比较：只有一侧保留它"},
      {"optimizer: no arguments of the run tell which states lie where in the flat buffers: they "
       "are "
       "proven as they are stored, and a conversion leaves them out (--optimizer drop)",
       "优化器：没有训练参数说明各状态在 flat buffer "
       "中的位置：它们按存储的样子得到验证，转换时须不带它们"
       "（--optimizer drop）"},
      {"optimizer: states in flat buffers of a MIMO model are not read, and not proven",
       "optimizer: MIMO 模型扁平缓冲区中的状态不读取，也不证明"},
      {"{}: {} does not list this file: it was added since; move it away",
       "{}: {} 没有列出该文件：它是之后加入的；请移走它"},
      {"{}: its list was not compared: {}", "{}: 它的列表没有比较：{}"},
      {"{}: the key of its own certificate has signed it; whether that is of {}, as it says, "
       "was not looked at, and anybody can write a certificate: give those that you trust "
       "(--certificate-chain), or let 'model_signing verify' look",
       "{}: 是用它自己的证书的密钥签名的；该密钥是否如其所说属于 {} 没有检查，任何人都能制作证书"
       "：请给出您信任的证书（--certificate-chain），或用 'model_signing verify' 检查"},
      {"{}: who signed it was not looked at, and anybody could have: give the signer's key "
       "(--public-key), or let 'model_signing verify' look",
       "{}: 没有检查是谁签名的，可能是任何人：请给出签名者的密钥（--public-key），或用 "
       "'model_signing verify' 检查"},
      {"the files do not say which ranks or save they are of: some in each other's place would "
       "not be noticed, but by digests ('hash --manifest', 'verify --against')",
       "文件没有说明自己属于哪个 rank 或哪次保存：若互换位置不会被发现，除非用摘要（'hash "
       "--manifest'、'verify --against'）"},
      {"the files do not say which save they are of: one of another save among them would not be "
       "noticed, but by digests ('hash --manifest', 'verify --against')",
       "文件没有说明自己属于哪次保存：若其中混入另一次保存的文件不会被发现，除非用摘要（'hash "
       "--manifest'、'verify --against'）"},
      {"{} master weights are not their weights, the first: {}",
       "{} 个主权重与其权重不符，第一个：{}"},
      {"hashing tensors", "正在计算张量的摘要"},
      {"hashed by the stored names, because ", "按存储的名字计算摘要，因为 "},
      {"optimizer states are left out: ", "优化器状态没有计入："},
      {"optimizer states are taken as they are stored: ", "优化器状态照存储的样子取用："},
      {"manifest: {}; make it with 'hash --manifest'", "manifest: {}；请用 'hash --manifest' 生成"},
      {"found a tensor without name, dtype, shape or digest of 32 hex digits",
       "发现没有 name、dtype、shape 或 32 位十六进制 digest 的张量"},
      {"found an unknown dtype of tensor ", "发现未知 dtype 的张量 "},
      {"found too many axes of tensor ", "发现轴数过多的张量 "},
      {"found a shape that is not a list of sizes", "发现不是大小列表的 shape"},
      {"its 'tensors' is not a list", "它的 'tensors' 不是列表"},
      {"its schema is not {}", "它的 schema 不是 {}"},
      {"its algorithm is not {}", "它的 algorithm 不是 {}"},
      {"its names are neither canonical nor stored", "它的 names 既不是 canonical 也不是 stored"},
      {"its digest is not that of the tensors that it lists", "它的 digest 不是所列张量的 digest"},
      {"it lacks names, tensors or digest", "它缺少 names、tensors 或 digest"},
      {"{}: taken over as it is, without a rule for each tensor; checked are what its layers have "
       "in common, what the family always has around them and the sizes that config.json gives",
       "{}: "
       "原样接管，并非每个张量都有规则；检查的是各层的共同之处、该家族在各层之外总有的张量，以及 "
       "config.json 给出的尺寸"},
      {"the model's tensors are not held against a family: ", "模型的张量没有与家族核对："},
      {"common.pt: missing, and no common_state entry replaces it; Megatron loads nothing "
       "without it, and nothing says which model this is; copy it again",
       "common.pt: 缺失，也没有 common_state 条目替代它；没有它 Megatron 什么也不加载，也没有信"
       "息说明这是哪个模型；请重新拷贝它"},
      {"the run's arguments say nothing that names and shapes could confirm or contradict",
       "训练参数中没有可由名字和形状证实或反驳的内容"},
      {"no config.json is near, so the model's tensors are not held against a family; "
       "--hf-config names one",
       "附近没有 config.json，因此模型的张量没有与家族核对；--hf-config 可指定一个"},
      {"{}: missing, and whoever loads the model fills it at random",
       "{}: 缺失，加载该模型时会用随机值填充"},
      {"config.json is missing, so nothing says which tensors the model should have",
       "缺少 config.json，因此没有信息说明模型应有哪些张量"},
      {"config.json: found dtype {}, expected that of some tensor, but none has it: {} is {}",
       "config.json: dtype 为 {0}，应为某个张量的 dtype，但没有张量是它：{1} 为 {2}"},
      {"{}: the tensors have no names of Megatron or of a Hugging Face model",
       "{}: 这些张量既没有 Megatron 的名字，也没有 Hugging Face 模型的名字"},
      {"reading the records", "正在读取记录"},
      {"tensor {}: found in both {} and {}; move the file away that is not the model's",
       "张量 {}: 在 {} 和 {} 中都有；请移走不属于模型的那个文件"},
      {"{} holds no safetensors files", "{} 中没有 safetensors 文件"},
      {"{}: {} ({} of its tensors in no file, {} not listed, {} in another file than it says), "
       "and remote folders are only read; rebuild it in a copy on this machine",
       "{}: {}（其中 {} 个张量不在任何文件中，{} 个没有列出，{} 个在另一个文件中），而远程文件夹"
       "只能读取；请在本机的副本中重建"},
      {"is wrong", "有错误"},
      {"is not there", "不存在"},
      {"; the old one is {}", "；旧的现在是 {}"},
      {"{}: found iteration {} in its state, expected {} as the folder's name says; the folder "
       "was renamed, or its files are of another save",
       "{}: 它的状态中迭代为 {}，按文件夹的名字应为 {}；文件夹被改名，或其文件属于另一次保存"},
      {"{}/{} is missing: Megatron finds no checkpoint there and starts from random weights; if "
       "the save of {} was finished, write '{}' into it",
       "缺少 {}/{}：Megatron 在那里找不到 checkpoint，会从随机权重开始；如果 {} "
       "的保存已完成，请在其中写入 '{}'"},
      {"metadata.json is missing: Megatron-Core takes no folder without it for a distributed "
       "checkpoint; copy it too, or write {} into it",
       "缺少 metadata.json：没有它，Megatron-Core 不会把目录当作分布式 "
       "checkpoint；请一并复制，或在其中写入 {}"},
      {"{}: its tensors are taken as they are stored, and --vocab-size says nothing of those; "
       "leave "
       "it out",
       "{}: 张量按存储的样子读取，--vocab-size 与它们无关；请去掉它"},
      {"{}: found {} rows of the vocabulary, expected {} as --vocab-size says",
       "{}: 词表有 {} 行，--vocab-size 所说应为 {}"},
      {"{}/{}: names {}, which is not there", "{}/{}: 指向 {}，它不存在"},
      {"{}: found {} bytes, expected its entries to end at {}; what is behind them belongs to "
       "nothing",
       "{}: 有 {} 字节，它的条目应结束于 {}；其后的内容不属于任何条目"},
      {"{}: found a file of {} bytes that nothing names; it may be left over from another save",
       "{}: 有 {} 字节的文件，没有任何内容提到它；它可能是另一次保存的残留"},
      {"{}: found total_size {}, expected {} as the headers add up to; 'index rebuild' writes "
       "it anew",
       "{}: total_size 为 {}，按各文件头之和应为 {}；'index rebuild' 会重新写出它"},
      {"the checkpoint has no tensor '{}'; {}", "检查点没有张量 '{}'；{}"},
      {"--replica {}: tensor {} has no copies that tensor ranks stored under names of their "
       "own; leave the flag out",
       "--replica {}: 张量 {} 没有各张量 rank 以自己的名字存储的副本；请去掉该参数"},
      {"what is said of the model or the source changes nothing of names=\"stored\"; say names="
       "\"megatron\" or names=\"hf\", or leave it out",
       "关于模型或源的说明对 names=\"stored\" 不起作用；请用 names=\"megatron\" 或 names=\"hf\""
       "，或去掉它"},
      {"dtype= is for names=\"hf\"; other names have the stored type",
       "dtype= 用于 names=\"hf\"；其他名字保持存储的类型"},
      {"mtp= is for names=\"hf\"; other names have all layers",
       "mtp= 用于 names=\"hf\"；其他名字含有全部层"},
      {"{}: the tensors' names are asked for in no known way", "{}: 以未知的方式要求张量的名字"},
      {"{}: there is no file {} beside tensors under these names",
       "{}: 在这些名字的张量旁边没有文件 {}"},
      {"there is no tensor {}: the checkpoint has {}", "没有张量 {}：检查点有 {} 个"},
      {"{}: {} bytes of memory were given for {}, which has {}",
       "{0}: 为 {2} 给出了 {1} 字节的内存，而它有 {3} 字节"},
      {"there is no entry {} beside the tensors: there are {}", "张量之外没有条目 {}：共有 {} 个"},
      {"{}: ends before entry {}, which lies at bytes {} to {}",
       "{}: 在条目 {} 之前结束，它位于字节 {} 到 {}"},
      {" and {} others", " 以及另外 {} 个"},
      {"tensor {}: found chunk {} in {}, expected it inside {}",
       "张量 {0}: chunk {1} 在 {2}，应在 {3} 之内"},
      {"tensor {}: found chunk {} in {} and chunk {} in {}, expected disjoint chunks",
       "张量 {}: chunk {} 在 {}，chunk {} 在 {}，应互不相交"},
      {"tensor {}: no chunk holds {} ({} elements) of {}",
       "张量 {0}: 没有 chunk 含有 {3} 的 {1}（{2} 个元素）"},
      {"is not in the checkpoint", "不在检查点中"},
      {"is in the checkpoint only", "只在检查点中"},
      {"found {} {}, expected {} {}", "发现 {} {}，应为 {} {}"},
      {"found digest {}, expected {}; its elements differ", "摘要为 {}，应为 {}；它的元素不同"},
      {"tensor {}: lies in a safetensors file inside a .distcp file, as {} pieces in all do",
       "张量 {}: 位于 .distcp 文件内的 safetensors 文件中，共有 {} 块如此"},
      {"{}: nothing guards {}: a bit that flips there is not noticed. 'convert --digests' "
       "writes digests of all files; 'hash --manifest FILE' makes those of tensors, 'verify "
       "--against FILE' checks them",
       "{}: 没有什么保护 {}：那里翻转的位不会被发现。'convert --digests' 写出所有文件的摘要；"
       "'hash --manifest FILE' 生成张量的摘要，由 'verify --against FILE' 检查"},
      {"payload: nothing guards {} records, which have no CRC-32; use hash",
       "payload: {} 个记录没有 CRC-32，没有什么保护它们；请用 hash"},
      {"digests are not compared: ", "没有比较摘要："},
      {"--replica {}: verify compares the copies of all tensor ranks; leave the flag out, or "
       "compare one rank's with diff",
       "--replica {}: verify 比较所有张量 rank 的副本；请去掉该参数，或用 diff 比较其中一个 "
       "rank 的"},
      {"{}; --accept-loss takes what is there", "{}；--accept-loss 可取现有的部分"},
      {"tensors are taken as they are stored: ", "张量照存储的样子取用："},
      {"{}: vocabulary tensors are taken with all {} stored rows; --vocab-size leaves padding "
       "out",
       "{}: 词表张量按存储的全部 {} 行取用；--vocab-size 可去掉填充"},
      {"{}: --source-ep, --source-etp and --source-tp describe an MLite checkpoint, and this is "
       "none that was saved with such sizes; leave them out or correct them",
       "{}: --source-ep、--source-etp 和 --source-tp 描述 MLite 检查点，而这不是以那样的大小保存"
       "的；请去掉或改正它们"},
      {"found vocabularies of {} and of {} rows; where some of them are padding, --vocab-size "
       "says how many are not",
       "词表一方有 {} 行，另一方有 {} 行；若其中有填充行，用 --vocab-size 指明哪些不是填充"},
      {"{}: {} padding rows of the vocabulary are left out, {} count",
       "{}: 词表的 {} 行填充不计入，计入 {} 行"},
      {"see 'shardwright inspect'", "请看 'shardwright inspect'"},
  });
  return kSentences;
}

}  // namespace shardwright
