// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <span>

#include "language/chinese_tables.h"

namespace shardwright {

std::span<const Sentence> chinese_of_state() {
  static constexpr auto kSentences = std::to_array<Sentence>({
      {"common_step: found {}, expected the number of the optimizer's steps; convert without it "
       "(--optimizer drop)",
       "common_step: 发现 {}，应为优化器的步数；请不带优化器转换（--optimizer drop）"},
      {"{} and others hold scales and amax histories of fp8, or what ModelOpt's quantizers are, "
       "which is left out: scaling begins anew where the run goes on",
       "{} 等保存着 fp8 的缩放因子和 amax 历史，或 ModelOpt "
       "量化器的设置，不写出：继续训练时重新开始统计"},
      {"args.{} is stored as plain values: not every Megatron-Core loads its enum",
       "args.{} 存为多个普通值：并非每个 Megatron-Core 都能加载它的枚举"},
      {"'args' are no arguments of a run (a {}): what the conversion changes of those is not in "
       "them",
       "'args' 不是一次训练的参数（而是 {}）：转换所改的参数不写入其中"},
      {"{} has no config.json that can be read", "{} 中没有可读的 config.json"},
      {"config.json is what {} of mcore_adapter says; --hf-config names another",
       "config.json 取自 mcore_adapter 的 {}；可用 --hf-config 另指"},
      {"args.{} is stored as a plain value: not every Megatron-Core loads its enum",
       "args.{} 存为普通值：并非每个 Megatron-Core 都能加载它的枚举"},
      {"optimizer parameter groups are written without {}: Megatron-Core does not load classes, "
       "and a run takes them from its own options",
       "写出的优化器参数组不含 {}：Megatron-Core 不加载类，训练从自己的选项取得它们"},
      {"optimizer parameter groups of dense and expert parameters are joined; those of experts "
       "had other settings or steps, and get those of the others, as Muon has one group for both",
       "稠密参数和专家参数的优化器参数组合并；专家的设置或步数不同，改用其余参数的：Muon "
       "对两者只有一个参数组"},
      {"the loss scale: found {} {}, expected a few numbers", "损失缩放：发现 {} {}，应为少量数字"},
      {"the master weights of {} of {} parameters that were looked at ({} the first) are not their "
       "weights: states are of another step, or were given to other parameters, as Megatron-Core "
       "does where it saves buckets with padding between them (--overlap-grad-reduce) as "
       "fully_reshardable; 'verify' looks at all; --optimizer drop leaves states out, and saves "
       "without --dist-ckpt-optim-fully-reshardable are right",
       "所查看的 {1} 个参数中有 {0} 个（第一个为 "
       "{2}）的主权重与其权重不符：状态属于另一步，或被给了其他参数；"
       "Megatron-Core 把中间有填充的桶（--overlap-grad-reduce）保存为 fully_reshardable "
       "时就会这样；'verify' "
       "会查看全部；--optimizer drop 不带状态，不用 --dist-ckpt-optim-fully-reshardable "
       "的保存则是对的"},
      {"optimizer states get the names of a distributed optimizer's, and the run had none: load "
       "them with --use-distributed-optimizer and --dist-ckpt-optim-fully-reshardable",
       "优化器状态使用分布式优化器的名字，而该训练没有使用它：请用 --use-distributed-optimizer 和 "
       "--dist-ckpt-optim-fully-reshardable 加载"},
      {"optimizer states are those of a run without a distributed optimizer: go on from these "
       "files "
       "without --use-distributed-optimizer, or convert --to torch_dist",
       "优化器状态是没有分布式优化器的训练的形式：从这些文件继续时不要加 "
       "--use-distributed-optimizer，或转换为 --to torch_dist"},
      {"optimizer states keep the names that they had in the old layout's chain of optimizers "
       "(chained_0, ...), and the new one's is another: Megatron-Core may not find them",
       "优化器状态保留旧布局的优化器链中的名字（chained_0 等），而新布局的链不同：Megatron-Core "
       "可能找不到它们"},
      {"optimizer parameter groups of dense and expert parameters are joined",
       "稠密参数和专家参数的优化器参数组合并"},
      {"optimizer parameter groups are split into dense and expert parameters",
       "优化器参数组拆分为稠密参数和专家参数"},
      {"{}: found {} {}, expected {} as in {}: one optimizer has one; {}",
       "{0}: {1} 为 {2}，应与 {4} 一样为 {3}：一个优化器只有一个值；{5}"},
      {"{}: {} is {}, and on the right {}", "{}: {} 为 {}，右侧为 {}"},
      {"{}: its settings of training are not compared: {}", "{}: 不比较其训练设置：{}"},
      {"entry {}: {}, and on the right {}", "条目 {}: {}，右侧为 {}"},
      {"adapter: {} is {}, and on the right {}", "适配器: {} 为 {}，右侧为 {}"},
      {"{}: its settings as an adapter are not compared: {}", "{}: 不比较其适配器设置：{}"},
      {"{}: on the left only", "{}: 只在左侧有"},
      {"{}: on the right only", "{}: 只在右侧有"},
      {"parameter groups of the optimizer", "优化器的参数组"},
      {"parameter group {} of the optimizer", "优化器的参数组 {}"},
      {"tensor {}: found optimizer states without the parameter groups of that optimizer; "
       "convert without them (--optimizer drop)",
       "张量 {}: 有优化器状态，却没有该优化器的参数组；请不带它们转换（--optimizer drop）"},
      {"convert to another MIMO layout, or without optimizer states (--optimizer drop)",
       "请转换为另一种 MIMO 布局，或不带优化器状态（--optimizer drop）"},
      {"{}: {} is another than in {}, whose arguments are taken; see that all files are of one "
       "save",
       "{}: {} 与 {} 中的不同，采用后者的参数；请确认所有文件出自同一次保存"},
      {"keep the files of one save only, or convert without optimizer states (--optimizer drop)",
       "请只保留同一次保存的文件，或不带优化器状态转换（--optimizer drop）"},
      {"{}: found {}, expected a list of parameter groups", "{}: 发现 {}，应为参数组的列表"},
      {"common state: found optimizer states and no parameter groups, expected those of the "
       "optimizer; convert without them (--optimizer drop)",
       "公共状态: 有优化器状态而没有参数组，应有优化器的参数组；请不带它们转换（--optimizer drop"
       "）"},
      {"the loss scale is not carried: a run begins with its initial one (--initial-loss-scale)",
       "不带 loss scale：训练以其初始值开始（--initial-loss-scale）"},
      {"optimizer: buffer {}: found {}, expected {}; convert without it (--optimizer drop)",
       "optimizer: 缓冲区 {}: 发现 {}，应为 {}；请不带它转换（--optimizer drop）"},
      {"no dict", "没有 dict"},
      {"one dtype's", "一种 dtype 的"},
      {"states in a form of before 2024", "2024 年之前形式的状态"},
      {"those of a pair of dtypes", "一对 dtype 的"},
      {"the states of Adam or Lion, coalesced", "合并的 Adam 或 Lion 状态"},
      {"a row of float32", "一行 float32"},
      {"{} of {} elements", "{1} 个元素中的 {0}"},
      {"{} as of its param", "{}，与它的 param 相同"},
      {"optimizer: found {} numbered buffers, expected a distributed optimizer's from 0 on; "
       "convert without it (--optimizer drop)",
       "optimizer: 有 {} 个带编号的缓冲区，应为分布式优化器从 0 起的；请不带它转换（--optimizer "
       "drop）"},
      {"found values nested deeper than {}", "值的嵌套深度超过 {}"},
      {"found a {}, expected a plain value", "发现 {}，应为普通值"},
      {"{} is no map", "{} 不是 map"},
      {"settings in YAML", "YAML 格式的设置"},
      {"{}: it has the key {}{} twice; take out the one that is wrong",
       "{}: 键 {}{} 出现两次；请去掉错误的那个"},
      {"{} has no '{}' section", "{} 没有 '{}' 部分"},
      {"common state: found {}, expected a dict", "公共状态: 发现 {}，应为 dict"},
      {"entry {}: its value is not written below or beside its key, which is how it could be "
       "edited",
       "条目 {}: 它的值不在键的下方或旁边，因此无法编辑"},
      {"{} bytes, limit {}", "{} 字节，上限为 {}"},
      {"shape {} has a negative extent", "形状 {} 有负的范围"},
      {"shape {} has more elements than int64 holds", "形状 {} 的元素数超过 int64"},
      {"shape {} has an extent above 2^48", "形状 {} 有大于 2^48 的范围"},
      {"shape {} has more bytes than int64 holds", "形状 {} 的字节数超过 int64"},
      {"box at {} of shape {} does not lie inside {}", "位于 {}、形状为 {} 的 box 不在 {} 之内"},
      {"found values of {}, which cannot be made {}", "值的类型是 {}，无法变成 {}"},
      {"value {} at element {} of the run does not fit {}", "该段元素 {1} 处的值 {0} 不适合 {2}"},
      {"tensor {}: chunks have {} axes, expected shape {}",
       "张量 {}: 各 chunk 有 {} 个轴，形状应为 {}"},
      {"tensor {}: chunk {} overlaps chunk {}, expected disjoint chunks",
       "张量 {}: chunk {} 与 chunk {} 重叠，应互不相交"},
      {"tensor {}: no chunk holds {}, expected every element of {} once",
       "张量 {}: 没有 chunk 含有 {}，{} 的每个元素应出现一次"},
  });
  return kSentences;
}

}  // namespace shardwright
