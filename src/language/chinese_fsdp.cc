// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <span>

#include "language/chinese_tables.h"

namespace shardwright {

std::span<const Sentence> chinese_of_fsdp() {
  static constexpr auto kSentences = std::to_array<Sentence>({
      {"the settings of parameter groups", "参数组的设置"},
      {"tensor {}: its optimizer state is there and its master weight in float32 is not; a part "
       "was "
       "lost: copy it too, or convert without states (--optimizer drop)",
       "张量 {}：有优化器状态，却没有 float32 "
       "主权重；有一部分丢失：请一并复制，或不带状态转换（--optimizer drop）"},
      {"{}: found no tensor {}, of which the other ranks' files have parts; the file is of another "
       "save, or was cut down",
       "{}: 没有张量 {}，而其他 rank 的文件有它的部分；该文件属于另一次保存，或被裁剪过"},
      {"{}: its parts of all tensors are those of the rank of {}, and no file has the others of "
       "tensor {}: one file was copied over the other; copy it again from where it was saved",
       "{}: 其中所有张量的部分都是 {} 那个 rank 的，没有文件有张量 {} "
       "的其余部分：有文件被复制后覆盖了"
       "另一个文件；请从保存处重新复制"},
      {"{}: whose its optimizer states are is not known: {}",
       "{}: 不知道其优化器状态属于哪些张量：{}"},
      {"{}: found Megatron's names behind others ({} the first), expected decoder.* or embedding.* "
       "outermost, which Megatron asks for; --to safetensors keeps any names",
       "{}: Megatron 的命名之前还有别的词（第一个是 {}），应以 decoder.* 或 embedding.* "
       "开头，Megatron "
       "要的是这样的名字；--to safetensors 保留任何名字"},
      {"entry {}: {}; convert without the optimizer (--optimizer drop)",
       "条目 {}: {}；请不带优化器转换（--optimizer drop）"},
      {"found neither numbers nor names of parameters", "既不是参数的编号，也不是参数的名字"},
      {"no parameter group has its number", "没有参数组有它的编号"},
      {"its group has no such parameter", "它的参数组没有这样的参数"},
      {"found a tensor, expected a setting", "发现张量，应为设置"},
      {"no rule says whose state it is", "没有规则说明它是哪个参数的状态"},
      {"tensor {}: found {} of its pieces, expected {}{}", "张量 {}: 发现它的 {} 块，应为 {}{}"},
      {" of each expert from 0 to {}", "，专家 0 到 {} 各有"},
      {"tensor {}: found {} {}, expected {} {} as its other pieces",
       "张量 {}: 发现 {} {}，应与它的其他块一样为 {} {}"},
      {"tensor {}: found pieces that have all layers in one, expected those of each layer under "
       "its "
       "own number",
       "张量 {}: 各块把所有层存于一处，应为每层的块在其层号之下"},
      {"tensor {}: found shape {}, expected rows", "张量 {}: 形状为 {}，应有行"},
      {"tensor {}: found the weights of all experts in one, as the grouped linears of "
       "Megatron-Core "
       "0.16 and before have them, expected a tensor for each expert; save it as torch_dist there",
       "张量 {}: 所有专家的权重存于一处，这是 Megatron-Core 0.16 及更早版本的 grouped linear "
       "的形式，应为每个专家一个张量；请在那里另存为 torch_dist"},
      {"tensor {}: its rows are several tensors' and lie as the run's tensor-parallel ranks had "
       "them, and no arguments of the run say how many there were; convert a save that has its "
       "entry args",
       "张量 {}: 它的行属于多个张量，按训练时各张量并行 rank "
       "的顺序排列，而没有训练参数说明有多少个 "
       "rank；请转换带有条目 args 的保存"},
      {"tensor {}: found {} rows, which its parts on {} tensor-parallel ranks don't make up",
       "张量 {}: 有 {} 行，与它在 {} 个张量并行 rank 上的各部分不符"},
      {"tensor {}: its part {} is missing, and Megatron-FSDP has all of them in one; leave all of "
       "them out, or none",
       "张量 {}: 缺少它的部分 {}，而 Megatron-FSDP 把所有部分存于一处；请全部排除，或都不排除"},
      {"tensor {}: found {} rows, expected a multiple of --tp {}",
       "张量 {}: 有 {} 行，应为 --tp {} 的倍数"},
      {"the rows of {} and its like lie as {} tensor-parallel ranks have them: a run of another "
       "size would take them for others; convert with its size (--tp)",
       "{} 及同类张量的行按 {} 个张量并行 rank "
       "的顺序排列：其他大小的训练会把它们当作别的行；请用该训"
       "练的大小转换（--tp）"},
      {"nothing says which modules the model has: names are those of Transformer Engine's; --spec "
       "local gives those of Megatron's own",
       "没有说明模型用的是哪种模块：名字按 Transformer Engine 的模块；--spec local 给出 Megatron "
       "自己的模块的名字"},
      {"layers for multi-token prediction are called mtp_model_layer inside, as Megatron-FSDP of "
       "Megatron-Core 0.17 to 0.19 stores them; others look for transformer_layer",
       "多 token 预测的层内部名为 mtp_model_layer，与 Megatron-Core 0.17 到 0.19 的 Megatron-FSDP "
       "存储的一致；其他版本查找的是 transformer_layer"},
      {"convolutions of Mamba mixers are called {}: Megatron-Core has conv1d_weight since 0.19, "
       "conv1d.weight before",
       "Mamba mixer 的卷积名为 {}：Megatron-Core 自 0.19 起为 conv1d_weight，之前为 conv1d.weight"},
      {"parameters differ in their steps: {} is kept", "各参数的 step 不同：保留 {}"},
      {"model: found {} layers by name, expected {} of a run with {} pipeline stages; stages "
       "number their layers alike, and layers of one name were lost when this was saved",
       "model: 按名字有 {} 层，应为 {} 层（训练有 {} 个流水线 stage）；各 stage 的层编号相同，保"
       "存时同名的层丢失了"},
      {"tensor {}: found a name that fsdp_dtensor has not", "张量 {}: fsdp_dtensor 没有这样的名字"},
      {"tensor {}: its parameter is stored under another name too",
       "张量 {}: 它的参数还以另一个名字存储"},
      {"RNG states are left out: they belong to the old ranks",
       "RNG 状态不写出：它们属于旧的 rank"},
      {"weights stay {}, the main weights of Megatron-FSDP",
       "权重仍为 {}，即 Megatron-FSDP 的主权重"},
      {"weights stay {}, the main weights of Megatron-FSDP; --dtype bfloat16 gives what such a "
       "model usually computes with",
       "权重仍为 {}，即 Megatron-FSDP 的主权重；--dtype bfloat16 给出这种模型通常的计算类型"},
      {"tensor {}: found the optimizer states {}, expected {} as of {}",
       "张量 {0}: 优化器状态为 {1}，应与 {3} 一样为 {2}"},
      {"tensor {}: found the optimizer states {}, expected {} by the run's arguments",
       "张量 {}: 优化器状态为 {}，按训练参数应为 {}"},
      {"tensor {}: found the optimizer states {}, expected {} by the optimizer's betas and eps",
       "张量 {}: 优化器状态为 {}，按优化器的 betas 和 eps 应为 {}"},
      {"optimizer: found no states, expected exp_avg and exp_avg_sq of each parameter that was "
       "trained, as it has betas and eps and has made steps; convert without them (--optimizer "
       "drop)",
       "优化器：没有状态；它有 betas 和 eps，也已更新过，训练过的每个参数都应有 exp_avg 和 "
       "exp_avg_sq；请不带它们转换（--optimizer drop）"},
      {" ({} tensors more lack them too)", "（另有 {} 个张量也缺少它们）"},
      {"{}{}; convert without them (--optimizer drop)", "{}{}；请不带它们转换（--optimizer drop）"},
      {"tensor {}: found optimizer state of shape {}, expected the weight's {}; convert without it "
       "(--optimizer drop)",
       "张量 {}: 优化器状态的形状为 {}，应为权重的 {}；请不带它转换（--optimizer drop）"},
      {"parameters without optimizer states ({}, {} the first) are taken to be frozen",
       "没有优化器状态的参数（{} 个，第一个为 {}）视为冻结"},
      {"entry {}: its parameter has this setting under another name too",
       "条目 {}: 它的参数还以另一个名字有这项设置"},
      {"entry {}: found a Python object, expected a tensor as its name says",
       "条目 {}: 是 Python 对象，按其名字应为张量"},
      {"entries that are no part of a training state are left out: {}",
       "不属于训练状态的条目不写出：{}"},
      {"entry {}: found {}, expected the number of the optimizer's steps; convert without its "
       "states (--optimizer drop)",
       "条目 {}: 发现 {}，应为优化器的步数；请不带其状态转换（--optimizer drop）"},
      {"a Python object", "Python 对象"},
      {"{} and its like have no step: the iteration, {}, is taken",
       "{} 等没有 step：取 iteration {}"},
      {"{}: found Adam's states and neither a step nor the run's iteration, which tell how far "
       "they "
       "are; convert without them (--optimizer drop)",
       "{}: 有 Adam 的状态，而没有说明其进度的 step 或训练的 "
       "iteration；请不带它们转换（--optimizer "
       "drop）"},
      {"tensor {}: found no optimizer settings of its parameter, expected entries {}.KEY; convert "
       "without its states (--optimizer drop)",
       "张量 {}: 没有其参数的优化器设置，应有条目 {}.KEY；请不带其状态转换（--optimizer drop）"},
      {"optimizer parameter groups {} and {} are for the same kind of parameters and differ in "
       "their settings: the output does not say which parameters are in which, a run's own "
       "settings do",
       "优化器参数组 {} 和 {} 用于同一类参数而设置不同：输出没有写明各参数属于哪一组，由训练自己的"
       "设置决定"},
      {"the optimizer's settings and steps are left out: the run's arguments (args), which they "
       "would stand beside, are missing",
       "优化器的设置和步数不写出：缺少应与它们一起的训练参数（args）"},
      {"optimizer parameter groups of dense and expert parameters are joined; those of experts, "
       "which have other settings or steps, are kept apart, and a run that loads torch_dist "
       "without "
       "expert parallelism does not ask for them",
       "稠密参数和专家参数的优化器参数组已合并；专家的参数组因设置或步数不同而单独保留，没有专家并"
       "行"
       "的训练加载 torch_dist 时不会读取它们"},
      {"{}: its state does not say which iteration it is of: {} is written",
       "{}: 它的状态没有写明 iteration：写入 {}"},
      {"{}: found iteration {} in its state, and {} in the folder's name: a run takes the first, "
       "the output's folder has the second",
       "{}: 其状态中的 iteration 为 {}，文件夹名字为 {}：训练采用前者，输出的文件夹采用后者"},
      {"{}: its state does not say which iteration it is of, so the folder's name is not held "
       "against it",
       "{}: 它的状态没有写明 iteration，因此未与文件夹的名字核对"},
      {"with", "带"},
      {"without", "不带"},
      {"common state", "公共状态"},
      {"tensor {}: found an optimizer state that Megatron-FSDP does not have, expected param, "
       "exp_avg, exp_avg_sq or momentum_buffer; convert without it (--optimizer drop)",
       "张量 {}: 发现 Megatron-FSDP 没有的优化器状态，应为 param、exp_avg、exp_avg_sq 或 "
       "momentum_buffer；请不带它转换（--optimizer drop）"},
      {"the optimizer's main weights become the model: Megatron-FSDP has no other",
       "优化器的主权重成为模型：Megatron-FSDP 没有别的权重"},
      {"tensors {} and {}: found a momentum_buffer of one and an exp_avg of the other, expected "
       "one optimizer's states: Megatron-FSDP has no second one; convert without them "
       "(--optimizer drop)",
       "张量 {} 和 {}: 一个有 momentum_buffer，另一个有 exp_avg，应为同一个优化器的状态："
       "Megatron-FSDP 没有第二个；请不带它们转换（--optimizer drop）"},
      {"extra states and RNG states are left out: start the job with --no-load-rng, and "
       "Megatron-FSDP makes its own",
       "附加状态和随机数状态不带：启动作业时加 --no-load-rng，Megatron-FSDP 会自己生成"},
      {"--pp {} does not apply to --to fsdp_dtensor: Megatron-FSDP numbers the layers of each "
       "pipeline stage alike and loses them; leave it out",
       "--pp {} 不适用于 --to fsdp_dtensor：Megatron-FSDP 对各流水线 stage 的层采用相同编号，会"
       "丢失它们；请去掉它"},
      {"metadata.json names the {} backend", "metadata.json 写明 {} backend"},
      {"its pickle does not say {}", "它的 pickle 没有说明 {}"},
      {"how large its device mesh is", "它的 device mesh 有多大"},
      {"it is placed as {}, expected Shard or Replicate",
       "它的放置方式是{}，应为 Shard 或 Replicate"},
      {"something unknown", "未知的"},
      {"which axis is cut", "切分的是哪个轴"},
      {"how a strided shard is cut", "跨步分片如何切分"},
      {"where this rank's piece of it belongs", "该 rank 的那一块属于何处"},
      {"at which rank it was", "它在哪个 rank 上"},
      {"which shards of it this rank has", "该 rank 有它的哪些分片"},
      {"where a shard is", "分片在哪里"},
      {"which shape it has", "它的形状"},
      {"it is a {}, expected a tensor, DTensor or ShardedTensor",
       "它是 {}，应为张量、DTensor 或 ShardedTensor"},
      {"no {} is there", "没有 {}"},
      {"files of runs with {} and with {} ranks lie together ({}, {}); move those of one away",
       "有 {} 个 rank 和 {} 个 rank 的两次运行的文件混在一起（{}，{}）；请移走其中一次的"},
      {"{} is missing: of {} ranks the files of {} are there",
       "缺少 {}：{} 个 rank 中有 {} 个的文件"},
      {"{} names a rank that a run of {} does not have",
       "{} 所写的 rank 在 {} 个 rank 的运行中不存在"},
      {"{}: a key of its state dict is not text", "{}: 它的 state dict 中有不是文本的键"},
      {"found a piece of {}, but its place is {} of {}", "有一块是 {0}，而它的位置是 {2} 中的 {1}"},
      {"it is a conjugate or negative view", "它是共轭或取负的视图"},
      {"this is FSDP1's local state dict, in which nothing says which tensors a flat parameter is "
       "made of; save with StateDictType.SHARDED_STATE_DICT",
       "这是 FSDP1 的 local state dict，其中没有信息说明 flat parameter 由哪些张量组成；请用 "
       "StateDictType.SHARDED_STATE_DICT 保存"},
      {"{} is what one rank of FSDP saved", "{} 是 FSDP 的一个 rank 保存的"},
      {"{} files of optimizer and random states stay behind: {}",
       "优化器和随机状态的 {} 个文件不写出：{}"},
      {"{}: found layers in several stages that do not begin at 0 in each, expected the numbers "
       "of a stage or those of the model",
       "{}: 多个 stage 中的层都不从 0 开始，应为 stage 内的编号或模型的编号"},
      {"the experts of one EP rank only; those of the others were taken for replicas of them",
       "只有一个 EP rank 的专家；其他 rank 的专家被当成了它们的副本"},
      {"the rows of one expert data rank only", "只有一个专家数据 rank 的行"},
      {"the experts of one EP rank or the rows of one expert data rank only",
       "只有一个 EP rank 的专家，或只有一个专家数据 rank 的行"},
      {"tensor {}: found {} (MLite before its DTensor placements were right), expected {} "
       "experts over EP {}; the rest is not in these files",
       "张量 {0}: {1}（MLite 的 DTensor 放置改正之前保存），应为 EP {3} 上的 {2} 个专家；其余不"
       "在这些文件中"},
      {"model_pp{}: found tensors of pipeline stage {}, but none of stage {}",
       "model_pp{}: 有流水线 stage {} 的张量，但没有 stage {} 的"},
      {"{}; save again with a corrected MLite, or take what is there with --accept-loss",
       "{}；请用改正后的 MLite 重新保存，或用 --accept-loss 取现有的部分"},
      {"{}: no parameters of the model by name; they go along as they are stored, with the "
       "numbers that experts and layers had on their ranks",
       "{}: 按名字看不是模型的参数；它们照原样写出，专家和层保持在各 rank 上的编号"},
      {"{} tensors: no file name tells who wrote which of their pieces, so their rows are taken "
       "in MLite's own order (data ranks before the others): {}",
       "{} 个张量：没有文件名说明哪一块由谁写出，因此它们的行按 MLite 自己的顺序（数据 rank 在前"
       "）排列：{}"},
      {"tensor {}: found expert {} of a rank in {} pieces, expected one of {} in {} as the "
       "experts beside it",
       "张量 {0}: 某 rank 的专家 {1} 分为 {2} 块，应与旁边的专家一样为 {3} 个专家、{4} 块"},
      {"tensor {}: found {} pieces, expected {} (DP) or {} (DP x TP {}); give --source-tp",
       "张量 {}: 发现 {} 块，应为 {}（DP）或 {}（DP x TP {}）；请给出 --source-tp"},
      {"tensor {}: found {}, expected multiples of {} x {} x {}",
       "张量 {}: 发现 {}，应为 {} x {} x {} 的倍数"},
      {"tensor {}: found {} and {} in different stages", "张量 {}: 不同 stage 中为 {} 和 {}"},
      {"--accept-loss: {}; tensors keep their stored names and order of rows",
       "--accept-loss: {}；张量保持存储的名字和行的顺序"},
      {"MLite, saved with EP {}, ETP {}, EDP {}, TP {}: experts get their global numbers",
       "MLite，保存时 EP {}、ETP {}、EDP {}、TP {}：专家改用全局编号"},
      {"rows of fc1, gate_up and qkv stay in the order of the tensor-parallel ranks that had "
       "them: nothing in the files says whether they were put in the model's own order",
       "fc1、gate_up 和 qkv 的行保持原张量并行 rank 的顺序：文件没有说明它们是否已按模型自己的顺"
       "序排列"},
      {"found {} files like {} that end with rank {}, expected one for each rank, and rank {} "
       "has none: it would begin anew; restore the file, or leave all of them behind with "
       "--optimizer drop",
       "像 {1} 这样的文件有 {0} 个，最大 rank 为 {2}，应每个 rank 一个，而 rank {3} 没有：它会从"
       "头开始；请恢复该文件，或用 --optimizer drop 全部不带"},
      {"they are of a job with all tensors as they are stored, and --include, --exclude or "
       "--dtype makes another model",
       "它们属于张量保持原样的作业，而 --include、--exclude 或 --dtype 会得到另一个模型"},
      {"they belong to {} ranks, and the output to {}; --shards {} takes them along, for a job "
       "of the same layout",
       "它们属于 {} 个 rank，而输出属于 {} 个；--shards {} 可为相同布局的作业带上它们"},
      {"{} go along as they are: only a job of {} ranks with the layout that saved them may "
       "load them, for they name no parameters",
       "{} 照原样带上：只有布局与保存时相同、有 {} 个 rank 的作业才能加载它们，因为其中没有参数"
       "名"},
      {"{} stay behind: {}", "{} 不写出：{}"},
      {"found buffer {} of rank {}{}, expected none of a run of these sizes",
       "发现 rank {1} 的缓冲区 {0}{2}，这种大小的训练应没有"},
      {" in part {}", "（第 {} 部分）"},
      {"tensor {}: found {} {}, expected a bucket of Adam's states in float32",
       "张量 {}: 发现 {} {}，应为 float32 的 Adam 状态分桶"},
      {"the run's arguments lack its parallel sizes", "训练参数中缺少并行大小"},
      {"found one optimizer for all parameters, expected experts' apart with EP {}",
       "所有参数共用一个优化器，EP {} 时专家的应分开"},
      {"found parallel sizes in the run's arguments that no run can have had",
       "训练参数中的并行大小不可能属于任何训练"},
      {"{} stages", "{} 个阶段"},
      {"0 to {}", "0 到 {}"},
      {"stages of E, t, m and L between bars", "以竖线分隔、由 E、t、m、L 组成的阶段"},
      {"E once in the first stage, L once in the last", "第一阶段有一个 E，最后阶段有一个 L"},
      {"MTP layers in one stage, behind all layers of the decoder",
       "MTP 层在同一阶段，且位于解码器所有层之后"},
      {"found {} {}, expected {}", "{} 为 {}，应为 {}"},
      {"found {} layers beside those of the first and the last stage, expected a multiple of {} "
       "other stages",
       "除第一和最后阶段的层外有 {} 层，应为其余 {} 个阶段的倍数"},
      {"found a stage of {} layers, expected a multiple of {}",
       "发现有 {} 层的阶段，应为 {} 的倍数"},
      {"found {} layers, expected a multiple of {} pipeline stages",
       "发现 {} 层，应为 {} 个流水线阶段的倍数"},
      {"found {} layers for {} pipeline stages times {} virtual ones, expected fewer",
       "发现 {} 层、{} 个流水线阶段、每阶段 {} 个虚拟阶段，应更少"},
      {"found {} layers, expected the {} of all pipeline stages",
       "发现 {} 层，应为流水线各阶段共有的 {} 层"},
      {"found {} buffer {} of rank {}, expected one for {} of {}",
       "发现 rank {2} 的{0}缓冲区 {1}，应为 {4} 中的 {3} 有一个"},
      {"found a buffer of {} states, expected {} as in the others",
       "发现含 {} 种状态的缓冲区，应与其他的一样为 {}"},
      {"tensor {}: found {}, expected {} as in the other buckets",
       "张量 {}: 发现 {}，应与其他 bucket 相同，为 {}"},
      {"tensor {}: found {} in the buckets of one rank, expected {} as of the others",
       "张量 {}: 在一个 rank 的 bucket 中发现 {}，应与其他 rank 相同，为 {}"},
      {"found bucket {} behind {}, expected all from 0 on",
       "发现分桶 {} 在 {} 之后，应为从 0 起的全部"},
      {"tensor {}: found {} elements, expected {} as of its param",
       "张量 {}: 发现 {} 个元素，应与它的 param 一样为 {}"},
      {"found a bucket without its {}, expected {}, {} and {}",
       "发现没有 {} 的分桶，应有 {}、{} 和 {}"},
      {"tensor {}: found it stored with strides, expected one row",
       "张量 {}: 是以跨步存储的，应为一行"},
      {"tensor {}: found optimizer state of shape {}, expected the weight's {} or a grid of its "
       "cells; convert without it (--optimizer drop)",
       "张量 {}: 优化器状态的形状为 {}，应为权重的 {} 或其单元的网格；请不带它转换（--optimizer "
       "drop）"},
      {"tensor {}: found optimizer state of no tensor of the model; convert without it "
       "(--optimizer drop)",
       "张量 {}: 该优化器状态不属于模型的任何张量；请不带它转换（--optimizer drop）"},
      {"{}: found optimizer states in flat buffers and no common state that tells the run's "
       "layout; convert without them (--optimizer drop)",
       "{}: 优化器状态在扁平缓冲区中，而没有公共状态说明训练的布局；请不带它们转换（--optimizer "
       "drop）"},
      {"--tp-replicas expand, which --for replicas implies: one tensor rank shares nothing; "
       "give --tp N, or leave the flag out",
       "--tp-replicas expand（--for replicas 隐含此项）：只有一个张量 rank 就没有可共享的；请给"
       "出 --tp N，或去掉该参数"},
      {"tensors that all {} tensor ranks hold ({} of them) are stored for each rank, as "
       "NAME.__tp_replica_RANK: unmodified Megatron-Core does not find them under such names",
       "全部 {} 个张量 rank 都持有的张量（共 {} 个）为每个 rank 各存一份，名为 "
       "NAME.__tp_replica_RANK：未修改的 Megatron-Core 不会按这样的名字查找"},
      {"files are laid out for {} ranks that load all of this fully parallel in their "
       "data-parallel groups: loads of other sizes, or of a part, work and read more files",
       "文件是为 {} 个 rank 布置的，它们在各自的数据并行组中完全并行地加载全部内容：其他大小或部"
       "分内容的加载也可以，但会读更多文件"},
      {"_w and _v", "_w 和 _v"},
      {"one", "一个"},
  });
  return kSentences;
}

}  // namespace shardwright
