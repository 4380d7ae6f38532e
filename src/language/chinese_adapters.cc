// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <span>

#include "language/chinese_tables.h"

namespace shardwright {

std::span<const Sentence> chinese_of_adapters() {
  static constexpr auto kSentences = std::to_array<Sentence>({
      {"the adapter {} has nothing of {}, which its {} lists in target_modules and the base model "
       "has: a part of it may be missing",
       "适配器 {} 没有 {} 的内容，而其 {} 在 target_modules 中列出了它们，基础模型也有："
       "可能缺了一部分"},
      {"the adapter {} changes {}, which its {} leaves out (target_modules, layers_to_transform): "
       "PEFT would drop these tensors, and here they are used",
       "适配器 {} 改变 {}，而其 {} 未包括它们（target_modules、layers_to_transform）：PEFT "
       "会丢弃这些张量，这里则采用"},
      {"the adapter {} lacks modules in layers {} that it has in others, and its {} names no "
       "layers_to_transform: a part of it may be missing, as where one pipeline stage saved it",
       "适配器 {} 在第 {} 层缺少它在其他层有的模块，而其 {} 没有 layers_to_transform："
       "可能缺了一部分，例如只由一个流水线阶段保存"},
      {"{}: r is {}, and tensor {} is {}, whose rows are the rank; is it the file of another run?",
       "{}: r 为 {}，而张量 {} 是 {}，其行数就是 rank；这是另一次训练的文件吗？"},
      {"{}: tensor {}: {} of its numbers are NaN or infinite, and so would be all weights that the "
       "adapter is added to; take a checkpoint from before the run diverged",
       "{}: 张量 {}: 其中 {} 个数为 NaN 或无穷大，adapter 所加到的全部权重也会如此；"
       "请用训练发散之前的检查点"},
      {"{}: lora_alpha is 0, so nothing would become of {} and of {} modules in all; put the run's "
       "own number there",
       "{}: lora_alpha 为 0，{} 等共 {} 个模块的训练结果不会起作用；请填入训练时的数值"},
      {"{} of layers {}", "{1} 层的 {0}"},
      {"no adapter of {}, where most layers have one: a part of the run may be missing",
       "{} 没有 adapter，而多数层都有：可能缺少训练结果的一部分"},
      {"found an adapter and nothing that tells its lora_alpha; put the {} beside it that PEFT "
       "writes, or a {} with r and lora_alpha, as verl does",
       "发现 adapter，但没有信息说明它的 lora_alpha；请在旁边放上 PEFT 写的 {}，或像 verl "
       "那样放上含 r "
       "和 lora_alpha 的 {}"},
      {"{}: {} is missing; put the run's own number there",
       "{}: 缺少 {}；请填上该次训练自己的数值"},
      {"{}: lora_alpha is 0, so the adapter would change nothing; put the run's own number there",
       "{}: lora_alpha 为 0，adapter 不会改变任何东西；请填上该次训练自己的数值"},
      {"{}: found an adapter in a run's own files, expected a model for --to {}; --to hf makes "
       "PEFT's files of it first",
       "{}: 发现训练自己的文件中的 adapter，--to {} 需要模型；请先用 --to hf 把它写成 PEFT 的文件"},
      {"tensor {}: found another one that PEFT's files call {} too",
       "张量 {}: 还有另一个张量在 PEFT 的文件中也叫 {}"},
      {"the adapter is written as PEFT's files, by what {} says of it; 'shardwright merge-adapter' "
       "adds it to its base model",
       "adapter 写成 PEFT 的文件，依据是 {}；'shardwright merge-adapter' 把它加到基础模型上"},
      {"{}: lora_alpha is 0, so the adapter would change nothing; verl has written 0 whatever a "
       "run "
       "was trained with: put the run's own number there",
       "{}：lora_alpha 为 0，适配器将不改变任何东西；verl 曾不论训练用什么都写 "
       "0：请填入训练所用的数"},
      {"{}: found peft of the kind {}, expected LoRA, CanonicalLoRA or DoRA",
       "{}: 发现 {} 类型的 peft，应为 LoRA、CanonicalLoRA 或 DoRA"},
      {"{}: names are taken as PEFT gives them: {} has what wrappers put there, or lacks what PEFT "
       "puts before it",
       "{}: 名字按 PEFT 的写法读取：{} 含有包装器加入的部分，或缺少 PEFT 加在前面的部分"},
      {"'s peft section", "的 peft 部分"},
      {"'s model_transform section", "的 model_transform 部分"},
      {"the run's arguments", "训练参数"},
      {"{}: found adapters and nothing that tells their alpha, expected a peft section with dim "
       "and alpha in {}, as Megatron-Bridge writes it, a model_transform section with them in {}, "
       "as NeMo 2 does, or lora_alpha among the run's arguments",
       "{}: 发现 adapter，但没有信息说明它们的 alpha；应在 {} 中有含 dim 和 alpha 的 peft 部分（"
       "Megatron-Bridge 的写法），或在 {} 中有含它们的 model_transform 部分（NeMo 2 "
       "的写法），或在训练"
       "参数中有 lora_alpha"},
      {"{}: found adapters of rank {}, expected {} as {} says",
       "{0}: adapter 的 rank 为 {1}，{3} 说应为 {2}"},
      {"{}: found {}, expected {} by {}", "{0}: {1}，而按 {3} 应{2}"},
      {"the magnitudes of DoRA", "有 DoRA 的 magnitude"},
      {"no magnitudes of DoRA", "没有 DoRA 的 magnitude"},
      {"some", "有"},
      {"a low-rank adapter of rank {} is written as PEFT's files; its alpha is that of {}. Its "
       "base model is not in it: 'shardwright merge-adapter' puts both together",
       "rank 为 {} 的低秩 adapter 写成 PEFT 的文件；它的 alpha 取自 {}。其中没有基础模型："
       "'shardwright merge-adapter' 可把两者合并"},
      {"--hf-config {}: its config.json makes {} and {} one, and the adapter makes them two; "
       "set tie_word_embeddings to false there and store a head, or leave --hf-config out",
       "--hf-config {}: 其中的 config.json 使 {} 和 {} 成为同一个张量，而 adapter 使它们不同；请"
       "在其中把 tie_word_embeddings 设为 false 并存储 head，或去掉 --hf-config"},
      {"the adapter changes {} and {} apart, which are one tensor in the base: both are "
       "written, and config.json says tie_word_embeddings false",
       "adapter 对 {} 和 {} 的改动不同，而它们在基础模型中是同一个张量：两者都写出，config.json "
       "中 tie_word_embeddings 为 false"},
      {"{}: tensor {}: found the bias of a head, expected its weight too",
       "{}: 张量 {}: 发现 head 的偏置，应当还有它的权重"},
      {"{}: tensor {}: found a head on {} numbers for each token, expected the base model's {}; is "
       "this the adapter of another model?",
       "{}: 张量 {}: 发现每个 token 接收 {} 个数的 head，应与基础模型的 {} 相同；这是另一个模型的 "
       "adapter 吗？"},
      {"{}: tensor {}: found a head of {} labels, expected 1 to {}",
       "{}: 张量 {}: 发现 {} 个标签的 head，应为 1 到 {} 个"},
      {"{}: tensor {} {} does not fit {} {}", "{}: 张量 {} {} 与 {} {} 不相配"},
      {"--hf-config {}: its config.json is of no model with a head of {} labels, which the adapter "
       "has ({}); give one of such a model, or leave --hf-config out",
       "--hf-config {}: 其中的 config.json 不属于带有 {} 个标签的 head 的模型，而 adapter "
       "有这样的 head（{}）；请给出这种模型的 config.json，或去掉 --hf-config"},
      {"the adapter's head ({}, labels: {}) comes in the output layer's place",
       "adapter 的 head（{}，标签数：{}）取代输出层"},
      {"config.json: the adapter has a head of its own, and nothing is known of such a head on {}; "
       "save the base as a model {} and give that folder",
       "config.json: adapter 有自己的 head，而 {} 上如何放置这种 head 并不清楚；请把基础模型另存为 "
       "{} 模型，再给出那个目录"},
      {"{}: found a {} checkpoint, expected a model with Hugging Face's names; convert it with "
       "--to hf first",
       "{}: 发现 {} 检查点，应为使用 Hugging Face 名字的模型；请先用 --to hf 转换"},
      {"{}: the base model has no config.json; give one with --hf-config",
       "{}: 基础模型没有 config.json；请用 --hf-config 给出"},
      {"{}: its weights are quantised by bitsandbytes; give the model that it was made of, "
       "which the adapter fits too",
       "{}: 它的权重由 bitsandbytes 量化；请给出量化之前的模型，adapter 同样适用于它"},
      {"the {} adapter {} is added to {} module{}", "{} adapter {} 已加到 {} 个模块{}上"},
      {"; from it come {}", "；取自它的有 {}"},
      {"; from it come {} rows of {}", "；取自它的有 {1} 的 {0} 行"},
      {"{}: tensor {}: found token {}, but {} of the base model has {} rows; give it the rows "
       "first, as was done before training",
       "{}: 张量 {}: 发现 token {}，但基础模型的 {} 只有 {} "
       "行；请先像训练前那样为它增加行"},
      {"{}: tensor {}: the adapter changes {}, or what is tied to it, in another way too; let PEFT "
       "merge this adapter (merge_and_unload)",
       "{}: 张量 {}: adapter 还以另一种方式改动 {} 或与其绑定的张量；请让 PEFT 合并此 adapter"
       "（merge_and_unload）"},
      {"{}: {}: found no rows of {}, which {} lists in trainable_token_indices; the values that "
       "were "
       "trained are not there",
       "{0}: {1}: 没有 {2} 的行，而 {3} 在 trainable_token_indices "
       "中列出了它；训练得到的值不在其中"},
      {"{}: tensor {}: {} lists no such module in trainable_token_indices",
       "{}: 张量 {}: {} 的 trainable_token_indices 中没有列出该模块"},
      {"{}: tensor {} {}: expected a row for each of {} tokens, as {} lists in "
       "trainable_token_indices",
       "{0}: 张量 {1} {2}: 应对 {4} 在 trainable_token_indices 中列出的 {3} 个 token 各有一行"},
      {"a list of tokens", "token 的列表"},
      {"trained rows of tokens, of {}", "{} 中训练过的 token 行"},
      {"{}: {}: found token {} twice", "{}: {}: token {} 出现了两次"},
      {"names of modules", "模块名"},
      {"{}: tensor {}: found {}, expected a type that {} is made of",
       "{}: 张量 {}: 发现 {}，应为 {} 可由其构成的类型"},
      {"{}: tensor {} is {}, the base's {} {}, and this target shifts it: merge to hf first and "
       "convert that",
       "{}: 张量 {} 为 {}，而基础模型的 {} 为 {}，且该目标会平移它：请先合并为 hf，再转换"},
      {"tensor {}: found {}, expected float32, bfloat16 or float16 to add the adapter to; where "
       "the base is quantised, --dtype bfloat16 multiplies it out",
       "张量 {}: 发现 {}，要加上 adapter 应为 float32、bfloat16 或 float16；若基础模型是量化的，"
       "--dtype bfloat16 可反量化"},
      {"tensor {}: found an adapter of routed experts, which trainers save as torch_dist only; "
       "keep "
       "it in that",
       "张量 {}: 发现路由专家的 adapter，训练框架只以 torch_dist 保存它；请保留该格式"},
      {"{}: found {} in target_parameters, expected gate_up_proj or down_proj of experts, or the "
       "weight of a module; let PEFT merge this adapter (merge_and_unload)",
       "{}: target_parameters 中有 {}，应为专家的 gate_up_proj 或 down_proj，或某个模块的 weight；"
       "请让 PEFT 合并这个 adapter（merge_and_unload）"},
      {"{}: parameter {}: found {}, expected lora_A and lora_B",
       "{}: 参数 {}: 发现 {}，应为 lora_A 和 lora_B"},
      {"{}: tensors {} {} and {} {} are not those of experts of rank {}, as {} says",
       "{}: 张量 {} {} 和 {} {} 不是 rank 为 {} 的专家的张量，而 {} 如此说明"},
      {"{}: tensor {}: the base model has neither {}, which holds all experts of a layer, nor "
       "{}{}; is this the adapter of another model?",
       "{}: 张量 {}: 基础模型既没有存放一层全部专家的 {}，也没有 {}{}；这是否是另一个模型的 "
       "adapter？"},
      {"{}: parameter {}: nothing tells whether lora_A is over the inputs or the outputs of its "
       "square matrices; let PEFT merge this adapter (merge_and_unload)",
       "{}: 参数 {}: 没有什么说明 lora_A 对应其方阵的输入还是输出；请让 PEFT 合并这个 "
       "adapter（merge_and_unload）"},
      {"the DoRA of an expert, {}", "专家 {} 的 DoRA"},
      {"{}: tensor {}: found {} experts by the rank that {} tells, but the base model has {} too{}",
       "{0}: 张量 {1}: 按 {3} 中的 rank 有 {2} 个专家，但基础模型还有 {4}{5}"},
      {"experts have their adapters one by one; with transformers 5 PEFT finds those of models "
       "that it has rules for (Mixtral, Qwen2-MoE and the like) only, and vLLM or 'shardwright "
       "merge-adapter' those of any",
       "每个专家各有自己的 adapter；使用 transformers 5 时，PEFT "
       "只能找到它有规则的模型（Mixtral、Qwen2-MoE "
       "等）的这些 adapter，而 vLLM 或 'shardwright merge-adapter' 能找到任何模型的"},
      {"lora_dropout is 0, not the run's {}: PEFT has no dropout of experts or routers",
       "lora_dropout 写为 0，而不是训练所用的 {}：PEFT 的专家和路由器没有 dropout"},
      {"the rank of the other modules", "其他模块的 rank"},
      {"{}: found nothing for {}, expected adapters for all {} experts or none: Megatron has one "
       "tensor for them",
       "{}: 没有 {} 的内容，应为全部 {} 个专家都有 adapter，或都没有：Megatron "
       "把它们放在一个张量中"},
      {"tensor {}: found an adapter of {}, which no rule tells the shares of several ranks of; "
       "keep it in torch_dist",
       "张量 {}: 发现 {} 的 adapter，没有规则说明多个 rank 各持有它的哪一部分；请保留为 "
       "torch_dist"},
      {"modules_to_save in {}: {}", "{} 中的 modules_to_save：{}"},
      {"{}: {}: found nothing of {}, which {} lists in modules_to_save and the base model has; the "
       "values that were trained are not there",
       "{0}: {1}: 没有 {2}，而 {3} 在 modules_to_save "
       "中列出了它，基础模型也有它；训练得到的值不在其中"},
      {"a mixer's in_proj", "mixer 的 in_proj"},
      {"tensor {}: found neither linear_fc2.weight nor its adapter beside it, expected one to tell "
       "whether each of several tensor ranks has rows of gate and of up; keep it in torch_dist",
       "张量 {}: 旁边既没有 linear_fc2.weight 也没有它的 adapter，应有其一来说明多个张量 rank "
       "是否各有 gate 和 up 的行；请保留为 torch_dist"},
      {"--pp {}: found adapters up to layer {}, expected {} layers as the run's arguments say, "
       "which the stages share out; keep them in torch_dist or give --pp 1",
       "--pp {}: adapter 只到第 {} 层，而训练参数说应有 {} 层由各流水线段分担；请保留为 "
       "torch_dist，"
       "或用 --pp 1"},
      {"use_rslora: Megatron-Bridge divides alpha by the rank, so alpha is {} where it was {}",
       "use_rslora: Megatron-Bridge 用 rank 除 alpha，因此 alpha 写为 {}，原为 {}"},
      {"{}: the checkpoint in {} is given twice; give it once, and --weights for how much each "
       "counts",
       "{}: {} 中的检查点给出了两次；请只给一次，并用 --weights 说明各自的权重"},
      {"{} is left out: {} has none", "{} 不写出：{} 中没有它"},
      {"{}: found {} = {}, expected {}, which {} has; only checkpoints of one model are averaged "
       "(--hf-config gives a config.json that is true of all)",
       "{}: {} 为 {}，应为 {}（与 {} 中相同）；只能平均同一模型的检查点（--hf-config 可给出对所有检"
       "查点都成立的 config.json）"},
      {"{}: what it says of itself differs in {}; that of {} is kept",
       "{}: 其自身描述在 {} 上有差异；保留 {} 的描述"},
      {"{}: tensor {} is missing, which {} has; only checkpoints of one model are averaged "
       "(--exclude leaves out what one of them lacks)",
       "{}: 缺少张量 {}，而 {} 中有；只能平均同一模型的检查点（--exclude "
       "可去掉其中之一缺少的张量）"},
      {"{}: tensor {}: found shape {}, expected {}, which {} has",
       "{0}: 张量 {1}: 形状为 {2}，应为 {3}，即 {4} 中的形状"},
      {"{}: tensor {}: found {}, expected {}, which {} has; --dtype says which type is written",
       "{0}: 张量 {1}: 发现 {2}，应为 {3}，即 {4} 中的类型；--dtype 说明写成哪种类型"},
      {"{}: tensor {} is a constant there or in {}, and not the same in both; convert both to "
       "one format first and average what that gives",
       "{}: 张量 {} 在那里或在 {} 中是常量，且两者不同；请先把两者转换为同一格式，再平均"},
      {"--weights: found {} weight{}, expected {}, one for each checkpoint",
       "--weights: 发现 {0} 个权重，应为 {2} 个，每个检查点一个"},
      {"--weights: they add up to {}, expected 1: the model would be so many times as large",
       "--weights: 总和为 {}，应为 1：否则模型会放大为这么多倍"},
      {"--optimizer keep: states of several runs have no average; leave it out",
       "--optimizer keep: 多次运行的状态没有平均值；请去掉它"},
      {"--quantise: average first, then convert the mean with it",
       "--quantise: 请先平均，再带该参数转换平均后的模型"},
      {"--upcycle: average first, then convert the mean with it",
       "--upcycle: 请先平均，再带该参数转换平均后的模型"},
      {"--mtp from=: take the layers into each checkpoint first",
       "--mtp from=: 请先把这些层取入每个检查点"},
      {"{}: its weights are stored as values and scales, which have no average; --to hf or a "
       "Megatron format, with --dtype bfloat16, multiplies them out",
       "{}: 它的权重以值和 scale 存储，没有平均值；--to hf 或 Megatron 格式加 --dtype bfloat16 "
       "可反量化"},
      {"{}: its weights are stored as values and scales, and --to {} keeps them so: --dtype would "
       "round the scales; leave it out, or take --to hf, which multiplies them out",
       "{}: 它的权重以值和 scale 存储，--to {} 会原样保留：--dtype 会把 scale 舍入；请去掉它，或用 "
       "--to hf 反量化"},
      {"--hf-config {}: no such folder", "--hf-config {}: 没有这个文件夹"},
      {"{}: found {}, which Megatron's adapters have no place for; 'shardwright merge-adapter' "
       "takes it into the base model",
       "{}: 发现 {}，Megatron 的 adapter 没有存放它的位置；'shardwright merge-adapter' 可把它合"
       "并到基础模型"},
      {"{}: found {}, which Megatron-Bridge's adapters have no place for; ms-swift's have one "
       "(--adapter-names ms-swift), and 'shardwright merge-adapter' takes it into the base model",
       "{}: 发现 {}，Megatron-Bridge 的 adapter 没有存放它的位置；ms-swift 的有（--adapter-names "
       "ms-swift），'shardwright merge-adapter' 也可把它合并到基础模型"},
      {"{}: {}: found nothing of {}, which {} lists in modules_to_save; the values that were "
       "trained are not there",
       "{0}: {1}: 没有 {2}，而 {3} 在 modules_to_save 中列出了它；训练得到的值不在其中"},
      {"a whole tensor, {}", "完整的张量 {}"},
      {"{}: found magnitudes of DoRA, which ms-swift's adapters have no place for; "
       "Megatron-Bridge's have one (--adapter-names bridge), and 'shardwright merge-adapter' takes "
       "them into the base model",
       "{}: 发现 DoRA 的 magnitude，ms-swift 的 adapter 中没有它的位置；Megatron-Bridge "
       "的有（--adapter-names "
       "bridge），'shardwright merge-adapter' 可将其并入基础模型"},
      {"{}; Megatron-Bridge's DoRA has one adapter for modules that Megatron fuses",
       "{}；对于 Megatron 融合的模块，Megatron-Bridge 的 DoRA 只有一个 adapter"},
      {"the adapter of an embedding, {}", "embedding 的 adapter {}"},
      {"a bias of lora_B, {}", "lora_B 的 bias {}"},
      {"a rank or alpha of {} alone", "单独用于 {} 的 rank 或 alpha"},
      {"tensor {}: found other values than in the other modules that Megatron fuses with this "
       "one, expected one lora_A for all of them",
       "张量 {}: 它的值与 Megatron 会与之融合的其他模块不同，应共用一个 lora_A"},
      {"{}; ms-swift has one adapter for modules that Megatron fuses; '--adapter-names bridge' "
       "can have one for each",
       "{}；ms-swift 对 Megatron 融合的模块只有一个 adapter；'--adapter-names bridge' 可以每个模"
       "块一个"},
      {"{}: found an adapter in PEFT's files, expected a model for --to {}: 'shardwright "
       "merge-adapter BASE ADAPTER OUT' adds it to its base model; --to torch_dist makes it one "
       "that Megatron trains on",
       "{}: 发现 PEFT 文件中的 adapter，--to {} 需要模型：'shardwright merge-adapter BASE "
       "ADAPTER OUT' 把它加到基础模型上；--to torch_dist 使它成为 Megatron 可以训练的 adapter"},
      {"{}: found an adapter, of which --extend-vocab, --mtp from= and --upcycle change "
       "nothing; leave them out",
       "{}: 发现 adapter，--extend-vocab、--mtp from= 和 --upcycle 对其不起作用；请去掉它们"},
      {"{}: the base model's config.json, which tells the family, is missing; give its folder with "
       "--hf-config",
       "{}: 缺少基础模型的 config.json，需要它来说明家族；请用 --hf-config 给出其文件夹"},
      {"{}: its optimizer has no states of experts; --optimizer drop leaves all out",
       "{}: 它的优化器没有专家的状态；--optimizer drop 可全部不写出"},
      {"tensor {}: the model has experts already, expected a dense one",
       "张量 {}: 模型已经有专家，应为稠密模型"},
      {"tensor {}: layers of several kinds have a pattern that says which have an MLP, expected "
       "a model whose layers are alike",
       "张量 {}: 多种层的模型由 pattern 说明哪些层有 MLP，应为各层相同的模型"},
      {"tensor {}: layers of BERT and T5 have no experts in Megatron-Core, expected a decoder",
       "张量 {}: BERT 和 T5 的层在 Megatron-Core 中没有专家，应为 decoder"},
      {"tensor {}: found {} columns, expected {} as in other layers: experts have one size",
       "张量 {}: 发现 {} 列，应与其他层一样为 {}：专家大小相同"},
      {"no dense MLP is converted", "没有要转换的稠密 MLP"},
      {"granularity {} does not divide the {} columns of linear_fc2; found {} left over",
       "granularity {} 不能整除 linear_fc2 的 {} 列；余 {}"},
      {"{}: nothing says which activation its MLPs have, and with it how weights are scaled; "
       "convert from a checkpoint with arguments",
       "{}: 没有信息说明它的 MLP 用哪种激活，因而不知道权重如何缩放；请从带训练参数的检查点转换"},
      {"tensor {}: found shape {}, expected an MLP that is cut in {}",
       "张量 {}: 形状为 {}，应为可切成 {} 份的 MLP"},
      {", their weights times {}", "，其权重乘以 {}"},
      {"each dense MLP becomes {} experts of {} columns{}; routers are new, random numbers of "
       "seed {}",
       "每个稠密 MLP 变成 {} 个 {} 列的专家{}；router 是新的，为种子 {} 的随机数"},
      {"--upcycle does not apply to --to {}: experts are made of Megatron's tensors; convert "
       "--to torch_dist with it, and that --to hf with the --hf-config of a model with experts",
       "--upcycle 不适用于 --to {}：专家由 Megatron 的张量构成；请先用 --to torch_dist 转换，再"
       "以带专家的模型的 --hf-config 转换为 --to hf"},
      {"--upcycle: merge the adapter first, then convert the model with it",
       "--upcycle: 请先合并 adapter，再带该参数转换模型"},
      {"--upcycle: found {}, expected numbers from 1 to {}",
       "--upcycle: 发现 {}，应为 1 到 {} 之间的数"},
      {"--upcycle: found {} experts, expected a multiple of granularity {}: each copy of the "
       "dense MLP is cut into so many",
       "--upcycle: 发现 {} 个专家，应为 granularity {} 的倍数：稠密 MLP 的每份副本切成这么多块"},
      {"--upcycle: found topk {}, expected at most {}, the experts there are",
       "--upcycle: 发现 topk {}，最多应为专家数 {}"},
      {"found '{}', expected experts=N and perhaps granularity=, topk=, pre_softmax= or seed=",
       "发现 '{}'，应为 experts=N，可另加 granularity=、topk=、pre_softmax= 或 seed="},
      {"found '{}' twice, expected it once", "'{}' 出现两次，应为一次"},
      {"found '{}' for {}, expected true or false", "{1} 的值为 '{0}'，应为 true 或 false"},
      {"found '{}' for {}, expected a whole number from {} to {}",
       "{1} 的值为 '{0}'，应为 {2} 到 {3} 之间的整数"},
      {"experts=N is missing", "缺少 experts=N"},
      {"tensor {}: found {}, expected floating point numbers", "张量 {}: 发现 {}，应为浮点数"},
      {"--extend-vocab {}: the vocabulary has {} rows already, expected fewer; rows are added, "
       "never taken away",
       "--extend-vocab {}: 词表已有 {} 行，应少于此数；只增加行，不减少"},
      {"{}: its optimizer has no states of new rows; --optimizer drop leaves all out",
       "{}: 它的优化器没有新行的状态；--optimizer drop 可全部不写出"},
      {"--extend-vocab {}: tensor {} of shape {} has an entry for each token too, and nobody can "
       "say "
       "what those of new tokens are; extend the model with the software that trains it",
       "--extend-vocab {}: 张量 {}（形状 {}）也为每个 token 存有一项，新 token "
       "的项无从得知；请用训练该模型的软件扩展词表"},
      {"--extend-vocab {}: no tensor with a row for each token is converted",
       "--extend-vocab {}: 要转换的内容中没有每个 token 一行的张量"},
      {"the vocabulary gets {} rows instead of {}: new rows of {} are the mean of the others; "
       "the tokenizer has to know their tokens",
       "词表由 {1} 行变为 {0} 行：{2} 的新行是其他行的平均值；tokenizer 需要认识相应的 token"},
      {"tensor {}: found {} of shape {}, expected a floating point row for each of {} tokens",
       "张量 {}: 发现 {}，形状为 {}，应为 {} 个 token 各有一行浮点数"},
      {"tensor {}", "张量 {}"},
      {"--extend-vocab: models of the family {} have no vocabulary",
       "--extend-vocab: 家族 {} 的模型没有词表"},
  });
  return kSentences;
}

}  // namespace shardwright
