// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <span>

#include "language/chinese_tables.h"

namespace shardwright {

std::span<const Sentence> chinese_of_components() {
  static constexpr auto kSentences = std::to_array<Sentence>({
      {"component {}: found {}={}, expected at least 1", "组件 {}: 发现 {}={}，至少应为 1"},
      {"component {}: found {}={}, expected at most {}", "组件 {}: 发现 {}={}，最多应为 {}"},
      {"component {}: found rank_offset={}, expected 0 to {}",
       "组件 {}: 发现 rank_offset={}，应为 0 到 {}"},
      {"component {}: found tp*cp*pp*dp beyond {} ranks", "组件 {}: tp*cp*pp*dp 超过 {} 个 rank"},
      {"component {}: found tp={}, expected a power of two: modules exchange activations along "
       "it",
       "组件 {}: 发现 tp={}，应为 2 的幂：各模块沿它交换激活"},
      {"component {}: found ep={} and etp={}, expected 1: only language has experts",
       "组件 {}: 发现 ep={} 和 etp={}，应为 1：只有 language 有专家"},
      {"component {}: found tp={}, cp={}, dp={}, expected their product to be a multiple of "
       "etp*ep = {}",
       "组件 {}: 发现 tp={}、cp={}、dp={}，其乘积应为 etp*ep = {} 的倍数"},
      {"components {} and {}: found dp={} and dp={}, expected one to divide the other",
       "组件 {} 和 {}: 发现 dp={} 和 dp={}，其中一个应整除另一个"},
      {"found {} of {} ranks left for {}, expected at least {}; run on more ranks",
       "{1} 个 rank 中还剩 {0} 个给 {2}，至少应为 {3} 个；请用更多 rank 运行"},
      {"components {} ({}) and {} ({}): found ranges that overlap, expected each rank to have "
       "one component",
       "组件 {}（{}）和 {}（{}）: 范围重叠，每个 rank 应只有一个组件"},
      {"found components with {} ranks in all, expected the {} ranks of the run; give dp for "
       "fewer of them, or another --world-size",
       "各组件共有 {} 个 rank，应为运行的 {} 个；请为其中较少的给出 dp，或另外给出 --world-size"},
      {"found {}, expected offsets that leave no gap in ranks 0-{} for the other components",
       "发现 {}，偏移应不给其他组件在 rank 0-{} 中留下间隙"},
      {"no data-parallel sizes let {} use {} of the {} ranks{}; run on another number of ranks "
       "(--world-size)",
       "没有数据并行大小能让 {0} 使用 {2} 个 rank 中的 {1} 个{3}；请用另一个 rank 数运行（"
       "--world-size）"},
      {"found too many layouts of {} ranks to try them all; give dp for {}",
       "{} 个 rank 的布局太多，无法全部尝试；请为 {} 给出 dp"},
      {"found several layouts of {} ranks: {}; give dp for {}",
       "{} 个 rank 有多种布局：{}；请为 {} 给出 dp"},
      {"the component 'language' is missing; give it with --component language=tp=N",
       "缺少组件 'language'；请用 --component language=tp=N 给出"},
      {"found {} components, expected at most {}", "发现 {} 个组件，最多应为 {}"},
      {"found a run of {} ranks, expected 1 to {}", "运行有 {} 个 rank，应为 1 到 {}"},
      {"'{}': found '{}', expected key=value", "'{}': 发现 '{}'，应为 key=value"},
      {"'{}': found the key '{}', expected tp, pp, dp, cp, ep, etp or rank_offset",
       "'{}': 发现键 '{}'，应为 tp、pp、dp、cp、ep、etp 或 rank_offset"},
      {"'{}': found '{}' for {}, expected a whole number", "'{0}': {2} 的值为 '{1}'，应为整数"},
      {"'{}' has no name; write it like {}", "'{}' 没有名字；请写成 {}"},
      {"'{}' is given twice; give each component once", "'{}' 给出了两次；每个组件请只给一次"},
      {"{} mesh: found {} ranks, expected a multiple of {} (PP {} x {} x {})",
       "{} mesh: 发现 {} 个 rank，应为 {} 的倍数（PP {} x {} x {}）"},
      {"mesh: found sizes {}, expected some of at least 1",
       "mesh: 大小为 {}，应有若干个且至少为 1"},
      {"mesh: found {} ranks, expected {} for sizes {}",
       "mesh: 发现 {0} 个 rank，大小 {2} 应为 {1} 个"},
      {"mesh: found rank {} {}, expected each rank once", "mesh: rank {} {}，每个 rank 应出现一次"},
      {"below 0", "小于 0"},
      {"twice", "出现两次"},
      {"dense mesh: found a size below 1", "稠密 mesh: 有大小小于 1"},
      {"expert mesh: found a size below 1", "专家 mesh: 有大小小于 1"},
      {"placements {}: found {}, expected one for each of {} mesh axes",
       "placements {}: 发现 {} 个，应为 {} 个 mesh 轴各一个"},
      {"mesh: found sizes {}, expected at least 1 each", "mesh: 大小为 {}，各至少应为 1"},
      {"placements {}: found a shard of axis {}, expected one of {}",
       "placements {}: 发现轴 {} 的分片，应为 {} 的一个轴"},
      {"placements {}: found a stride factor of {}, expected the product of the shards of axis "
       "{} to its right",
       "placements {}: 步长系数为 {}，应为其右侧轴 {} 的分片数之积"},
      {"coordinate {}: expected one in a mesh of {}", "坐标 {}: 应在大小为 {} 的 mesh 之内"},
      {"local shape {}: the global one goes beyond int64", "局部形状 {}: 全局形状超过 int64"},
      {"tensor {}: found a global shape of {} on rank {} and {} on rank {}, expected the same; "
       "the rows of this parameter are not shared out evenly",
       "张量 {0}: rank {2} 上的全局形状为 {1}，rank {4} 上的为 {3}，应相同；该参数的行没有平均分"
       "担"},
      {"parameter {}: found {} FSDP placements, expected one for each of {} mesh axes",
       "参数 {}: 发现 {} 个 FSDP 放置，应为 {} 个 mesh 轴各一个"},
      {"parameter {}: found FSDP placements {}, expected one that shards",
       "参数 {}: FSDP 放置为 {}，应有一个切分的"},
      {"parameter {}: found FSDP placements {}, expected a shard of an axis of {}",
       "参数 {}: FSDP 放置为 {}，应切分 {} 的一个轴"},
      {"parameter {}: found {} rows over {} FSDP ranks, which would disagree about the global "
       "shape, expected a multiple; use the order that keeps FSDP's cut inside",
       "参数 {}: {} 行分给 {} 个 FSDP rank，它们对全局形状会不一致，应为倍数；请使用把 FSDP 的切"
       "分放在内层的顺序"},
      {"parameter {}: found FSDP over {} ranks that lie along no axis of the checkpoint's mesh "
       "{} with {}, expected one (hybrid sharding and DP flattened with CP have none)",
       "参数 {}: FSDP 的 {} 个 rank 不在检查点 mesh {}（{}）的任何轴上，应在一个轴上（混合分片以"
       "及与 CP 展平的 DP 没有这样的轴）"},
      {"parameter {}: found a piece of shape {} on rank {}, expected {} by {} of {}",
       "参数 {0}: rank {2} 上的块形状为 {1}，按 {5} 的 {4} 应为 {3}"},
      {"parameter {}: found a piece of shape {}, expected {}", "参数 {}: 块的形状为 {}，应为 {}"},
      {"{}experts: found {}, expected {}; give --source-ep and --source-etp",
       "{}experts: 发现 {}，应为 {}；请给出 --source-ep 和 --source-etp"},
      {"{}experts: found {} tensors of fc1 and {} of fc2, expected as many, numbered from 0",
       "{}experts: 发现 {} 个 fc1 张量和 {} 个 fc2 张量，数量应相同，从 0 编号"},
      {"no router", "没有 router"},
      {"one beside them", "旁边有一个"},
      {"{} experts, {} of them on a rank", "{} 个专家，每个 rank {} 个"},
      {"a whole number of EP ranks", "整数个 EP rank"},
      {"fc1 {} in {} pieces, fc2 {} in {}", "fc1 {} 分为 {} 块，fc2 {} 分为 {} 块"},
      {"a multiple of EP {} x ETP {}", "EP {} x ETP {} 的倍数"},
      {"--source-tp: found {}, but tensors are cut {} times on axis 1",
       "--source-tp: 发现 {}，但张量在轴 1 上切成 {} 份"},
      {"--source-ep, --source-etp, --source-tp: found {}, expected 1 to {}",
       "--source-ep, --source-etp, --source-tp: 发现 {}，应为 1 到 {}"},
      {"other sizes than in the layers before", "与前面各层不同的大小"},
      {"the same in all layers", "各层相同"},
      {"'{}': {} is given twice; give it once", "'{}': {} 给了两次；请只给一次"},
  });
  return kSentences;
}

}  // namespace shardwright
