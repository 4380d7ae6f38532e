// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <span>

#include "language/chinese_tables.h"

namespace shardwright {

std::span<const Sentence> chinese_of_diagnose() {
  static constexpr auto kSentences = std::to_array<Sentence>({
      {"expected {} to {} or {} to {}", "应为 {} 到 {} 或 {} 到 {}"},
      {"explain: unknown code '{}'; {}", "explain: 未知代码 '{}'；{}"},
      {"{}: found a file, expected a checkpoint's folder; see 'shardwright inspect'",
       "{}: 发现文件，应为检查点的文件夹；见 'shardwright inspect'"},
      {"what the numbers of the folders mean is open", "文件夹编号的含义尚未确定"},
      {"found ETP {} with TP {}, expected a divisor of it", "ETP 为 {}，TP 为 {}，应为其约数"},
      {"found files of {} and of {} virtual stages", "发现虚拟 stage 数为 {} 和 {} 的文件"},
      {"files of {} pipeline stages were read, expected {}; verify reads all of them",
       "读到了 {} 个流水线 stage 的文件，应为 {} 个；verify 会读取全部"},
      {"{} has no rows of word embeddings", "{} 没有词嵌入的行"},
      {"found embeddings of {} and {} rows", "发现 {} 行和 {} 行的 embedding"},
      {"{}: {} in {}, {} in {}", "{0}: 在 {2} 中为 {1}，在 {4} 中为 {3}"},
      {"{}: {} is not in both {} and {}", "{}: {} 并非在 {} 和 {} 中都有"},
      {"reading back what is written", "正在读回已写的内容"},
      {"digests of another target", "另一个目标的摘要"},
      {"{}: another process works on this now; wait for it", "{}: 另一个进程正在处理它；请等待"},
      {"{}/{}: this is not a journal that this program knows", "{}/{}: 这不是本程序认识的 journal"},
      {"a number is infinite or none, expected finite ones: no scale fits their block",
       "有数值为无穷或 NaN，应为有限值：没有适合该块的 scale"},
      {"{}: tensor {}: found group {} for column {}, expected 0 to {}",
       "{0}: 张量 {1}: 列 {3} 的组为 {2}，应为 0 到 {4}"},
      {"{} values differ in {} and {}; only floating point values are averaged, all others must "
       "be alike",
       "{} 的值在 {} 和 {} 中不同；只有浮点值会被平均，其余必须相同"},
      {"{}: storage {} lies elsewhere in the archive", "{}: storage {} 位于归档的别处"},
      {"piece {} is not finished", "部分 {} 没有完成"},
      {"{}: found {} of the {} files with parts of tensors; {} is missing{}, and with it parts "
       "of {} of {} tensors",
       "{0}: 含有张量部分的 {2} 个文件中有 {1} 个；缺少 {3}{4}，随之缺少 {6} 个张量中 {5} 个的部"
       "分"},
      {" among {}", "（共缺 {} 个）"},
  });
  return kSentences;
}

}  // namespace shardwright
