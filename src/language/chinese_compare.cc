// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <span>

#include "language/chinese_tables.h"

namespace shardwright {

std::span<const Sentence> chinese_of_compare() {
  static constexpr auto kSentences = std::to_array<Sentence>({
      {"tensor {}: {} is not in the source checkpoint", "张量 {}: {} 不在源检查点中"},
      {"{}: found {} bytes, expected {} as {} says; it was altered, or is of another save; "
       "restore it",
       "{0}: 发现 {1} 字节，{3} 说应为 {2}；它被改动过，或属于另一次保存；请恢复它"},
      {"{}: piece {} of {}, bytes {} to {} of {}: found XXH3-128 {}, expected {} as {} says; it "
       "was altered, or is of another save; restore it",
       "{0}: 第 {1} 块（共 {2} 块），{5} 的字节 {3} 到 {4}: XXH3-128 为 {6}，{8} 说应为 {7}；它"
       "被改动过，或属于另一次保存；请恢复它"},
      {"{}: {}found XXH3-128 {}, expected {} as {} says; it was altered, or is of another save; "
       "restore it",
       "{0}: {1}XXH3-128 为 {2}，{4} 说应为 {3}；它被改动过，或属于另一次保存；请恢复它"},
      {"around its tensors: ", "张量之外的部分："},
      {"comparing digests", "正在比较摘要"},
      {"{}, line {}: {}; remove the file if its digests are of no use",
       "{}，第 {} 行: {}；如果不需要它的摘要，请删除该文件"},
      {"expected the schema {}, xxh3-128 and blocks of {} bytes",
       "schema 应为 {}，xxh3-128，每块 {} 字节"},
      {"{}: {}; restore it, or remove it if its digests are of no use",
       "{}: {}；请恢复它；如果不需要它的摘要，请删除它"},
      {"it ends in the middle", "它在中途结束"},
      {"its last line is not the digest of the others: it was altered or cut",
       "最后一行不是其余各行的摘要：它被改动或截断"},
      {"it is too long", "它太长"},
      {"it has no end", "它没有结尾"},
      {"expected a file with bytes and rest", "应为含有 bytes 和 rest 的文件"},
      {"expected a tensor with dtype, shape, chunks in files that are named before it, and a "
       "digest that is of theirs",
       "应为张量，含有 dtype、shape、位于前面已列出的文件中的 chunks，以及与它们相符的摘要"},
      {"expected files and then tensors", "应先列文件，再列张量"},
      {"{}: found SHA-256 {}, but the cache keeps it as {}: it was altered, or its download "
       "broke off; remove the blob and download it again",
       "{}: SHA-256 为 {}，而缓存中它的名字是 {}：它被改动过，或下载中断；请删除该 blob 并重新下"
       "载"},
      {"comparing digests of the cache", "正在比较缓存的摘要"},
      {"{}: expected \"algorithm\": \"sha256\" and \"files\", an object of digests; remove the "
       "file if its digests are of no use",
       "{}: 应有 \"algorithm\": \"sha256\" 和 \"files\"（由摘要组成的对象）；如果不需要它的摘要"
       "，请删除该文件"},
      {"it is {}, under another name", "它是改了名字的 {}"},
      {"it was altered, or is of another save; restore it",
       "它被改动过，或属于另一次保存；请恢复它"},
      {"{}: found SHA-256 {}, expected {} as {} says; {}",
       "{0}: SHA-256 为 {1}，{3} 说应为 {2}；{4}"},
      {"reading what is written for its SHA-256", "正在读取已写的内容以计算 SHA-256"},
      {"tensor {}: found a master weight {}, expected {}", "张量 {}: 主权重为 {}，应为 {}"},
      {"tensor {}: found a weight of {} and a master weight of {}, which cannot be rounded to it; "
       "they are of two saves, or the weight was changed afterwards",
       "张量 {}: 权重是 {}，主权重是 {}，后者无法舍入成前者；两者来自两次保存，或者权重后来被改过"},
      {"tensor {}: found a master weight that, rounded to {}, is not the weight at {}; its "
       "optimizer state belongs to another parameter or another step: convert without it "
       "(--optimizer drop)",
       "张量 {}: 主权重舍入为 {} 后在 {} 处与权重不同；它的优化器状态属于另一个参数或另一步：请"
       "不带优化器转换（--optimizer drop）"},
      {"tensor {}: this weight is left out but its optimizer state is kept, and the state is "
       "proven by the weight; keep or drop both",
       "张量 {}: 该权重不写出，它的优化器状态却保留，而状态要由权重来证明；请两者都保留或都丢弃"},
      {"comparing master weights", "正在比较主权重"},
      {"tensor {}: found the same bytes in all {} tensor-parallel ranks, expected each to hold "
       "its own part: a replica was taken for a shard; see shardwright explain L20, or join "
       "them as they are with convert's --check-replicas none",
       "张量 {}: 全部 {} 个张量并行 rank 中的内容相同，应各有自己的一部分：副本被当成了分片；见 "
       "shardwright explain L20，或用 convert 的 --check-replicas none 照原样拼接"},
      {"tensor {}: found shards that repeat with period {} in {} tensor-parallel ranks, "
       "expected each to hold its own part: fewer ranks share it out; see shardwright explain "
       "L25, or join them as they are with convert's --check-replicas none",
       "张量 {0}: 分片在 {2} 个张量并行 rank 中以 {1} 为周期重复，应各有自己的一部分：它是由更少"
       "的 rank 分担的；见 shardwright explain L25，或用 convert 的 --check-replicas none "
       "照原样拼接"},
      {"comparing shards", "正在比较分片"},
      {"comparing files", "正在比较文件"},
      {"{}: its parts of {} tensors are those that {} holds, byte by byte (the first: {}), "
       "expected parts of its own: one file was copied over another; copy it again from where it "
       "was saved, or take the parts as they are with convert's --check-replicas none",
       "{0}: 其中 {1} 个张量的部分与 {2} 中的逐字节相同（第一个: "
       "{3}），应是它自己的部分：有文件被复制"
       "后覆盖了另一个文件；请从保存处重新复制，或用 convert 的 --check-replicas none 照原样采用"},
      {"{}: its parts of {} tensors are those that {} holds, byte by byte (the first: {}): experts "
       "or layers that were copied when the model was made, or this file was copied over another "
       "one",
       "{0}: 其中 {1} 个张量的部分与 {2} 中的逐字节相同（第一个: "
       "{3}）：要么是制作模型时复制的专家或层，"
       "要么是该文件被复制后覆盖了另一个文件"},
      {"tensor {}: its replicas differ at {}: {} {}, {} {}; find out which is right{}, or take "
       "the first with convert's --check-replicas none",
       "张量 {}: 它的副本在 {} 处不同：{} {}，{} {}；请查明哪个正确{}，或用 convert 的 "
       "--check-replicas none 取第一个"},
      {"tensor {}: its replicas differ at {}: {} {}, {} {}; ranks hold experts of their own under "
       "a "
       "name that is not known to be theirs, so that none may be left out",
       "张量 {}: 它的副本在 {} 处不同：{} {}，{} {}；各 rank 以无法识别为专家的名字保存各自的专家，"
       "因此一个也不能省略"},
      {", and take tensor rank N's with --replica N", "，并用 --replica N 取张量 rank N 的"},
      {"comparing replicas", "正在比较副本"},
      {"{}: {}; expected what model_signing or 'convert --sign' writes; restore it, or remove "
       "it if nobody needs it",
       "{}: {}；应为 model_signing 或 'convert --sign' 写出的内容；请恢复它；如果没人需要它，请"
       "删除它"},
      {"found a file without a name or a SHA-256", "发现没有名字或没有 SHA-256 的文件"},
      {"its digests are of {} by {}, and only SHA-256 of files is compared",
       "它的摘要是用 {1} 对 {0} 计算的，而这里只比较文件的 SHA-256"},
      {"found digests of two kinds", "发现两种摘要"},
      {"{}: the digest over its list is another one: the list was altered; restore the file",
       "{}: 对其列表的摘要不同：列表被改动过；请恢复该文件"},
      {"found no in-toto statement", "没有 in-toto statement"},
      {"its statement is of type {}", "它的 statement 的类型是 {}"},
      {"found no signed statement", "没有已签名的 statement"},
      {"{}: model_signing 0.2 signed this, and made its signatures of other bytes, which are "
       "not checked here; let 'model_signing verify' look, or have it signed again",
       "{}: 这是 model_signing 0.2 签的，它签的是另外的字节，这里不检查；请用 'model_signing "
       "verify' 检查，或重新签名"},
      {"{}: {} did not sign this: another key did{}, or it was altered since",
       "{}: 签名者不是 {}：是另一个密钥签的{}，或签名之后被改动过"},
      {" (that of its certificate)", "（证书中的密钥）"},
      {"{}: it has no certificate: a bare key has signed it, or nobody; ask the signer for the "
       "key, and give that (--public-key)",
       "{}: 没有证书：是用单独的密钥签的，或没有人签过；请向签名者索取密钥，并用 --public-key 给"
       "出"},
      {"{}: its certificate is Sigstore's, which only its transparency log makes one of "
       "somebody; let 'model_signing verify sigstore' look",
       "{}: 它的证书是 Sigstore 的，只有其透明日志能说明证书属于谁；请用 'model_signing verify "
       "sigstore' 检查"},
      {"{}: the key of its own certificate, of {}, did not sign this: it was altered since",
       "{}: 不是用它自己的证书（属于 {}）的密钥签的：签名之后被改动过"},
      {"{}: it is not there, so nobody has signed this", "{}: 不存在，所以没有人为此签名"},
      {"it can't be read", "无法读取"},
      {" ({} tensors have such holes: {}{})", "（共 {} 个张量有这样的空洞：{}{}）"},
      {"{}{}; --accept-loss does not help: nothing says what was there; --exclude leaves "
       "tensors out by name, 'shardwright verify' lists every hole",
       "{}{}；--accept-loss 在此无用：没有信息说明那里原来是什么；--exclude 可按名字不写出张量，"
       "'shardwright verify' 列出所有空洞"},
      {" (and {} parts more)", "（以及另外 {} 处）"},
      {"{}{}; --accept-loss converts what is there", "{}{}；--accept-loss 可转换现有的部分"},
      {"it takes a source whose names and shapes show which part of a model is lost",
       "它要求源的名字和形状能显示模型丢失了哪一部分"},
      {"nothing says which of them is there; --to safetensors keeps it under its stored name",
       "没有信息说明存在的是哪一份；--to safetensors 可按存储的名字保留它"},
      {"config.json asks for the whole model; --to safetensors keeps what is there under its "
       "stored names",
       "config.json 要求完整的模型；--to safetensors 可按存储的名字保留现有的部分"},
      {"; --accept-loss does not help: {}", "；--accept-loss 在此无用：{}"},
  });
  return kSentences;
}

}  // namespace shardwright
