// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <span>

#include "language/chinese_tables.h"

namespace shardwright {

std::span<const Sentence> chinese_of_base() {
  static constexpr auto kSentences = std::to_array<Sentence>({
      {"{} expand to more than {} bytes, the limit for {} stored bytes (64 MiB and 16 times "
       "them); it was made to exhaust memory or is damaged, get the file again from who wrote it",
       "{0} 展开后超过 {1} 字节，这是对 {2} 字节存储内容的上限（64 MiB 加其 16 倍）；它是为耗尽"
       "内存而制作的，或者已损坏，请向写出它的人重新获取"},
      {"; raise the limit on open files, the hard one too (ulimit -Hn)",
       "；请提高打开文件数的上限，包括硬上限（ulimit -Hn）"},
      {" for this file system or for the limit on files (ulimit -f); raise the limit",
       "（超过了该文件系统或文件大小限制（ulimit -f）；请提高限制）"},
      {"{} '{}': matches no tensor{}", "{} '{}'：没有匹配的张量{}"},
      {"; near it are {}", "；相近的有 {}"},
      {"; there are names such as {}", "；现有的名字如 {}"},
      {"message of a rank: found {} bytes, expected {}", "来自 rank 的消息：发现 {} 字节，应为 {}"},
      {"message of a rank: {} numbers do not fit into it", "来自 rank 的消息：容不下 {} 个数"},
      {" and {} more", " 等，另有 {} 个"},
  });
  return kSentences;
}

}  // namespace shardwright
