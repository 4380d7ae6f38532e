// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <span>

#include "language/chinese_tables.h"

namespace shardwright {

std::span<const Sentence> chinese_of_canonical() {
  static constexpr auto kSentences = std::to_array<Sentence>({
      {"run_config.yaml says that gates of experts lie in blocks (moe_mlp_glu_interleave_size): "
       "weights are read without them, as Megatron-Bridge loads them. It may have left them in "
       "blocks where it saved a torch_dist of a model in memory, which nothing here shows: see "
       "that "
       "the new model computes what the run's does",
       "run_config.yaml 表明专家的门控按块存放（moe_mlp_glu_interleave_size）：读取权重时不按块，"
       "与 Megatron-Bridge 加载时一样。若它把内存中的模型保存为 "
       "torch_dist，权重可能仍按块存放，而这里"
       "没有任何信息能说明这一点：请检查新模型的计算结果与原训练模型一致"},
      {"{}: tensor {}: a head that was trained with the adapter, and the base model has none; save "
       "the base with such a head (AutoModelForSequenceClassification or "
       "AutoModelForTokenClassification of transformers) and give that folder",
       "{}: 张量 {}：与适配器一起训练的 head，而基础模型没有；请先把带有这种 head "
       "的基础模型保存下来（transformers "
       "的 AutoModelForSequenceClassification 或 "
       "AutoModelForTokenClassification），再给出那个目录"},
      {"names are taken without what FSDP and torch.compile put into them: {}",
       "读取名字时去掉 FSDP 和 torch.compile 加入的部分：{}"},
      {"{}: tensor {}: the base model has no tensor {}{}; is this the adapter of another model?",
       "{}: 张量 {}: 基础模型没有张量 {}{}；这是另一个模型的 adapter 吗？"},
      {" (the adapter was made for {})", "（该 adapter 是为 {} 制作的）"},
      {"{}: tensor {} {} does not fit the base model's {} {}{}",
       "{}: 张量 {} {} 与基础模型的 {} {} 不相配{}"},
      {", or give this part of the model a size of its own (--to legacy --encoder-tp, --to mimo "
       "--component)",
       "，或单独指定模型这一部分的大小（--to legacy --encoder-tp，--to mimo --component）"},
      {"tensor {}: {} tensor parallel ranks cannot share its {} attention heads, because each "
       "of Megatron's has whole heads; choose a --tp that divides them{}",
       "张量 {}: {} 个张量并行 rank 无法平分它的 {} 个注意力头，因为 Megatron 的每个 rank 持有完"
       "整的头；请选择能整除它的 --tp{}"},
      {"config.json: found architecture {}, expected {}; list it in the file's architectures",
       "config.json: 发现架构 {}，应为 {}；请把它列入该文件的 architectures"},
      {" or ", " 或 "},
      {"{}: an abstract family fits no model; give one that extends it",
       "{}: 抽象家族不适用于任何模型；请给出一个扩展它的家族"},
      {"tensor {}: found {} in {}, expected {} everywhere: this family has no Hugging Face "
       "tensor that could hold it",
       "张量 {0}: 在 {2} 中发现 {1}，应处处为 {3}：该家族没有能存放它的 Hugging Face 张量"},
      {"; and {} more", "；另有 {} 项"},
      {"{}: {} contradicts the tensors: {}; {}", "{}: {}与张量矛盾：{}；{}"},
      {"the run's arguments are not held against the tensors: ", "训练参数没有与张量核对："},
      {"what the run's arguments say", "训练参数所说的"},
      {"the run's arguments repeat it; correct it, or give the true one with --hf-config",
       "训练参数会重复它；请改正，或用 --hf-config 给出真实的 config.json"},
      {"run_config.yaml goes along with it; correct it", "run_config.yaml 会随之写出；请改正它"},
      {"the target repeats it; with the model's true config.json (--hf-config) they are written "
       "from that",
       "目标会照样写出；若用 --hf-config 给出模型真正的 config.json，则按它来写"},
      {"the config.json in {} does not agree with them either", "{} 中的 config.json 也与它们不符"},
      {"{}, {} in all; {} arguments are written from config.json",
       "{}，共 {} 处；{} 个训练参数改为按 config.json 写出"},
      {"what config.json says", "config.json 所说的"},
      {"Megatron's arguments would repeat it; correct config.json, or give the true one "
       "(--hf-config)",
       "Megatron 的参数会照样写出；请改正 config.json，或给出真正的那一份（--hf-config）"},
      {"{} differs from {} and is kept as hf_extra", "{} 与 {} 不同，作为 hf_extra 保留"},
      {"{} is taken for {}: the model is tied, and the files have the one in place of the other",
       "把 {} 当作 {}：模型是 tied 的，文件中只存了前者"},
      {"config.json says by tie_word_embeddings that {} is {}, and it is not: transformers 5 "
       "computes with the head that is stored, other loaders leave it out and compute with the "
       "embedding; say false there, or take the head out",
       "config.json 的 tie_word_embeddings 说 {} 就是 {}，实际并不相同：transformers 5 用文件中的 "
       "head 计算，其他加载程序则不用它而用 embedding；请在那里写 false，或去掉 head"},
      {"config.json says that {} is {}, and it is not: Megatron's model computes with the "
       "embedding, transformers 5 with the head that is stored; with tie_word_embeddings false in "
       "config.json the head is converted too",
       "config.json 说 {} 就是 {}，实际并不相同：Megatron 的模型用 embedding 计算，transformers 5 "
       "则用文件中的 head；在 config.json 中把 tie_word_embeddings 设为 false，head 也会一并转换"},
      {"{} repeats {} bit by bit and is not stored twice", "{} 与 {} 逐位相同，不再存第二份"},
      {"{} is ignored: Megatron computes it", "忽略 {}：Megatron 会自行计算"},
      {"config.json: found architecture {}, expected that of a language model: the checkpoint "
       "has no head for rewards, values or classes; --hf-config gives the language model's",
       "config.json: 发现架构 {}，应为语言模型的架构：该检查点没有奖励、价值或分类的 head；请用 "
       "--hf-config 给出语言模型的配置"},
      {"{} and {} more {}", "{} 以及另外 {} 个：{}"},
      {"{} tensors have no place in Megatron and are kept as hf_extra",
       "{} 个张量在 Megatron 中没有位置，作为 hf_extra 保留"},
      {"{} not in the checkpoint, which had no place for what only Hugging Face stores",
       "{}不在该检查点中，它没有地方存放只有 Hugging Face 才有的内容"},
      {"{} rounded to {}, the dtype that {} imported in", "{} 舍入为 {}，即{}导入时的 dtype"},
      {"it was", "它"},
      {"they were", "它们"},
      {"dequantised {} tensor{}: {} to {}", "已反量化 {0} 个张量：{2} 转为 {3}"},
      {"{} biases that writers of gptq files add are zero and left out: {}",
       "gptq 文件的写出工具添加的 {} 个偏置全为零，不写出: {}"},
      {"scales of activations and caches are ignored, the weights do not need them: {}",
       "激活和缓存的 scale 被忽略，权重不需要它们：{}"},
      {"(no file)", "（没有文件）"},
      {"{}: tensor {} {}; save the model as safetensors first",
       "{}: 张量 {} {}；请先把模型保存为 safetensors"},
      {"is not stored as plain whole numbers in one piece", "不是以整块的普通整数存储的"},
      {"has more elements than a matrix has columns", "的元素多于一个矩阵的列数"},
      {"is packed and not stored in one piece", "是打包存储的，而且不是整块"},
      {"tensor {}: the weights of output {} have the length {}, which DoRA cannot scale",
       "张量 {}: 输出 {} 的权重长度为 {}，DoRA 无法对其缩放"},
      {"{}: Megatron keeps it {:+g}, which rounds in {}: the way back is off by up to {}; the "
       "exact values are kept as hf_extra",
       "{}: Megatron 存的是 {:+g}，在 {} 中会舍入：往返误差最多为 {}；精确值作为 hf_extra 保留"},
      {"{} is missing", "缺少 {}"},
      {"{}: {} {:+g} is rounded to {} by up to {}{}", "{}: {} {:+g} 舍入为 {}，误差最多 {}{}"},
      {"; the values kept as hf_extra are those of before it was trained",
       "；作为 hf_extra 保留的是训练之前的值"},
      {"--map {}: two files have this name; rename one",
       "--map {}: 有两个文件叫这个名字；请给其中一个改名"},
      {"{}: found a {} checkpoint, expected a Hugging Face model with its config.json",
       "{}: 发现 {} 检查点，应为带 config.json 的 Hugging Face 模型"},
      {"names lack '{}', which is put before them", "名称缺少 '{}'，已补在前面"},
      {"a whole {} model lies under each of '{}' and '{}'; convert takes one of them by --include "
       "'{}*'",
       "'{1}' 和 '{2}' 之下各有一个完整的 {0} 模型；convert 用 --include '{3}*' 选取其中一个"},
      {"names are taken without '{}', which stands before them", "取名字时去掉了前面的 '{}'"},
      {"; names are taken for those of {} ({})", "；名称被视为 {} 的名称（{}）"},
      {"names are those of {} ({}) and become Hugging Face's{}",
       "名字属于 {}（{}），将改为 Hugging Face 的名字{}"},
      {"; rows of q and k are put in Hugging Face's order",
       "；q 和 k 的行按 Hugging Face 的顺序排列"},
      {"{} tensors beside the model's are left out: {}", "模型之外的 {} 个张量不写出：{}"},
      {"{} tensors that are no parameters are left out: {}", "{} 个不是参数的张量不写出：{}"},
      {"tensor {}: found no such name among those of MLite's models of {} ({}); --to dcp and "
       "--to safetensors keep any",
       "张量 {}: 在 MLite 的 {} 模型（{}）的名字中没有这个名字；--to dcp 和 --to safetensors 可"
       "保留任何名字"},
      {" and ", " 和 "},
      {"tensor {}: found a part of {} rows (as gate or up), expected a multiple of the {} tensor "
       "ranks that share it out",
       "张量 {}: 其中一部分（如 gate 或 up）有 {} 行，应为分担它的 {} 个张量 rank 的倍数"},
      {"tensors {} and {}: both are expert {} of {}", "张量 {0} 和 {1}: 两者都是 {3} 的专家 {2}"},
      {"tensor {}: found {}, expected rows {} by config.json",
       "张量 {}: 发现 {}，按 config.json 行数应为 {}"},
      {"tensor {}: found {} experts, expected all from 0 to {}",
       "张量 {}: 发现 {} 个专家，应为从 0 到 {} 的全部专家"},
      {"tensor {}: no parameter beside it has its name and its pieces, so its place in the model "
       "is "
       "not known; convert without states (--optimizer drop)",
       "张量 {}: 旁边没有名称和切分都与它相同的参数，因此不知道它在模型中的位置；请不带状态转换"
       "（--optimizer drop）"},
      {"tensor {}: found {}, expected rows and columns", "张量 {}: 发现 {}，应有行和列"},
      {"tensor {}: found {} {}, expected {} {} as of expert 0",
       "张量 {}: 发现 {} {}，应与专家 0 一样为 {} {}"},
      {"{}: config.json is of the family {}, whose names in MLite are not known; there are "
       "those of {}; --to dcp and --to safetensors keep any",
       "{}: config.json 属于家族 {}，它在 MLite 中的名字未知；已知的有 {}；--to dcp 和 --to "
       "safetensors 可保留任何名字"},
      {"{}: the routers' buffers (expert_bias, tid2eid) are missing: MLite neither saves nor "
       "trains them; give the model that the run began with, weights included, as --hf-config",
       "{}: 缺少 router 的 buffer（expert_bias、tid2eid）：MLite 既不保存也不训练它们；请用 "
       "--hf-config 给出训练开始时的模型（含权重）"},
      {"{} buffers that MLite does not save, {} the first, are those of {}",
       "MLite 不保存的 {} 个 buffer（第一个是 {}）取自 {}"},
      {"{}: MLite saves no config.json, without which its names are not converted; give the "
       "model's folder with --hf-config, or keep them with --to dcp or safetensors",
       "{}: MLite 不保存 config.json，没有它就无法转换名字；请用 --hf-config 给出模型的文件夹，"
       "或用 --to dcp、--to safetensors 保留原名"},
      {"they list states without names", "它们列出的状态没有名字"},
      {"names are those of MLite ({}) and become Megatron's",
       "名字属于 MLite（{}），将改为 Megatron 的名字"},
      {"config.json would repeat it; give the true one with --hf-config",
       "config.json 会照样写出；请用 --hf-config 给出真正的那一份"},
      {"{}, {} in all; config.json is used instead", "{}，共 {} 处；改用 config.json"},
      {"family {} is inferred from {} tensors and the training arguments{}; --family names "
       "another, --hf-config settles it",
       "家族 {} 由 {} 个张量和训练参数{}推断得出；可用 --family 指定其他家族，--hf-config 可以确"
       "定它"},
      {"{} has no config.json; give a folder that has it with --hf-config",
       "{} 中没有 config.json；请用 --hf-config 给出含有它的文件夹"},
      {"what no argument says outside {} (activations, windows, epsilons of towers) is left to the "
       "model's class: --hf-config gives the model's own",
       "{} 之外、参数没有说明的设置（各塔的激活函数、窗口、epsilon）取模型类的默认值：用 "
       "--hf-config 给出模型"
       "自己的"},
      {"no tensor is the output layer, as in a model that gives embeddings: {} is taken for it",
       "没有张量是输出层，如同给出嵌入的模型：以 {} 作为输出层"},
      {"config.json is written from the training arguments", "config.json 根据训练参数写出"},
      {"config.json: {} is guessed", "config.json: {} 是猜测的"},
      {"{}: config.json says a vocabulary of {} rows, and the training arguments {}, the rest of "
       "which would be lost; give the model's own config.json (--hf-config)",
       "{}: config.json 说词表有 {} 行，而训练参数说有 {} 行，其余的行会丢失；请给出该模型自己的 "
       "config.json（--hf-config）"},
      {"{}: the training arguments say otherwise than config.json, by which rows would be those of "
       "other heads: {}; give the model's own config.json (--hf-config)",
       "{}: 训练参数与 config.json 所说的不一致，按后者各行会属于别的头：{}；请给出该模型自己的 "
       "config.json（--hf-config）"},
      {"config.json is not held against the training arguments: ",
       "config.json 未与训练参数核对："},
      {"the training arguments say otherwise than config.json, which conversions to Hugging Face "
       "use: {}",
       "训练参数与 config.json 所说的不一致，而转换为 Hugging Face 时使用 config.json：{}"},
      {"placements: there are no rules for family {}; there are for {}{}",
       "placements: 没有家族 {} 的规则；有的是 {}{}"},
      {"; did you mean {}?", "；您是不是要找 {}？"},
      {"{} tensors of prediction layers are dropped (--mtp keep keeps them): {}",
       "预测层的 {} 个张量被丢弃（--mtp keep 可保留）：{}"},
      {"--mtp from={}: found a {}, expected a {} as the source is",
       "--mtp from={}: 发现 {}，应与源一样为 {}"},
      {"--mtp from={}: found {} {}, expected {} as in the source; the layers of another model "
       "don't fit",
       "--mtp from={}: 发现 {} {}，应与源一样为 {}；另一个模型的层不相配"},
      {"--mtp from={} needs Hugging Face names on one side; this conversion reads and writes "
       "those of {}",
       "--mtp from={} 要求有一侧使用 Hugging Face 的名字；这次转换读写的是 {} 的名字"},
      {"the source", "源"},
      {"--mtp from={}: the source has prediction layers of its own (tensor {}); --mtp keep "
       "takes those",
       "--mtp from={}: 源自己就有预测层（张量 {}）；--mtp keep 会使用它们"},
      {"--mtp from={}: that model has no prediction layers", "--mtp from={}: 该模型没有预测层"},
      {"--mtp from={}: tensor {} is quantised; multiply the model out first (--to hf --dtype "
       "bfloat16)",
       "--mtp from={}: 张量 {} 是量化的；请先反量化该模型（--to hf --dtype bfloat16）"},
      {"{} tensors of prediction layers are taken from {}: {}", "预测层的 {} 个张量取自 {}：{}"},
      {"tensor {}: found {} inputs, expected a multiple of {}: fp4 has an exponent for so many",
       "张量 {}: 发现 {} 个输入，应为 {} 的倍数：fp4 每这么多个值共用一个指数"},
      {"fp8 e4m3 with {} of {} x {}", "fp8 e4m3，{}，块为 {} x {}"},
      {"a power of two for each block", "每块一个 2 的幂"},
      {"a scale for each block", "每块一个 scale"},
      {"tensor {}: is there, and would be the scales of {}",
       "张量 {}: 已经存在，而它会是 {} 的 scale"},
      {"--quantise: found no linear of a layer to quantise among {} tensors; leave the flag "
       "out, or check what --include takes",
       "--quantise: 在 {} 个张量中没有发现可以量化的层内线性权重；请去掉该参数，或检查 "
       "--include 选取了什么"},
      {"quantised {} tensors to {}", "已把 {} 个张量量化为 {}"},
      {"{} tensors are quantised so already and copied", "{} 个张量已经这样量化，直接复制"},
      {"tensors {} and {}: both are the model's {}", "张量 {} 和 {}: 两者都是模型的 {}"},
      {"tensor {}: found no axes, expected one for each {}",
       "张量 {}: 没有轴，应为每个 {} 有一个轴"},
      {"tensor {}: {} would be more than {} tensors", "张量 {}: {} 会拆成超过 {} 个张量"},
      {"tensor {}: found {}, expected rows of whole heads of {}",
       "张量 {}: 发现 {}，行数应为每个 {} 行的完整的头"},
      {"tensor {}: nothing has the rows that it repeats", "张量 {}: 没有任何张量含有它所重复的行"},
      {"tensor {}{}: found rows that differ from those that they repeat; the model has them once",
       "张量 {}{}: 发现的行与其所重复的行不同；模型中只有一份"},
      {"{}; --accept-loss writes the first of them and drops what training changed in the others",
       "{}；--accept-loss 写出其中第一份，并丢弃训练对其他各份的改动"},
      {": the first of them are written", "：写出其中第一份"},
      {"they are in flat buffers of a MIMO model's components",
       "它们位于 MIMO 模型各组件的扁平缓冲区中"},
      {"tensor {}: found {} of a {} weight in one piece, expected whole rows that can be those "
       "of {}",
       "张量 {0}: 权重 {2} 的一块是 {1}，应为可以归入 {3} 的完整的行"},
      {"{}: the model's config.json is missing; put it beside the weights",
       "{}: 缺少模型的 config.json；请把它放在权重旁边"},
  });
  return kSentences;
}

}  // namespace shardwright
