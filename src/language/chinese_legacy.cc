// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <span>

#include "language/chinese_tables.h"

namespace shardwright {

std::span<const Sentence> chinese_of_legacy() {
  static constexpr auto kSentences = std::to_array<Sentence>({
      {"tensor {}: found strides {}, expected row-major", "张量 {}: 步长为 {}，应为行优先"},
      {"tensor {}: found what makes it {} {}, expected {} {} as in other ranks' files",
       "张量 {}: 由此它为 {} {}，应与其他 rank 的文件一样为 {} {}"},
      {"'{}': found dicts nested too deep", "'{}': dict 嵌套过深"},
      {"its dicts within dicts", "它的嵌套 dict"},
      {"'{}' is not a dict of tensors", "'{}' 不是张量的 dict"},
      {"{}: not a dict, as a rank's state is", "{}: 不是 dict，而 rank 的状态应为 dict"},
      {"the file", "该文件"},
      {"{} has neither 'model' nor 'model0'", "{} 中既没有 'model' 也没有 'model0'"},
      {"common_step: found {} {}, expected one float32",
       "common_step: 发现 {} {}，应为一个 float32"},
      {"optimizer: {}; convert without it (--optimizer drop)",
       "optimizer: {}；请不带它转换（--optimizer drop）"},
      {"found {} master weights in group {}, expected {}", "组 {1} 中有 {0} 个主权重，应为 {2}"},
      {"found master weights of {} groups, expected {}", "有 {} 组的主权重，应为 {} 组"},
      {"parameter {} of group {} has no state; each must have one",
       "组 {1} 的参数 {0} 没有状态；每个都必须有"},
      {"tensor {}: found {} and no master weight, expected float32",
       "张量 {}: 发现 {}，没有主权重，应为 float32"},
      {"tensor {}: found a state '{}', expected a name", "张量 {}: 发现状态 '{}'，应为名字"},
      {"tensor {}: found the states {}, expected {} as of the others of its group",
       "张量 {}: 状态为 {}，应与同组的其他参数一样为 {}"},
      {"tensor {}: found no tensor as its {}, expected one as of the weight",
       "张量 {}: 它的 {} 不是张量，应与权重一样是张量"},
      {"tensor {}: found {} as {} {}, expected float32 {} as of the weight",
       "张量 {}: 它的 {} 为 {} {}，应与权重一样为 float32 {}"},
      {"tensor {}: found a step that is not a count", "张量 {}: step 不是计数"},
      {"tensor {}: found step {}, expected {} as of the other parameters",
       "张量 {}: step 为 {}，应与其他参数一样为 {}"},
      {"found {} chained optimizers, expected that of experts and of the rest",
       "发现 {} 个串联的优化器，应为专家的和其余的"},
      {"found {} buffers, expected {} of the model's {} parameters",
       "发现 {} 个缓冲区，应为 {} 个，对应模型的 {} 个参数"},
      {"tensor {}: found a buffer for {}, expected {}", "张量 {}: 发现 {} 的缓冲区，应为 {}"},
      {"it lacks the parameter groups of Megatron's optimizer", "缺少 Megatron 优化器的参数组"},
      {"found parameter groups and no states, expected distrib_optim.pt beside the file",
       "有参数组而没有状态，该文件旁边应有 distrib_optim.pt"},
      {"common state: the optimizer's parameter groups are missing; convert without it "
       "(--optimizer drop)",
       "公共状态: 缺少优化器的参数组；请不带它转换（--optimizer drop）"},
      {"common state: no parameter group of the optimizer is for {}, which has states",
       "公共状态: 优化器没有适合 {} 的参数组，而它有状态"},
      {"common state: opt_param_scheduler is missing, so a run that goes on begins its learning "
       "rate schedule anew",
       "公共状态: 缺少 opt_param_scheduler，因此继续训练时学习率计划会从头开始"},
      {"common state: found '{}' of a parameter group to be a tensor, expected a plain value; "
       "convert without the optimizer (--optimizer drop)",
       "公共状态: 参数组的 '{}' 是张量，应为普通值；请不带优化器转换（--optimizer drop）"},
      {"tensor {}: found the optimizer states {}, expected {} as of {}, which is in the same "
       "parameter group; convert without them (--optimizer drop)",
       "张量 {0}: 优化器状态为 {1}，应与同一参数组的 {3} 一样为 {2}；请不带它们转换（"
       "--optimizer drop）"},
      {"found mp_rank folders without a model, expected model_optim_rng.pt in each; are these "
       "an optimizer's or a data loader's?",
       "发现没有模型的 mp_rank 文件夹，每个中应有 model_optim_rng.pt；这些是优化器或数据加载器的"
       "吗？"},
      {"{}: found {} virtual stages, expected {} as in {}",
       "{0}: 有 {1} 个虚拟 stage，应与 {3} 一样为 {2} 个"},
      {"{}: tensors under {} are left out: no rule says what they are",
       "{}: 不写出 {} 下的张量：没有规则说明它们是什么"},
      {"keep the files of one save only", "请只保留同一次保存的文件"},
      {"folders were renamed, swapped or copied: give each file back its rank's folder",
       "文件夹被改名、互换或复制过：请把每个文件放回它的 rank 的文件夹"},
      {"found {} experts, expected a multiple of {} expert ranks",
       "发现 {} 个专家，应为 {} 个专家 rank 的倍数"},
      {"missing {}: found files of {} pipeline stages, expected {}",
       "缺少 {}: 有 {} 个流水线 stage 的文件，应为 {} 个"},
      {"{} is shared out over {} tensor ranks, the language model over {}: its shards repeat "
       "with period {}, as {}",
       "{} 由 {} 个张量 rank 分担，语言模型由 {} 个分担：它的分片以 {} 为周期重复，因为{}"},
      {"the pipeline stages are folded, as DualPipeV has it: layers count through the first "
       "virtual "
       "stages upwards and through the second ones downwards",
       "流水线 stage 是折叠的（DualPipeV）：层号先沿各 rank 的第一个虚拟 stage "
       "递增，再沿第二个虚拟 "
       "stage 反向递增"},
      {"nothing says whether output_layer.weight is tied to the word embeddings: it holds the same "
       "bytes, so it is read as a copy of them",
       "没有内容说明 output_layer.weight 是否与词嵌入共享：二者字节相同，因此按词嵌入的副本读取"},
      {"output_layer.weight of the last stage and its states are left out: beside layers for "
       "multi-token prediction a tied model multiplies with the word embedding there, and does not "
       "use a head of its own",
       "最后一个 stage 的 output_layer.weight 及其状态不予采用：有多 token "
       "预测层时，共享词嵌入的模型在该 "
       "stage 与词嵌入相乘，不使用自己的输出层"},
      {"pipeline stage {}, virtual stage {}: found layers {}, expected the stage's share of {} "
       "layers in {} stages, of which {} have no weights, as num_layers and noop_layers say; are "
       "these another run's arguments, or files that lost layers?",
       "流水线 stage {}，虚拟 stage {}: 发现层 {}，按 num_layers 和 noop_layers 应为 {} 层分到 {} "
       "个 stage（其中 {} 没有权重）时该 stage 的层；这些是另一次训练的参数，还是文件丢失了层？"},
      {"the run trained with DualPipe (use_dualpipe): each rank holds parts of two copies of the "
       "model, which is not read; load it without --use-dualpipe and save it anew",
       "该训练使用 DualPipe（use_dualpipe）：每个 rank 有模型两份副本的部分，不支持读取；请不带 "
       "--use-dualpipe 加载并重新保存"},
      {"the files do not say which ranks they are of: folders of tensor ranks, expert ranks or "
       "inner pipeline stages in each other's place would not be noticed, but by digests ('hash "
       "--manifest', 'verify --against')",
       "文件没有说明自己属于哪个 rank：张量 rank、专家 rank "
       "或中间流水线阶段的文件夹若互换位置将无法发现，"
       "除非用摘要（'hash --manifest'、'verify --against'）"},
      {"optimizer: found '{}' of a parameter group to be a tensor, expected a plain value; "
       "convert without it (--optimizer drop)",
       "optimizer: 参数组的 '{}' 是张量，应为普通值；请不带它转换（--optimizer drop）"},
      {"optim.pt: found a data-parallel rank's part of an optimizer, expected all of it in "
       "model_optim_rng.pt or distrib_optim.pt; convert without it (--optimizer drop)",
       "optim.pt: 这是优化器在某个数据并行 rank 上的部分，应全部在 model_optim_rng.pt 或 "
       "distrib_optim.pt 中；请不带优化器转换（--optimizer drop）"},
      {"found {} beside layer_wise_optimizer_N.pt, of another run's optimizer; keep the files of "
       "one save",
       "layer_wise_optimizer_N.pt 旁有另一次训练的优化器文件 {}；请只保留同一次保存的文件"},
      {"optimizer: the run's context parallel size is {}, and ranks that differ in it alone write "
       "their states into one "
       "layer_wise_optimizer_N.pt, one over the other; convert without them (--optimizer drop), or "
       "save the run as torch_dist",
       "优化器: 该训练的上下文并行大小为 {}，只在上下文并行上不同的 rank 会把状态写入同一个 "
       "layer_wise_optimizer_N.pt，互相覆盖；请不带优化器转换（--optimizer drop），或把训练保存为 "
       "torch_dist"},
      {"found step {}, expected {} as of the other parameters", "步数为 {}，应与其他参数一样为 {}"},
      {"found the states of data-parallel rank {} in {} and in {}",
       "数据并行 rank {} 的状态同时在 {} 和 {} 中"},
      {"found no layer_wise_optimizer_{}.pt, but one of data-parallel rank {} ({})",
       "没有 layer_wise_optimizer_{}.pt，却有数据并行 rank {} 的文件（{}）"},
      {"found layer_wise_optimizer_N.pt of {} data-parallel ranks, expected {}",
       "layer_wise_optimizer_N.pt 来自 {} 个数据并行 rank，应为 {} 个"},
      {"found no layer_wise_optimizer_N.pt beside the model, as other ranks have",
       "模型旁没有 layer_wise_optimizer_N.pt，而其他 rank 有"},
      {"found other parameter groups in {} than in {}", "{} 中的参数组与 {} 中的不同"},
      {"found {} parameters in group {}, expected {} as of data-parallel rank {} of {}",
       "第 {1} 组有 {0} 个参数，作为 {4} 个数据并行 rank 中的第 {3} 个应有 {2} 个"},
      {"optimizer: found step {}, expected {} as in other ranks' files",
       "optimizer: step 为 {}，应与其他 rank 的文件一样为 {}"},
      {"tensor {}: found a state of no weight that is there, expected optimizer.state.KIND and "
       "the name of one; convert without (--optimizer drop)",
       "张量 {}: 该状态不属于任何存在的权重，应为 optimizer.state.KIND 加权重名；请不带优化器转"
       "换（--optimizer drop）"},
      {"tensor {}: found {}, expected {} as its weight: what is shared out otherwise has no "
       "place in files of ranks; convert without (--optimizer drop)",
       "张量 {}: 发现 {}，应与其权重一样为 {}：以其他方式分担的内容在各 rank 的文件中没有位置；"
       "请不带优化器转换（--optimizer drop）"},
      {"tensor {}: found this state of {} under another name too",
       "张量 {}: {} 的这个状态还有另一个名字"},
      {"--encoder-tp {}: this model is a language model alone and has no encoder; leave it out",
       "--encoder-tp {}: 该模型只有语言模型，没有编码器；请去掉它"},
      {"tensor {} has no optimizer state {}, which each parameter of its group needs; convert "
       "without (--optimizer drop)",
       "张量 {} 没有优化器状态 {}，而该组的每个参数都需要它；请不带优化器转换（--optimizer drop"
       "）"},
      {"{} holds what one rank saved", "{} 含有一个 rank 保存的内容"},
      {"{} is a rank's folder, without a model", "{} 是一个 rank 的文件夹，其中没有模型"},
  });
  return kSentences;
}

}  // namespace shardwright
