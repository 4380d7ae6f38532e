// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <span>

#include "language/chinese_tables.h"

namespace shardwright {

std::span<const Sentence> chinese_of_deepspeed() {
  static constexpr auto kSentences = std::to_array<Sentence>({
      {"found a tensor without a name", "发现没有名字的张量"},
      {"tensor {}: found twice", "张量 {}: 出现两次"},
      {"{}: its 'module' has no parameter {}, which its 'param_shapes' and the optimizer have; "
       "copy "
       "the file again from where it was saved",
       "{}: 其 'module' 中没有参数 {}，而它的 'param_shapes' 和优化器有；请从保存处重新复制该文件"},
      {"{}: tensor {} is in this file or in {} alone; keep the files of one save",
       "{0}: 张量 {1} 只在该文件或 {2} 之一中；请只保留同一次保存的文件"},
      {"{}: found {}, expected {} as in {}; keep the files of one save",
       "{0}: 发现 {1}，应与 {3} 一样为 {2}；请只保留同一次保存的文件"},
      {"{}/{}: no 'param_shapes' lists this parameter, neither that of {} nor another one; keep "
       "the files of one save",
       "{}/{}: 没有 'param_shapes' 列出该参数，{} 的和其他的都没有；请只保留同一次保存的文件"},
      {"{}/{}: found no {}{} in it, as {} has one; copy it too",
       "{0}/{1}: 其中没有 {2}{3}，而 {4} 有；请一并复制"},
      {"{}: {} of its {} weights are not the optimizer's, rounded (the first: {}); keep the files "
       "of one save, or take the optimizer's with convert's --check-replicas none",
       "{0}: 其中 {2} 个权重有 {1} 个不是优化器权重的舍入值（第一个: "
       "{3}）；请只保留同一次保存的文件，"
       "或用 convert 的 --check-replicas none 采用优化器的权重"},
      {"parameter {}: it is shared with {}, which is not there",
       "参数 {}: 它与 {} 共享，而后者不存在"},
      {"all names begin with {}, which is taken off: a wrapper gave it",
       "所有名字都以 {} 开头，已去掉：它来自一个包装类"},
      {"its value has neither 'module' nor 'param_shapes'",
       "它的值中既没有 'module' 也没有 'param_shapes'"},
      {"'{}' shares experts out over ranks; DeepSpeed's ds_to_universal.py puts them together",
       "'{}' 把专家分给各 rank；DeepSpeed 的 ds_to_universal.py 可把它们拼起来"},
      {"its model has layers of {} experts, whose files (layer_L_expert_E_mp_rank_*) are not here; "
       "DeepSpeed's load_checkpoint reads such a run where they are",
       "它的模型有含 {} 个专家的层，而专家的文件（layer_L_expert_E_mp_rank_*）不在这里；"
       "文件齐全时可用 DeepSpeed 的 load_checkpoint 读取这样的运行"},
      {"'{}': found a key that is not text", "'{}': 发现不是文本的键"},
      {"parameter {}: its shape in '{}' is none", "参数 {}: '{}' 中它的形状无效"},
      {"parameter {}: its part in 'frozen_param_fragments' is none",
       "参数 {}: 它在 'frozen_param_fragments' 中的部分无效"},
      {"'shared_params': {} is shared with what is no name",
       "'shared_params': {} 所共享的不是名字"},
      {"its value has no 'optimizer_state_dict'", "它的值中没有 'optimizer_state_dict'"},
      {"found a zero_stage that is none of 0 to 3", "zero_stage 不是 0 到 3"},
      {"its groups are shared by {} and {} ranks, as experts are; DeepSpeed's "
       "ds_to_universal.py puts them together",
       "它的各组分别由 {} 个和 {} 个 rank 分担，像专家那样；DeepSpeed 的 ds_to_universal.py 可把"
       "它们拼起来"},
      {"no 'partition_count' says how many ranks share its groups",
       "没有 'partition_count' 说明多少个 rank 分担它的各组"},
      {"no '{}' in it: the optimizer's weights are not there, or of a version of DeepSpeed that "
       "laid them out otherwise",
       "其中没有 '{}'：优化器的权重不在，或属于另一种布局的 DeepSpeed 版本"},
      {"its groups", "它的各组"},
      {"'group_paddings': that of group {} is none", "'group_paddings': 组 {} 的填充无效"},
      {"its states", "它的状态"},
      {"found step {} in one group and {} in another", "一个组的 step 为 {}，另一个组的为 {}"},
      {"its paddings", "它的填充"},
      {"its fragments", "它的片段"},
      {"parameter {}: its place in 'param_slice_mappings' is none",
       "参数 {}: 它在 'param_slice_mappings' 中的位置无效"},
      {"{}: tensor {}: found {} {}, but {} has {} {}; these files are of two saves",
       "{}: 张量 {}: 发现 {} {}，而 {} 中为 {} {}；这些文件来自两次保存"},
      {"{}: found no tensor {}, which {} has; these files are of two saves",
       "{}: 没有张量 {}，而 {} 中有；这些文件来自两次保存"},
      {"{}: tensor {} {}: its width is not that of {}, which is {}; these files are of two saves",
       "{}: 张量 {} {}: 它的宽度与 {} 的宽度 {} 不同；这些文件来自两次保存"},
      {"{}: found iteration {}, but {} is of iteration {}", "{}: 发现迭代 {}，而 {} 属于迭代 {}"},
      {"layer {}: found files of {} tensor-parallel ranks, expected {} as of others; copy the "
       "missing ones too",
       "层 {}: 有 {} 个张量并行 rank 的文件，应与其他层一样为 {} 个；请把缺少的也拷贝过来"},
      {"no {} tells the run's arguments: sizes follow from tensors alone",
       "没有 {} 说明训练参数：大小只由张量得出"},
      {"{}: the run had {} tensor-parallel ranks, but layers have files of {}; copy the missing "
       "ones too",
       "{}: 训练有 {} 个张量并行 rank，而各层只有 {} 个的文件；请把缺少的也拷贝过来"},
      {"the optimizer's state is left out: of such runs only the weights are read; DeepSpeed's "
       "ds_to_universal.py makes a universal checkpoint of it",
       "优化器状态不写出：这样的训练只读取权重；DeepSpeed 的 ds_to_universal.py 可生成 "
       "universal 检查点"},
      {"{}: tensor {} is of no layer that such a model has; only GPT-like models of "
       "Megatron-DeepSpeed are read this way",
       "{}: 张量 {} 不属于这种模型的任何层；只有 Megatron-DeepSpeed 的类 GPT 模型能这样读取"},
      {"{}: tensor {}: the run had gpt_j_residual, so the bias is the sum of what {} "
       "tensor-parallel ranks have, and no rule adds them up; GPT-NeoX's "
       "tools/ckpts/convert_neox_to_hf.py does, and its model is read",
       "{}: 张量 {}: 训练使用了 gpt_j_residual，因此该 bias 是 {} 个张量并行 rank 各自的值之和，"
       "而没有规则把它们相加；GPT-NeoX 的 tools/ckpts/convert_neox_to_hf.py 会相加，其模型可读"},
      {"{}: tensor {}: nothing says whether this run of GPT-NeoX had gpt_j_residual, with which "
       "the bias is the sum of what {} tensor-parallel ranks have; copy the run's configuration "
       "into {}/configs",
       "{}: 张量 {}: 没有说明该 GPT-NeoX 训练是否使用了 gpt_j_residual；若使用，该 bias 是 {} 个"
       "张量并行 rank 各自的值之和；请把训练的配置复制到 {}/configs"},
      {"{}: tensor {}: no rule says what Megatron-Core calls it; only GPT-like models of "
       "Megatron-DeepSpeed and GPT-NeoX are read this way",
       "{}: 张量 {}: 没有规则说明 Megatron-Core 如何称呼它；只有 Megatron-DeepSpeed 和 GPT-NeoX "
       "的类 "
       "GPT 模型能这样读取"},
      {"{}: tensor {}: with num_kv_heads GPT-NeoX has queries, keys and values one behind another, "
       "and no rule puts them in Megatron's order; GPT-NeoX's tools/ckpts/convert_neox_to_hf.py "
       "does, and its model is read",
       "{}: 张量 {}: 使用 num_kv_heads 时，GPT-NeoX 依次存放全部查询、键和值，而没有规则把它们排成 "
       "Megatron 的顺序；GPT-NeoX 的 tools/ckpts/convert_neox_to_hf.py 可以，其模型可读"},
      {"{}; its settings are taken for unknown", "{}；其中的设置视为未知"},
      {"Megatron-Core has no argument for these settings of GPT-NeoX: {}",
       "Megatron-Core 没有与 GPT-NeoX 的这些设置对应的参数：{}"},
      {"{}: found no file of layer {} between it and layer {}; copy it too",
       "{0}: 它与层 {2} 之间缺少层 {1} 的文件；请把它也拷贝过来"},
      {"found the layers' files {} behind the embedding's and the final norm's {} behind theirs, "
       "as if "
       "the first or the last layer's were missing; copy it too, or mp_rank_00_model_states.pt, "
       "whose "
       "arguments say how many there are",
       "层文件的编号比 embedding 大 {}，而最终 norm 的编号比层大 "
       "{}，好像缺少第一层或最后一层的文件；请"
       "把它也复制过来，或复制 mp_rank_00_model_states.pt，其中的参数说明共有多少层"},
      {"found files of {} transformer layers, expected {} as the run had; copy the missing ones "
       "too",
       "有 {} 个 transformer 层的文件，训练时应为 {} 层；请把缺少的也拷贝过来"},
      {"{}: found a key that is not text", "{}: 发现不是文本的键"},
      {"{}: found no tensor, expected a flat buffer", "{}: 没有张量，应为扁平缓冲区"},
      {"{}: found shape {}, expected one axis without gaps", "{}: 形状为 {}，应为没有间隙的一个轴"},
      {"{}: found {} {}, expected {} as in {}; keep the files of one save",
       "{0}: {1} {2}，应与 {4} 一样为 {3}；请只保留同一次保存的文件"},
      {"{}: the frozen parameter {} has no part in it", "{}: 其中没有冻结参数 {} 的部分"},
      {"parameter {}: found shape {}, expected {}", "参数 {}: 形状为 {}，应为 {}"},
      {"{}: the part of the frozen parameter {} is no flat {} one",
       "{}: 冻结参数 {} 的部分不是扁平的 {}"},
      {"global step", "全局步数为"},
      {"a world size of", "world size 为"},
      {"{}: its parameters are not those of {}; keep the files of one save",
       "{}: 它的参数与 {} 的不同；请只保留同一次保存的文件"},
      {"is a file of DeepSpeed", "是 DeepSpeed 的文件"},
      {"has a folder for each parameter", "为每个参数建有文件夹"},
      {"is a layer's file of DeepSpeed", "是 DeepSpeed 的层文件"},
      {"parameter {}: found no {}/{}/{}{}; copy it too",
       "参数 {}: 缺少 {}/{}/{}{}；请把它也拷贝过来"},
      {"found a folder '{}' without *_model_states.pt, which has the parameters' names and "
       "shapes; copy it too",
       "有文件夹 '{}'，但没有含参数名和形状的 *_model_states.pt；请把它也拷贝过来"},
      {"found {} and no such file of rank {}; copy it too",
       "有 {}，但没有 rank {} 的同类文件；请把它也拷贝过来"},
      {"{}: found no {}{} in it; copy it too", "{}: 其中缺少 {}{}；请把它也拷贝过来"},
      {"{}: found neither a tensor nor one under 'param'",
       "{}: 既不是张量，'param' 之下也没有张量"},
      {"{}: found shape {}, expected {} of the parameter {}",
       "{0}: 形状为 {1}，应为参数 {3} 的 {2}"},
      {"parameter {}: the model has it, but it has no folder in {}",
       "参数 {}: 模型中有它，但 {} 中没有它的文件夹"},
      {"{} tensors that were not trained are left out: nothing says how model-parallel ranks cut "
       "them: {}",
       "{} 个未训练的张量不写出：没有说明各模型并行 rank 如何切分它们：{}"},
      {"found both {} and {}, of one rank; keep the files of one save",
       "{} 和 {} 都在，却属于同一个 rank；请只保留同一次保存的文件"},
      {"found {} without mp_rank_{:02}_model_states.pt, which has the parameters' names and "
       "shapes; copy it too",
       "有 {}，但没有含参数名和形状的 mp_rank_{:02}_model_states.pt；请把它也拷贝过来"},
      {"found no mp_rank_00_model_states.pt; copy it too",
       "没有 mp_rank_00_model_states.pt；请把它也拷贝过来"},
      {"{}: it was saved by {} pipeline stages, but files of {} are here; copy those of the others "
       "too, or keep the files of one save",
       "{}: 它由 {} 个流水线 stage 保存，但这里只有 {} 个 stage 的文件；请把其他 stage "
       "的也拷贝过来，"
       "或只保留同一次保存的文件"},
      {"found both {} and {}, of one layer; keep the files of one save",
       "同时有 {} 和 {}，属于同一层；请只保留同一次保存的文件"},
      {"{}: it names parameters without their shapes, and the optimizer's state is left out",
       "{}: 它列出参数但没有形状，优化器状态不写出"},
      {"found no layer_{:02}-model_states.pt, whose {} the run lists; copy it too",
       "没有 layer_{:02}-model_states.pt，而训练列出了其中的 {}；请把它也拷贝过来"},
      {"no layer_NN-model_states.pt has NN = {}: these layers are taken for functions, which have "
       "no "
       "parameters",
       "没有 NN = {} 的 layer_NN-model_states.pt：这些层视为没有参数的函数"},
      {"parameter {}: the optimizer has it, and no layer_NN-model_states.pt does; copy that file "
       "too",
       "参数 {}: 优化器中有它，但没有哪个 layer_NN-model_states.pt 含有它；请把那个文件也拷贝过来"},
      {"{}: pipeline stages that share it have a copy each, and the first one's is taken",
       "{}: 共享它的各流水线 stage 各有一份，取第一个 stage 的"},
      {"{}: one of it and {} has 'param_shapes', and the other has none; keep the files of one "
       "save",
       "{}: 它和 {} 之中，一个有 'param_shapes'，另一个没有；请只保留同一次保存的文件"},
      {"the run was a pipeline, of which a universal checkpoint has what was trained only: "
       "parameters that were frozen, and buffers, are in the run's own layer files",
       "该训练使用流水线，其 universal 检查点只含训练过的参数：冻结的参数和 buffer "
       "在训练自身的层文件里"},
      {"no model", "没有模型"},
      {"{}: it is of {} model-parallel ranks, and no rule says how these tensors are cut; "
       "DeepSpeed's ds_to_universal.py puts them together where the run recorded it, and its "
       "universal checkpoint is read",
       "{}: 它属于 {} 个模型并行 rank，没有规则说明这些张量如何切分；若训练记录了切分，"
       "DeepSpeed 的 ds_to_universal.py 可把它们拼起来，其 universal 检查点可以读取"},
      {"{}: its parameters are in *_optim_states.pt files, and none is there; copy them too",
       "{}: 它的参数在 *_optim_states.pt 文件中，而这里一个也没有；请把它们也拷贝过来"},
      {"ZeRO stage", "ZeRO 的 stage"},
      {"shares of", "分担的"},
      {"{} repeat what tied_modules holds, and are left out",
       "{} 与 tied_modules 中的内容重复，不写出"},
      {"{}: it was saved by {} model-parallel ranks, but files of {} are here; copy those of the "
       "others too",
       "{}: 它由 {} 个模型并行 rank 保存，但这里只有 {} 个 rank 的文件；请把其他 rank "
       "的也复制过来"},
      {"{}: it was saved by {} ranks, but files of {} are here; {}",
       "{}: 它由 {} 个 rank 保存，而这里有 {} 个 rank 的文件；{}"},
      {"copy that of rank {} and further ones too", "请把 rank {} 及之后的也拷贝过来"},
      {"keep the files of one save", "请只保留同一次保存的文件"},
      {"found {} *_model_states.pt files, expected {} beside {}",
       "发现 {0} 个 *_model_states.pt 文件，{2} 旁边应有 {1} 个"},
      {"{}: no 'param_shapes' names the parameters of {}",
       "{}: 没有 'param_shapes' 说明 {} 的参数名"},
      {"{}: its groups or their states are not those of {}; keep the files of one save",
       "{}: 它的各组或其状态与 {} 的不同；请只保留同一次保存的文件"},
      {"{}: 'param_alignment_paddings' are not those of its parameters",
       "{}: 'param_alignment_paddings' 与它的参数不符"},
      {"of group {}", "组 {} 的"},
      {"{}: parameter {} is not where 'param_shapes' of {} has it in group {}; keep the files "
       "of one save",
       "{0}: 参数 {1} 不在 {2} 的 'param_shapes' 所说的组 {3} 的位置；请只保留同一次保存的文件"},
      {"parameter {}: the model has it, but no rank's buffers do; it was frozen and left out "
       "when this was saved, or 'param_shapes' is of another model",
       "参数 {}: 模型中有它，但任何 rank 的缓冲区中都没有；保存时它被冻结而未写出，或 "
       "'param_shapes' 属于另一个模型"},
      {"{} tensors are not the optimizer's and are taken as the model has them: {}",
       "{} 个张量不属于优化器，取模型中的值：{}"},
      {"{} entries are not tensors and are left out: {}", "{} 个条目不是张量，不写出：{}"},
      {"{}: two tensors of it would be {}; only GPT-like models of Megatron-DeepSpeed are read "
       "this "
       "way",
       "{}: 其中有两个张量都会成为 {}；只有 Megatron-DeepSpeed 的类 GPT 模型能这样读取"},
      {"{}: found {}, which {} has too; these files are of two saves",
       "{}: 其中有 {}，而 {} 中也有；这些文件来自两次保存"},
      {"found no layer_NN-model_TT file with {}; copy it too",
       "没有含{}的 layer_NN-model_TT 文件；请把它也拷贝过来"},
      {"a transformer layer", "transformer 层"},
      {"the embedding", "词嵌入"},
      {"the final norm", "最后的归一化层"},
      {"the output layer", "输出层"},
      {"no file has an output layer, and no arguments say whether the run had one: the embedding "
       "is taken for it",
       "没有文件含输出层，也没有参数说明训练时是否有它：以词嵌入作为输出层"},
      {"{}: group {} has no {} of its piece of parameter {}, as other groups have; keep the files "
       "of one save",
       "{0}: 组 {1} 中参数 {3} 的那一段没有 {2}，而其他组有；请只保留同一次保存的文件"},
      {"{}: group {} has no {}, as group {} has; keep the files of one save",
       "{}: 组 {} 没有 {}，而组 {} 有；请只保留同一次保存的文件"},
      {"states of the optimizer that are not like its weights are left out: {}",
       "优化器中与其权重不同形的状态不写出：{}"},
  });
  return kSentences;
}

}  // namespace shardwright
