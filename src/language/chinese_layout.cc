// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <span>

#include "language/chinese_tables.h"

namespace shardwright {

std::span<const Sentence> chinese_of_layout() {
  static constexpr auto kSentences = std::to_array<Sentence>({
      {"common state: found distrib_optim_sharding_type {} in content_metadata, expected {} as the "
       "optimizer's param_state_sharding_type says; Megatron looks for its states by the former, "
       "restore common.pt",
       "common state: content_metadata 中的 distrib_optim_sharding_type 为 {}，按优化器的 "
       "param_state_sharding_type 应为 {}；Megatron 按前者寻找状态，请恢复 common.pt"},
      {"common state: content_metadata says that the optimizer's states are {}, and {} is none of "
       "these; Megatron does not find them, restore common.pt",
       "common state: content_metadata 说优化器状态为 {}，而 {} 不是；Megatron 找不到它们，请恢复 "
       "common.pt"},
      {"{0}: found {1} of the objects that are saved together, and {0}/shard_{2}_{3} is not among "
       "them; copy the checkpoint again from where it is whole",
       "{0}: 一起保存的对象中只有 {1} 个，缺少 {0}/shard_{2}_{3}；请从完整的地方重新复制检查点"},
      {"a parallel size of {}, expected at most {}", "并行大小 {}，最多应为 {}"},
      {"--tp {} with --pp {} and --dp {}, expected at most {} ranks",
       "--tp {} 与 --pp {}、--dp {}，最多应为 {} 个 rank"},
      {"--tp {} with --dp {} makes {} ranks in a stage, expected a multiple of --ep {} with "
       "--etp {}; choose others",
       "--tp {} 与 --dp {} 使一个 stage 有 {} 个 rank，应为 --ep {} 与 --etp {} 的倍数；请另选"},
      {"tensor {}: one of {} experts, expected a multiple of --ep {}",
       "张量 {}: {} 个专家之一，应为 --ep {} 的倍数"},
      {"tensor {}: found {} rows beside a linear_q_up_proj of {} columns, expected a part for "
       "queries and one for keys and values on each of {} tensor-parallel ranks",
       "张量 {0}: {2} 列的 linear_q_up_proj 旁边有 {1} 行，{3} 个张量并行 rank 上应各有 query 的"
       "部分和 key、value 的部分"},
      {", but ", "，但是"},
      {"the second number of mp_rank folders: found that {}; is this a mix of two checkpoints?",
       "mp_rank 文件夹的第二个数: 发现 {}；这是两个检查点混在一起吗？"},
      {"the second number of mp_rank folders: nothing tells whether it is a pipeline rank or an "
       "expert rank; shardwright diagnose says what would",
       "mp_rank 文件夹的第二个数: 没有信息说明它是流水线 rank 还是专家 rank；shardwright "
       "diagnose 会说明需要什么"},
      {"found {} numbers in the names of mp_rank folders, expected at most three: tensor, "
       "pipeline and expert rank",
       "mp_rank 文件夹的名字中有 {} 个数，最多应为三个：张量、流水线和专家 rank"},
      {"found a folder of tensor rank {} and pipeline rank {}, expected {} tensor ranks in that "
       "stage "
       "of an encoder as the saved arguments say; is this a mix of two checkpoints?",
       "存在 tensor rank {}、pipeline rank {} 的目录，但按保存的参数，编码器的这一阶段应有 {} 个 "
       "tensor rank；是否混入了两个 checkpoint？"},
      {"found folders of {} {} ranks, expected {} as the saved arguments say; is this a mix of "
       "two checkpoints?",
       "发现 {} 个 {} rank 的文件夹，保存的参数说应为 {}；这是两个检查点混在一起吗？"},
      {"no mp_rank folder holds a model", "没有 mp_rank 文件夹含有模型"},
      {"found mp_rank folders of {} and of {} numbers, expected one kind; are there leftovers "
       "of another run?",
       "发现 {} 个数和 {} 个数的 mp_rank 文件夹，应为同一种；有另一次运行的残留吗？"},
      {"found expert tensor size {} with tensor size {}, expected a divisor of it: such ranks "
       "overwrote each other's files when they were saved",
       "专家张量大小为 {}，张量大小为 {}，前者应为后者的约数：这样的 rank 在保存时互相覆盖了文件"},
      {"--encoder-tp {} must divide --tp {}", "--encoder-tp {} 必须整除 --tp {}"},
      {"--etp {} must divide --tp {}: the names of mp_rank folders do not tell experts' tensor "
       "ranks apart, so their files would overwrite each other",
       "--etp {} 必须整除 --tp {}：mp_rank 文件夹的名字不能区分专家的张量 rank，它们的文件会互相"
       "覆盖"},
      {"tensor {}: found expert {}, expected {} on each rank",
       "张量 {}: 发现专家 {}，每个 rank 上应为 {} 个"},
      {"tensor {}: found {} rows, which its parts don't make up",
       "张量 {}: 发现 {} 行，与它的各部分不符"},
      {"tensor {}: found {} rows, expected those of {} heads",
       "张量 {}: 发现 {} 行，应为 {} 个头的行数"},
      {"tensor {}: found shape {}, expected {} axes and the rank's {} experts along the first, as "
       "moe_single_grouped_weight has them",
       "张量 {}: 形状为 {}，应有 {} 个轴，第一个轴为该 rank 的 {} "
       "个专家（moe_single_grouped_weight）"},
      {"tensor {}: found one of MindSpeed's own names for latent attention and multi-token "
       "prediction (linear_qkv of [q_a; kv_a], q_layernorm, kv_layernorm, "
       "mtp.final_layernorms.N), which are not read; MindSpeed-LLM's convert_ckpt.py makes a "
       "Hugging Face model of it",
       "张量 {}: 这是 MindSpeed 对 MLA 和多 token 预测自用的命名（[q_a; kv_a] 的 "
       "linear_qkv、q_layernorm、kv_layernorm、mtp.final_layernorms.N），不支持读取；请用 "
       "MindSpeed-LLM 的 convert_ckpt.py 转成 Hugging Face 模型"},
      {"tensor {}: found shape {}, expected those of {} experts",
       "张量 {}: 形状为 {}，应为 {} 个专家的形状"},
      {"tensor {}: not all of {} is stored", "张量 {}: {} 没有全部存储"},
      {"decoder.layers: found {} layers, none of {}, expected all up to {}; a pipeline stage's "
       "part was lost",
       "decoder.layers: 发现 {} 层，没有 {}，应有到 {} 为止的全部；某个流水线 stage 的部分丢失了"},
      {"tensor {}: found {} experts, expected {} as the router has; the shards of "
       "expert-parallel ranks were lost",
       "张量 {}: 发现 {} 个专家，应与 router 一样为 {} 个；专家并行 rank 的分片丢失了"},
      {"{} is there, but nothing is stored of {}, which each such module has; a part of the model "
       "was lost",
       "有 {}，但没有存储 {}，而每个这样的模块都有它；模型的一部分丢失了"},
      {"experts are there, but nothing is stored of {}, which chooses among them; a part of the "
       "model "
       "was lost",
       "有专家，但没有存储在它们之中进行选择的 {}；模型的一部分丢失了"},
      {"{} is there, but nothing is stored of {}, which layers of that kind have; a part of the "
       "model "
       "was lost",
       "有 {}，但没有存储 {}，而同类的层都有它；模型的一部分丢失了"},
      {"nothing is stored of {}, which layers of that kind have; a part of the model was lost",
       "没有存储 {}，而同类的层都有它；模型的一部分丢失了"},
      {"tensor {}: found {} columns, expected {} as it has rows, of which the run's {} tensor "
       "ranks "
       "had a part each; of {} only the first rank's shards were saved, as MimoModel of "
       "Megatron-Core 0.16 does with TP > 1",
       "张量 {}：发现 {} 列，应与行数相同为 {} 列，由训练的 {} 个张量 rank 各持一份；{} "
       "只保存了第一个 rank "
       "的分片，Megatron-Core 0.16 的 MimoModel 在 TP > 1 时就是如此"},
      {"nothing is stored of {}, and layer {} has the like: see that no part of the model was lost",
       "没有存储 {}，而第 {} 层有同类张量：请确认模型没有丢失部分"},
      {"{} and layers are there, but no {}; a part of the model was lost",
       "有 {} 和各层，但没有 {}；模型的一部分丢失了"},
      {"{}: found a module or parameter whose place in torch's list of parameters is not known, "
       "expected those of Megatron's language models: an optimizer numbers its states by it; "
       "convert without (--optimizer drop)",
       "{}: 发现在 torch 参数列表中位置未知的模块或参数，应为 Megatron 语言模型的：优化器按该位"
       "置给状态编号；请不带优化器转换（--optimizer drop）"},
      {"tensor {}: found {} elements behind {} of others, expected a buffer that memory can hold",
       "张量 {0}: 其他参数的 {2} 个元素之后有 {1} 个元素，应为内存能容纳的缓冲区"},
      {"tensor {}: found {} elements left in the optimizer's buckets, expected room for its {}: "
       "they are another model's, or parameters were frozen, and nothing tells which; convert "
       "without it (--optimizer drop), or save the run with --dist-ckpt-optim-fully-reshardable, "
       "whose states have names",
       "张量 {}: 优化器分桶中还剩 {} 个元素，应能容纳它的 {} "
       "个：它们属于另一个模型，或者有参数被冻结，而没有任何信息说明是哪些；请不带它转换"
       "（--optimizer drop），或用 --dist-ckpt-optim-fully-reshardable "
       "保存该次训练，其状态带有名称"},
      {"optimizer: found {} elements in bucket {} of {}, expected {} for the parameters of the "
       "model: they are another model's, or parameters were frozen, and nothing tells which; "
       "convert without it (--optimizer drop), or save the run with "
       "--dist-ckpt-optim-fully-reshardable, whose states have names",
       "优化器: 第 {1} 个分桶（共 {2} 个）有 {0} 个元素，模型参数应有 {3} "
       "个：它们属于另一个模型，或者有参数被冻结，而没有任何信息说明是哪些；请不带它转换"
       "（--optimizer drop），或用 --dist-ckpt-optim-fully-reshardable "
       "保存该次训练，其状态带有名称"},
      {"optimizer: found a parameter group with a learning rate of its own, and neither "
       "--decoupled-lr nor --use-mup in the run's arguments tells whose it is; convert without it "
       "(--optimizer drop)",
       "optimizer: 有一个参数组有自己的学习率，而训练参数中的 --decoupled-lr 和 --use-mup "
       "都没有说明它属于哪些参数；请不带它转换（--optimizer drop）"},
      {"optimizer: found parameter groups {} and {} alike, expected each to say what it is for; "
       "convert without it (--optimizer drop)",
       "optimizer: 参数组 {} 和 {} 相同，应能说明各自的用途；请不带它转换（--optimizer drop）"},
      {"tensor {}: no parameter group {} weight decay{}{} exists for it; convert without the "
       "optimizer (--optimizer drop)",
       "张量 {}: 没有适合它的{}权重衰减{}{}的参数组；请不带优化器转换（--optimizer drop）"},
      {" of experts", "（专家的）"},
      {" of Muon's", "（Muon 的）"},
      {"{}{}{}{} {} weight decay", "{}{}{}{}，{}权重衰减"},
      {" with a learning rate of their own", "，学习率单独设置"},
      {"groups for all of them", "包含全部参数的组"},
      {"optimizer: found {} parameters in groups of {}, expected {} for the {} of the model; "
       "were parts of it frozen? convert without it (--optimizer drop)",
       "optimizer: 发现 {0} 个参数，组大小为 {1}，模型的 {3} 个参数应为 {2}；有部分被冻结吗？请"
       "不带它转换（--optimizer drop）"},
      {"tensor {}: found {} layers, expected at most {}", "张量 {}: 发现 {} 层，最多应为 {}"},
      {"tensor {}: found more than {} pieces of layers and experts up to here, expected fewer; "
       "the checkpoint's metadata is damaged or hostile",
       "张量 {}: 到这里层和专家的块已超过 {}，应更少；检查点的元数据已损坏或有恶意"},
      {"{} layers: expected a multiple of {} (--pp {} times --vpp {}); choose other sizes",
       "{} 层: 应为 {} 的倍数（--pp {} 乘以 --vpp {}）；请选择其他大小"},
      {"{} layers: expected at least one per stage of --pp {}",
       "{} 层: --pp {} 的每个 stage 至少应有一层"},
      {"tensor {}: {} vocabulary rows, expected a multiple of --tp {}; pad them with "
       "--make-vocab-size-divisible-by N",
       "张量 {}: {} 行词表，应为 --tp {} 的倍数；请用 --make-vocab-size-divisible-by N 填充"},
      {"tensor {}: axis {} is {} long, expected a multiple of {}; choose another {}",
       "张量 {}: 轴 {} 长 {}，应为 {} 的倍数；请选择另一个 {}"},
      {"tensor {}: {} experts, expected a multiple of --ep {}",
       "张量 {}: {} 个专家，应为 --ep {} 的倍数"},
      {"tensor {}: found {} different shards of it in {} tensor ranks, expected {}, so that "
       "ranks t and t+{} hold the same, as {}; is this a mix of two checkpoints, or is one "
       "damaged?",
       "张量 {0}: {2} 个张量 rank 中有 {1} 个不同的分片，应为 {3} 个，使 rank t 与 t+{4} 持有相"
       "同内容，因为{5}；这是两个检查点混在一起，还是有一个损坏了？"},
      {"the bytes of {} show", "{} 的内容表明"},
      {"the rows of {} show", "{} 的行表明"},
      {"the columns of {} show", "{} 的列表明"},
      {"nothing tells otherwise", "没有相反的信息"},
      {"{}: found {} {} in the saved arguments, expected a divisor of the {} tensor ranks whose "
       "folders there are",
       "{}: 保存的参数中 {} 为 {}，应为 {} 个张量 rank（其文件夹存在）的约数"},
      {"parameter {}: found shape {}, which no tensor can have",
       "参数 {}: 形状为 {}，没有张量会有这样的形状"},
      {"group {} of rank {}: found {} elements, which none can have",
       "rank {1} 的组 {0}: 发现 {2} 个元素，不可能有这么多"},
      {"rank {}: found {} groups of parameters, expected {}", "rank {}: 发现 {} 个参数组，应为 {}"},
      {"parameter {}: found {} elements for it in the buffers of group {}, expected {}; the "
       "files are of different runs or ranks, or one is cut off",
       "参数 {0}: 组 {2} 的缓冲区中有它的 {1} 个元素，应为 {3} 个；文件来自不同的运行或 rank，或"
       "有一个被截断"},
      {"parameter {}: found a padding of {} elements", "参数 {}: 填充为 {} 个元素"},
      {"group {}: found {} elements in its buffers, expected {} and padding up to a multiple of "
       "{}; the parameters listed are not those of these buffers",
       "组 {}: 它的缓冲区中有 {} 个元素，应为 {} 加上填充到 {} 的倍数；所列的参数不属于这些缓冲"
       "区"},
      {"parameter {}: found {} elements for it in the buffers of rank {}, expected {}; the "
       "files are of different runs or ranks, or one is cut off",
       "参数 {0}: rank {2} 的缓冲区中有它的 {1} 个元素，应为 {3} 个；文件来自不同的运行或 rank，"
       "或有一个被截断"},
      {"rank {}: found {} elements in its buffers, expected {}; the parameters listed are not "
       "those of these buffers",
       "rank {}: 它的缓冲区中有 {} 个元素，应为 {}；所列的参数不属于这些缓冲区"},
  });
  return kSentences;
}

}  // namespace shardwright
