// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <span>

#include "language/chinese_tables.h"

namespace shardwright {

std::span<const Sentence> chinese_of_mimo() {
  static constexpr auto kSentences = std::to_array<Sentence>({
      {"{}: component {} has no tensors here", "{}：组件 {} 在这里没有张量"},
      {"{}: component {} is missing, which tensors belong to", "{}：缺少组件 {}，而有张量属于它"},
      {"{}: component {}: found {} ranks, expected {} as its sizes say",
       "{}：组件 {}：记录了 {} 个 rank，按其大小应为 {} 个"},
      {"{}: a component lacks the whole number '{}'", "{}: 某个组件缺少整数 '{}'"},
      {"{}: found a component without a name", "{}: 发现没有名字的组件"},
      {"{}: expected schema {}", "{}: schema 应为 {}"},
      {"tensor {}: found the state of another optimizer than the distributed one, expected {}"
       "param and its like; convert without optimizer states (--optimizer drop), or to the kind "
       "of model that they are of",
       "张量 {}: 发现分布式优化器以外的优化器的状态，应为 {}param 之类；请不带优化器状态转换（"
       "--optimizer drop），或转换为它们所属的那种模型"},
      {"entry {}: found a flat buffer of a component's optimizer, expected states named like "
       "model tensors; convert without them (--optimizer drop) or re-save them with "
       "--dist-ckpt-optim-fully-reshardable",
       "条目 {}: 发现组件优化器的扁平缓冲区，应为以模型张量命名的状态；请不带它们转换（"
       "--optimizer drop），或用 --dist-ckpt-optim-fully-reshardable 重新保存"},
      {"{}: found optimizer states and no {}; convert without them (--optimizer drop)",
       "{}: 有优化器状态而没有{}；请不带它们转换（--optimizer drop）"},
      {"parameter groups of ", "参数组，属于 "},
      {"the optimizers of {} become one", "{} 的优化器合并为一个"},
      {"{} get an optimizer each, with the parameter groups of the source; names have '{}' "
       "behind each component, as those of a training run whose components are wrapped once",
       "{} 各有一个优化器，带有源的参数组；名字中每个组件之后有 '{}'，与组件包装一次的训练相同"},
      {"family: the components may be those of {} or of {}, and the training arguments don't tell "
       "which; name it with --family, or give config.json with --hf-config",
       "family: 组件可能属于 {} 或 {}，训练参数说明不了是哪一个；请用 --family 指定，或用 "
       "--hf-config 给出 config.json"},
      {"tensor {}: {}; known are {}; --map takes a family's file",
       "张量 {}: {}；已知的有 {}；--map 接受家族的文件"},
      {"no family has this component", "没有家族有这个组件"},
      {"family {} has no such component", "家族 {} 没有这样的组件"},
      {"tensor {} is stored under two names, with and without {}",
       "张量 {} 以两个名字存储，一个带 {}，一个不带"},
      {"tensor {}: found the state of a tensor of {} in the optimizer of {}",
       "张量 {0}: {2} 的优化器中有 {1} 的张量的状态"},
      {"no component", "没有组件"},
      {"tensor {} is stored under two names", "张量 {} 以两个名字存储"},
      {"tensor {}: found the state of a component that the model lacks",
       "张量 {}: 发现模型所没有的组件的状态"},
      {"tensor {}: found '{}' behind {}, expected '{}' as in the component's other names",
       "张量 {0}: {2} 之后是 '{1}'，应与该组件的其他名字一样为 '{3}'"},
      {"{}: found flat optimizer states in a MIMO model, expected states in the shapes of the "
       "model's tensors; convert without them (--optimizer drop)",
       "{}: MIMO 模型中有扁平的优化器状态，应为与模型张量同形的状态；请不带它们转换（"
       "--optimizer drop）"},
      {"tensor {}: its component has no ranks; give --component {}=tp=N",
       "张量 {}: 它的组件没有 rank；请给出 --component {}=tp=N"},
      {"family {} is not multimodal: its mapping file lists no components",
       "家族 {} 不是多模态的：它的映射文件没有列出组件"},
      {"--component {}: {} has no such component; it has {}",
       "--component {}: {} 没有这样的组件；它有 {}"},
      {"--component {}: the source has no tensors of it; leave it out",
       "--component {}: 来源没有它的张量；请去掉它"},
      {"--component: {} are not all parts of {}; give {}=tp=N too",
       "--component: {} 不是 {} 的全部组件；请同时给出 {}=tp=N"},
      {"{}: nothing is written into an archive", "{}: 不会向归档中写入任何内容"},
      {"{}: no folder {} is in it", "{}: 其中没有文件夹 {}"},
      {"{}: no file {} is in it", "{}: 其中没有文件 {}"},
      {"model_config.yaml: megatron_legacy is set, so rows of queries, keys and values lie in "
       "an order of old models; NeMo 1 itself saves it anew without",
       "model_config.yaml: 设置了 megatron_legacy，因此 query、key 和 value 的行是旧模型的顺序；"
       "NeMo 1 自己可以不带它重新保存"},
      {"the tokenizer goes along: {} files of {}", "tokenizer 一并带上：{1} 的 {0} 个文件"},
      {"no tokenizer's files are in context: a tokenizer that NeMo only names is to be put "
       "beside the model by hand",
       "context 中没有 tokenizer 的文件：NeMo 只写了名字的 tokenizer 需要手动放到模型旁边"},
      {"{} says that NeMo did not finish this save; it would not resume from it",
       "{} 表明 NeMo 没有完成这次保存；它不会从这里继续训练"},
      {"no folder 'context' is beside it, which has the model's configuration and tokenizer; "
       "what the model is follows from its tensors or --hf-config",
       "旁边没有含模型配置和 tokenizer 的文件夹 'context'；模型是什么由它的张量或 --hf-config 得"
       "出"},
      {"{} is a shard of FSDP, which NeMo 1 alone puts together; save it there anew without FSDP",
       "{} 是 FSDP 的分片，只有 NeMo 1 能拼起来；请在那里不用 FSDP 重新保存"},
      {"found files of {} ranks, expected {} tensor ranks of each of {} pipeline stages; copy "
       "the missing ones too",
       "有 {0} 个 rank 的文件，应为 {2} 个流水线 stage 各有 {1} 个张量 rank；请把缺少的也拷贝过"
       "来"},
      {"{}: tensor {} is of no language model of NeMo; what is not one is read by NeMo itself",
       "{}: 张量 {} 不属于 NeMo 的语言模型；其他模型由 NeMo 自己读取"},
      {"{} holds weights of NeMo 1", "{} 含有 NeMo 1 的权重"},
      {"all names begin with {}, as NeMo 2's do; it is taken off",
       "所有名字都以 {} 开头，与 NeMo 2 的一样；已去掉"},
      {"{}: it has no tensors of an adapter", "{}: 其中没有 adapter 的张量"},
      {"{}: not found, nor {}; give the folder that has the adapter's tensors in one of them",
       "{}: 不存在，也没有 {}；请给出用其中之一存放 adapter 张量的文件夹"},
      {"{} is read, as PEFT does; {} beside it is left out",
       "读取 {}，与 PEFT 相同；旁边的 {} 未被读取"},
      {"{}: tensors {} and {} say the same", "{}: 张量 {} 和 {} 说的是同一个"},
      {"{}: {} neither of LoRA nor of what {} lists in modules_to_save: {}",
       "{0}: {1}既不属于 LoRA，也不属于 {2} 在 modules_to_save 中列出的内容：{3}"},
      {"a tensor is", "有一个张量"},
      {"tensors are", "有些张量"},
      {"{}: module {}: found {}, expected lora_A and lora_B, or both of an embedding",
       "{}: 模块 {}: 发现 {}，应为 lora_A 和 lora_B，或 embedding 的两者"},
      {"{}: module {}: found {}, but {} says use_dora {}",
       "{}: 模块 {}: {}，而 {} 说 use_dora 为 {}"},
      {"a lora_magnitude_vector", "有 lora_magnitude_vector"},
      {"no lora_magnitude_vector", "没有 lora_magnitude_vector"},
      {"{}: tensors {} {} and {} {} are of a convolution; only matrices are supported",
       "{}: 张量 {} {} 和 {} {} 属于卷积；只支持矩阵"},
      {"{}: tensors {} {} and {} {} do not have the same rank",
       "{}: 张量 {} {} 和 {} {} 的 rank 不同"},
      {"{}: tensor {} {}: found rank {}, expected {} as {} says",
       "{0}: 张量 {1} {2}: rank 为 {3}，{5} 说应为 {4}"},
      {"{} is missing; give the folder of an adapter, as PEFT's save_pretrained() writes it",
       "缺少 {}；请给出 PEFT 的 save_pretrained() 写出的 adapter 文件夹"},
      {"{}: {}: found {}, expected {}", "{}: {}: 发现 {}，应为 {}"},
      {"{}: {}: '{}' is a regular expression; only names of modules and their ends are "
       "supported: write one line for each module",
       "{}: {}: '{}' 是正则表达式；只支持模块的名字及其末尾部分：请每个模块写一行"},
      {"a list of names", "名字的列表"},
      {"{}: init_lora_weights {} changes the base model before training, so this adapter does "
       "not belong to the model as it is; let PEFT convert it "
       "(save_pretrained(path_initial_model_for_weight_conversion=...))",
       "{}: init_lora_weights {} 在训练之前改变基础模型，因此该 adapter 不属于现在的模型；请用 "
       "PEFT 转换它（save_pretrained(path_initial_model_for_weight_conversion=...)）"},
      {"{}: peft_type is missing; it must be LORA", "{}: 缺少 peft_type；它必须是 LORA"},
      {"{}: found peft_type {}, expected LORA (rsLoRA and DoRA are such too); let PEFT merge "
       "this one (merge_and_unload)",
       "{}: peft_type 为 {}，应为 LORA（rsLoRA 和 DoRA 也是）；请用 PEFT 合并它（"
       "merge_and_unload）"},
      {"none, all or lora_only", "none、all 或 lora_only"},
      {"{}: the key {} is not known, and it may change what the adapter means",
       "{}: 键 {} 未知，它可能改变 adapter 的含义"},
      {"{}: found {}, expected an object", "{}: 发现 {}，应为对象"},
      {"{}: {} is not supported; let PEFT merge this adapter (merge_and_unload)",
       "{}: 不支持 {}；请用 PEFT 合并该 adapter（merge_and_unload）"},
      {"{} lies beside {}", "{} 位于 {} 旁边"},
      {"this is one rank's state of a Megatron run; give the folder that holds {}",
       "这是 Megatron 训练的一个 rank 的状态；请给出含有 {} 的文件夹"},
      {"{}: {} are not tensors and are left out: {}", "{}: {} 个不是张量，不写出：{}"},
      {"{} is a torch file of weights", "{} 是 torch 的权重文件"},
      {"{}: {} keys {}: {}", "{}: {} 个键{}：{}"},
      {"are not in the files it names", "不在它所写的文件中"},
      {"of its files are not listed", "属于它的文件却没有列出"},
      {"'{}' is a dict of tensors within the state dict; save the model's own state_dict()",
       "'{}' 是 state dict 之内的张量 dict；请保存模型自己的 state_dict()"},
      {"{}: its value is not a dict of tensors", "{}: 它的值不是张量的 dict"},
      {"{}: this is one rank's state of a Megatron run; give the folder that holds the "
       "mp_rank_* folders",
       "{}: 这是 Megatron 训练的一个 rank 的状态；请给出含有 mp_rank_* 文件夹的文件夹"},
      {"{}: no tensors in its dict, nor under state_dict, model, module, model_state_dict or "
       "state.model",
       "{}: 它的 dict 中没有张量，state_dict、model、module、model_state_dict 和 state.model "
       "之下也没有"},
      {"its state dict", "它的 state dict"},
      {"tensor {}: this is a component's, and family {} has none; it is of another model",
       "张量 {}: 属于一个组件，而家族 {} 没有组件；它是另一个模型的"},
  });
  return kSentences;
}

}  // namespace shardwright
