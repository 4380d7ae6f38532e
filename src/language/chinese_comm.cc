// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <span>

#include "language/chinese_tables.h"

namespace shardwright {

std::span<const Sentence> chinese_of_comm() {
  static constexpr auto kSentences = std::to_array<Sentence>({
      {"out of memory", "内存耗尽"},
      {"rank {} on {}", "rank {}（位于 {}）"},
      {"no memory for a thread", "没有内存可供新线程使用"},
      {"stopped before the work was complete", "在工作完成之前被中止"},
      {"{}: a message of no known kind", "{}: 未知类型的消息"},
      {"{} was started with other arguments, or is another version, than rank 0; start all "
       "ranks with the same command line",
       "{} 启动时的参数或版本与 rank 0 不同；请用同一条命令行启动所有 rank"},
      {"{} gave no sign of life for {} s; look at its node, or allow more (--rank-timeout)",
       "{} 已有 {} 秒没有响应；请检查它的节点，或放宽限制（--rank-timeout）"},
      {"rank 0 has ended; remove what is left of {}", "rank 0 已结束；请删除 {} 中仍存在的部分"},
      {"; remove what is left of {}", "；请删除 {} 中仍存在的部分"},
      {"{}: {} has not returned for {} s; look at its file system, or allow more (--io-timeout)",
       "{}: {} 已有 {} 秒没有返回；请检查它的文件系统，或放宽限制（--io-timeout）"},
      {"; the new output is complete and in its place", "；新的输出已完整就位"},
      {"rank 0 was stopped for so long that the others took it for lost; run it again, or allow "
       "more (--rank-timeout)",
       "rank 0 被暂停得太久，其他 rank 已认为它丢失；请重新运行，或放宽限制（--rank-timeout）"},
      {"this MPI does not allow threads (MPI_THREAD_FUNNELED)",
       "该 MPI 不允许使用线程（MPI_THREAD_FUNNELED）"},
      {"a message to rank {}: found {} bytes, at most {} can be sent",
       "发给 rank {} 的消息：有 {} 字节，最多只能发送 {} 字节"},
  });
  return kSentences;
}

}  // namespace shardwright
