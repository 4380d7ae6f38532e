// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <span>

#include "language/chinese_tables.h"

namespace shardwright {

std::span<const Sentence> chinese_of_format() {
  static constexpr auto kSentences = std::to_array<Sentence>({
      {"{} is empty: what it said of the run is lost", "{} 为空：它所记录的运行信息已丢失"},
      {"{} values of ModelOpt's quantizers are left out ({} is the first): the weights stay as "
       "they "
       "are, and whoever quantises them calibrates anew",
       "ModelOpt 量化器的 {} 个值不写出（第一个是 {}）：权重保持原样，再量化时须重新校准"},
      {"{}: the weights beside it were divided by it, and are no model's without it; let ModelOpt "
       "export them, or convert the checkpoint that it quantised",
       "{}: 旁边的权重已除以它，没有它就不是模型的权重；请让 ModelOpt "
       "导出，或转换量化之前的检查点"},
      {"tensor {}: it is stored under another name too", "张量 {}: 它还以另一个名称存储"},
      {"{} says which modules ModelOpt has changed, and is left out: without it a run takes the "
       "model "
       "for an ordinary one",
       "{} 记录 ModelOpt 改动了哪些模块，未被读取：没有它，训练会把该模型当作普通模型"},
      {"{}: states of data loaders are left out; copy them where the ranks stay the same",
       "{}: 不写出数据加载器的状态；rank 不变时请复制它们"},
      {"{} is an adapter, and is left out; 'shardwright merge-adapter' merges one into its base",
       "{} 是适配器，未被读取；用 'shardwright merge-adapter' 把它合并进基座模型"},
      {"{} beside {} holds the optimizer, which is left out: it is a checkpoint of its own",
       "{1} 旁的 {0} 存有优化器，未被读取：它是一个单独的 checkpoint"},
      {"{} holds the head of a reward or value model, and is left out; saved as "
       "value_head.safetensors it goes along",
       "{} 是奖励或价值模型的 head，不在其中；另存为 value_head.safetensors 即可一并转换"},
      {"{}: the optimizer's states number parameters as only the run knows, and are left out",
       "{}：优化器状态中参数的编号只有那次训练知道，未被读取"},
      {"not there: {}; a rank writes no file for tensors that it has no part of, and if it had "
       "one, "
       "parts of tensors are lost",
       "不存在：{}；某个 rank 若没有这些张量的任何部分就不会写文件，否则张量的部分内容已丢失"},
      {"{} files hold parts of tensors, and nothing in them says where the tensors end: a loss of "
       "the "
       "last parts is noticed only where a config.json tells the shapes",
       "{} 个文件保存张量的部分内容，其中没有信息说明张量在哪里结束：只有 config.json "
       "给出形状时才能发现末尾部分的"
       "丢失"},
      {"found {} beside flat buffers, expected all states in these: nothing tells which parameters "
       "they hold where a second optimizer (Muon's, layer by layer) has the others; save the run "
       "with --dist-ckpt-optim-fully-reshardable, whose states have names",
       "在扁平缓冲区之外发现 {}，应全部状态都在其中：另有一个优化器（按层的 "
       "Muon）持有其余参数时，没有"
       "信息说明缓冲区中是哪些参数；请用 --dist-ckpt-optim-fully-reshardable "
       "保存训练，其状态带有名字"},
      {"{}: tensor {} is missing, which {}, the file of another tensor rank, has; keep the files "
       "of "
       "one save",
       "{}: 缺少张量 {}，而另一个张量 rank 的文件 {} 中有；请只用同一次保存的文件"},
      {"{}: the buffer {} is missing, which {} has; keep the files of one save",
       "{}: 缺少 buffer {}，而 {} 中有；请只用同一次保存的文件"},
      {"these {} tensors are an adapter in PEFT's files, not a model: 'shardwright "
       "merge-adapter BASE ADAPTER OUT' adds it to its base model, 'convert --to torch_dist "
       "--hf-config BASE' makes it one that Megatron trains on",
       "这 {} 个张量是 PEFT 文件中的 adapter，不是模型：'shardwright merge-adapter BASE ADAPTER "
       "OUT' 把它加到基础模型上，'convert --to torch_dist --hf-config BASE' 使它成为 Megatron 可"
       "以训练的 adapter"},
      {"{} of {} tensors are low-rank adapters of a Megatron run{}{}: 'shardwright convert --to "
       "hf --hf-config BASE' makes PEFT's files of them, which 'merge-adapter' adds to the base "
       "model",
       "{1} 个张量中有 {0} 个是 Megatron 训练的低秩 adapter{2}{3}：'shardwright convert --to hf "
       "--hf-config BASE' 把它们写成 PEFT 的文件，再由 'merge-adapter' 加到基础模型上"},
      {", without their base model", "，没有基础模型"},
      {" (layers {} have none)", "（第 {} 层没有）"},
      {"what its name says", "它的名字所说的"},
      {"config.json: quantization_config is what {} says",
       "config.json: quantization_config 取自 {}"},
      {"config.json: quantization_config says how weights are stored now",
       "config.json: quantization_config 说明现在权重如何存储"},
      {"config.json: {}{} becomes {}", "config.json: {}{} 变为 {}"},
      {"config.json: {} becomes {}", "config.json: {} 变为 {}"},
      {"config.json: architecture {} becomes {}: {} is no language model's head",
       "config.json: 架构 {} 变为 {}：{} 不是语言模型的 head"},
      {"config.json: id2label has {} now: {} has so many rows",
       "config.json: id2label 现在有 {}：{} 有这么多行"},
      {"one label", "一个标签"},
      {"config.json: expected an object", "config.json: 应为对象"},
      {"config.json: quantization_config is removed: no tensor is quantised now",
       "config.json: 已删除 quantization_config：现在没有量化的张量"},
      {"config.json: {} becomes 0: there are no such layers",
       "config.json: {} 变为 0：没有这样的层"},
      {"{}: there is no tensor {} to tell the model's sizes", "{}: 没有张量 {} 来说明模型的大小"},
      {"{}: found {} = {}, expected {} as {} shows; give the model's config.json with --hf-config",
       "{0}: {1} = {2}，应如 {4} 所示为 {3}；请用 --hf-config 给出模型的 config.json"},
      {"{}: {} is missing or no whole number", "{}: 缺少 {}，或它不是整数"},
      {"{}: it is no object", "{}: 它不是对象"},
      {"{}: it says use_scaled_rope, but not by what factor; give the model's config.json with "
       "--hf-config",
       "{}: 其中有 use_scaled_rope，但没有说明系数；请用 --hf-config 给出模型的 config.json"},
      {"{}: {} is no number", "{}: {} 不是数字"},
      {"{}: it says {}, which a config.json written from it would lack; give the model's "
       "config.json with "
       "--hf-config",
       "{}: 其中有 {}，据此写出的 config.json 会缺少这些；请用 --hf-config 给出模型的 config.json"},
      {"config.json is written from {}; max_position_embeddings is guessed; --hf-config settles "
       "it",
       "config.json 根据 {} 写出；max_position_embeddings 是猜测的；--hf-config 可以确定它"},
      {"{}: found {} of the {} files that its name tells of; copy the missing ones too: {}",
       "{0}: 其名称表明共有 {2} 个文件，只找到 {1} 个；请把缺少的文件也复制过来：{3}"},
      {"found {} and {}, which are two models of one save; give the path of the one that you mean",
       "找到 {} 和 {}，它们是同一次保存中的两个模型；请给出所需那一个的路径"},
      {"found {} and {}, which {} names: models of two saves; move the files of the other away",
       "找到 {} 和 {}（{} 中列出了它）：它们是两次保存的模型；请把另一次的文件移走"},
      {"{} names files that are not there; the model is read from the file beside it, as "
       "transformers does",
       "{} 列出的文件不存在；与 transformers 一样，从旁边的文件读取模型"},
      {"{} files beside the whole model are other forms of it and are left out: {}",
       "完整模型旁边有 {} 个文件是它的其他形式，不读取：{}"},
      {"{} folders beside the model are left out: {}", "模型旁边有 {} 个目录不会带上：{}"},
      {"found {} and {}, which are of two saves; move the files of the other away",
       "发现 {} 和 {}，它们属于两次保存；请移走另一次保存的文件"},
      {"{} is one of {} files by its name; only this one was given, the others are left out",
       "按名称 {} 是 {} 个文件之一；只给出了这一个，其余的被略去"},
      {"{}: {} files are not named by it and are left out: {}",
       "{}: 其中没有列出 {} 个文件，它们被略去：{}"},
      {"found {} of {} files consolidated.NN.pth: {} has {} of {} rows in each; copy the others "
       "too",
       "{1} 个 consolidated.NN.pth 文件中只找到 {0} 个：{2} 的 {4} 行中每个文件有 {3} "
       "行；请把其余的也复制过来"},
      {"found {} of {} files consolidated.NN.pth: {} has {} of {} rows in each; copy the others "
       "too, or, if this model's heads are narrower, the params.json that says so",
       "{1} 个 consolidated.NN.pth 文件中只找到 {0} 个：{2} 的 {4} 行中每个文件有 {3} "
       "行；请把其余的也复制过来；若此模型的 "
       "head 更窄，请把说明这一点的 params.json 复制过来"},
      {"found {} of {} files consolidated.NN.pth: {} has {} of {} columns in each; copy the others "
       "too",
       "{1} 个 consolidated.NN.pth 文件中只找到 {0} 个：{2} 的 {4} 列中每个文件有 {3} "
       "列；请把其余的也复制过来"},
      {"found {} files consolidated.NN.pth, expected {} by the shapes in them; move the files of "
       "the other save away",
       "发现 {} 个 consolidated.NN.pth 文件，按其中的形状应为 {} 个；请移走另一次保存的文件"},
      {"this is one rank's part of a Llama as Meta publishes it; give the folder that holds {}",
       "这是 Meta 发布的 Llama 中一个 rank 的部分；请给出 {} 所在的文件夹"},
      {"{} is missing: the numbers of {} files are not 0 to {}",
       "缺少 {}：{} 个文件的编号不是 0 到 {}"},
      {"found {}, which has no axis that ranks share out", "发现 {}，其中没有可由各 rank 分担的轴"},
      {"found {} in {} files, which is no share of a model {} wide",
       "{1} 个文件中发现 {0}，不是宽度为 {2} 的模型的一份"},
      {"tensor {}: {} has no part of it, other ranks have",
       "张量 {}: {} 中没有它的部分，而其他 rank 中有"},
      {"there are no name rules '{}'", "没有命名规则 '{}'"},
      {"{} is a part of a Llama as Meta publishes it", "{} 是 Meta 所发布的 Llama 的一部分"},
      {"a .distcp file", ".distcp 文件"},
      {"{}: found state dicts under '{}' and under '{}'; save the one that is meant by itself",
       "{}: 在 '{}' 和 '{}' 下都有 state dict；请把要用的那个单独保存"},
      {"{}: of {} state dicts in it ({}) the model's is read, the others are left out",
       "{}: 其中有 {} 个 state dict（{}），只读取模型的，其余略去"},
      {"found files of {} tensor ranks and {} pipeline stages, expected {} and {} as {} says; copy "
       "the missing ones too, or keep those of one save",
       "发现 {0} 个张量 rank 和 {1} 个流水线阶段的文件，按 {4} 应为 {2} 和 "
       "{3}；请把缺少的也复制来，或只保留同一次保存的文件"},
      {"found one rank's folder alone, which NeMo makes where there are several; copy the others "
       "too",
       "只有一个 rank 的文件夹，而 NeMo 只在有多个时才建立它；请把其余的也复制来"},
      {".metadata: {} and {} share bytes of {} from byte {} on, expected each in a place of its "
       "own; "
       "the file was damaged, restore it",
       ".metadata: {0} 和 {1} 共用 {2} 自第 {3} "
       "字节起的内容，应各有自己的位置；文件已损坏，请恢复它"},
      {"object {}", "对象 {}"},
      {"tensor {}: chunk {}", "张量 {}: 块 {}"},
      {"{}: entry {} ends at byte {}, but the file has {}; it was cut or does not belong to "
       "this metadata",
       "{}: 条目 {} 结束于字节 {}，而文件只有 {} 字节；它被截断，或不属于该元数据"},
      {"entry {}: {} bytes, limit {}", "条目 {}: {} 字节，上限为 {}"},
      {"common.pt (arguments, iteration, optimizer groups) stays behind",
       "common.pt（参数、迭代、优化器分组）不写出"},
      {"layers for multi-token prediction are called mtp_model_layer inside, as Megatron-Core has "
       "them since 0.17; 0.16 and older look for transformer_layer",
       "多 token 预测层内部的层命名为 mtp_model_layer，即 Megatron-Core 0.17 起的名称；0.16 "
       "及更早版本"
       "查找 transformer_layer"},
      {"files of ranks do not say which parameters were frozen: Megatron-LM goes on from them "
       "where "
       "it freezes the same ones, but nothing else can tell whose the optimizer's states are; keep "
       "the source",
       "各 rank 的文件不说明哪些参数被冻结：Megatron-LM 冻结相同参数时可以由此继续训练，"
       "但没有别的办法能说出优化器状态属于谁；请保留源检查点"},
      {"the optimizer's step ({}), its parameter groups and loss scale are not written: set them "
       "in "
       "the run that loads these states",
       "优化器的步数（{}）、参数分组和 loss scale 不写出：请在加载这些状态的训练中设置"},
      {"the optimizer's parameter groups and loss scale are not written: set them in the run that "
       "loads these states",
       "优化器的参数分组和 loss scale 不写出：请在加载这些状态的训练中设置"},
      {"{}: only the model's tensors are read; those under {} are left out",
       "{}: 只读取模型的张量；{} 下的张量不读取"},
      {"safetensors holds tensors only", "safetensors 只能存放张量"},
      {"{} opaque entries are left out: safetensors holds tensors only",
       "{} 个不透明条目不写出：safetensors 只能存放张量"},
      {"--shards {}: {} tensors would have more than {} chunks",
       "--shards {}: {} 个张量会有超过 {} 个 chunk"},
      {"common.pt beside {} shows Megatron-Core's {}, but metadata.json is missing",
       "common.pt 与 {} 并存，说明是 Megatron-Core 的 {}，但缺少 metadata.json"},
      {"{} lists the stored chunks", "{} 列出所存的 chunk"},
      {"{} lists what one rank stored", "{} 列出一个 rank 所存的内容"},
      {"no backend", "没有 backend"},
      {"the backend '{}'", "名为 '{}' 的 backend"},
      {"metadata.json names {}; torch_dist and fsdp_dtensor are read; move the file away if it "
       "does not belong to this checkpoint",
       "metadata.json 所写的是{}；可读取的是 torch_dist 和 fsdp_dtensor；如果该文件不属于这个检"
       "查点，请移走它"},
      {"{} is the latest folder", "{} 是最新的文件夹"},
      {"{} is taken, which {} names; {} is a later save: to use that one, give its folder",
       "采用 {}，即 {} 所指的；{} 是更晚的一次保存：若要用它，请给出其目录"},
      {"no file 'latest' says which of {} saves is meant: {} is taken, the last",
       "没有文件 'latest' 说明 {} 次保存中指的是哪一次：采用最后的 {}"},
      {"{} is the model into which the adapters of {} were merged",
       "{} 是合并了 {} 的 adapter 的模型"},
      {"{}: {} is all that this iteration has, its weights are in {}; give that folder",
       "{}: 这个 iteration 只有 {}，它的权重在 {} 中；请给出该文件夹"},
      {"{}: {} is all that this iteration has, and neither {} nor {} has weights; see that the "
       "copy is complete",
       "{}: 这个 iteration 只有 {}，而 {} 和 {} 中都没有权重；请检查复制是否完整"},
      {"the data lie in {}", "数据位于 {}"},
      {"{} describes a pipeline of diffusers, whose model is in {}",
       "{} 描述一个 diffusers 管线，其模型在 {} 中"},
      {"of the pipeline this is {} alone; {} are left where they are: to use the model, put it "
       "back beside them as {}",
       "这只是管线中的 {0}；{1} 留在原处：使用该模型时，请把它作为 {2} 放回它们旁边"},
      {"{} was given by itself", "单独给出了 {}"},
      {"{} '{}': no such format; give one of {}{}", "{} '{}': 没有这种格式；请给出 {} 之一{}"},
      {"{} has no weight_map object", "{} 没有 weight_map 对象"},
      {"{}: the file of {} is not a string", "{}: {} 的文件不是字符串"},
      {"tensor {}: would be written twice", "张量 {}: 会写出两次"},
      {"tensor {}: found in both {} and {}", "张量 {}: 在 {} 和 {} 中都有"},
      {"{}: found shards beside whole tensors, expected one or the other; remove the files of "
       "an earlier save",
       "{}: 完整的张量旁边有分片，应为其中一种；请删除之前一次保存的文件"},
      {"{}: {} keys are not in the files it names: {}", "{}: 有 {} 个键不在它所写的文件中：{}"},
      {"{}: does not list {} keys of the files it names: {}",
       "{}: 没有列出它所写的文件中的 {} 个键：{}"},
      {"{}: found pieces of tensors, which torch's HuggingFaceStorageWriter cut, expected whole "
       "ones",
       "{}: 发现由 torch 的 HuggingFaceStorageWriter 切开的张量，应为完整的"},
      {"tensor {}: found a shard at {} of {}, beyond any tensor",
       "张量 {0}: 位于 {1} 的分片 {2} 超出任何张量"},
      {"tensor {}: found another value than in {}: torch loses tensors of no axes when it "
       "consolidates; convert the folder sharded, which has them",
       "张量 {}: 与 {} 中的值不同：torch 合并时会丢失没有轴的张量；请转换含有它们的分片文件夹"},
      {"{}: tensor {}: saved_offsets does not say for {} axes where the shard begins",
       "{}: 张量 {}: saved_offsets 没有说明 {} 个轴的分片从何处开始"},
      {"tensor {}: found shards of {} and {} axes of {}, in {}",
       "张量 {0}: 分片为 {1}，有 {2} 个轴，应为 {3}（位于 {4}）"},
      {"{} names the weight files", "{} 列出权重文件"},
      {"{} holds weights", "{} 含有权重"},
      {"hf/source_keys.json: expected tensors with name, dtype and shape",
       "hf/source_keys.json: 应为含 name、dtype 和 shape 的张量"},
      {"hf/source_keys.json: expected schema {}", "hf/source_keys.json: schema 应为 {}"},
      {"hf/source_keys.json: expected a quantisation with a config and names of tensors",
       "hf/source_keys.json: 应为含 config 和张量名的 quantisation"},
      {"hf/source_keys.json: {}: expected names of tensors",
       "hf/source_keys.json: {}: 应为张量的名字"},
      {"hf/source_keys.json: expected a mapping with a family and files",
       "hf/source_keys.json: 应为含 family 和文件的 mapping"},
      {"hf/source_keys.json: expected mapping files with a name and a text",
       "hf/source_keys.json: 映射文件应有 name 和 text"},
      {"{}: of single files only a model's .safetensors, .bin, .pt or .pth file is a "
       "checkpoint; give the folder, or look at the file with 'shardwright inspect'",
       "{}: 单个文件中只有模型的 .safetensors、.bin、.pt 或 .pth 文件是检查点；请给出文件夹，或"
       "用 'shardwright inspect' 查看该文件"},
      {"{}: cannot open {}: only this file was given, not its folder",
       "{}: 无法打开 {}：只给出了该文件，没有给出它的文件夹"},
      {"{}: cannot list {}: only this file was given, not its folder",
       "{}: 无法列出 {}：只给出了该文件，没有给出它的文件夹"},
      {"{}: only this file was given, not its folder", "{}: 只给出了该文件，没有给出它的文件夹"},
      {"config.json and what else describes the model are those of {}; --hf-config names others",
       "config.json 等描述模型的文件取自 {}；--hf-config 可指定其他的"},
      {"config.json is that of {}", "config.json 取自 {}"},
      {"its index names no tensor", "它的索引没有列出张量"},
      {"none of its {} tensors has an element", "它的 {} 个张量都没有元素"},
      {"it has {} opaque entries and no tensor", "它有 {} 个不透明条目，没有张量"},
      {"{}: no weights are stored here: {}; see that the copy is complete, or give the folder "
       "of another save",
       "{}: 这里没有存储权重：{}；请检查拷贝是否完整，或给出另一次保存的文件夹"},
      {"{}: {} (what comes behind was not judged)", "{}: {}（其后的内容没有判断）"},
      {"{}: {} bytes follow the pickle's end, where no writer puts any; the file was damaged or "
       "made by hand",
       "{}: pickle 结尾之后还有 {} 字节，没有写出者会在那里放内容；该文件已损坏或是手工制作的"},
      {"{}: a loader imports {}, of software that is not known here; look at it before you load "
       "the file",
       "{}: 加载器会导入 {}，这里不认识其所属的软件；加载该文件之前请先查看它"},
      {"{}/{}: found '{}', expected an iteration or 'release'",
       "{}/{}: 发现 '{}'，应为迭代数或 'release'"},
      {"{}/{}: names {}, which is not there or empty; give the iteration's folder itself",
       "{}/{}: 指向 {}，它不存在或为空；请直接给出迭代的文件夹"},
      {"{}: {} is a download that did not end, and there is no checkpoint beside it; download "
       "it again",
       "{}: {} 是没有完成的下载，旁边没有检查点；请重新下载"},
      {"{}: found {}, expected .metadata, *.safetensors or iter_* folders",
       "{}: 发现 {}，应为 .metadata、*.safetensors 或 iter_* 文件夹"},
      {"{}: found {}; further down there is {}; give that path",
       "{}: 发现 {}；更深处有 {}；请给出该路径"},
      {"{} and {} more", "{} 等（另有 {} 个）"},
      {"{} of {} tensors are an adapter's, beside the base model that it was trained with: '{}' "
       "makes the trained model of both, 'convert' with {} makes the base alone, with {} --to hf "
       "PEFT's files of the adapter",
       "{1} 个张量中有 {0} 个属于 adapter，与训练它所用的 base 模型放在一起：'{2}' "
       "由两者得到训练后的模型，'convert' 加上 {3} 只得到 base，加上 {4} --to hf 得到 adapter 的 "
       "PEFT "
       "文件"},
      {"these {} tensors are an adapter's that a run has saved without its base model: "
       "'shardwright convert {} ADAPTER --to hf' makes PEFT's files of them, which "
       "'merge-adapter' adds to the base model",
       "这 {} 个张量属于某次训练保存的 adapter，不含其 base 模型：'shardwright convert {} ADAPTER "
       "--to hf' 把它们写成 PEFT 的文件，再由 'merge-adapter' 加到 base 模型上"},
      {"{}: {} tensors are an adapter's ({} the first), beside the base model that it was trained "
       "with; '{}' makes the trained model of both, {} converts the base alone, {} --to hf makes "
       "PEFT's files of the adapter",
       "{}: 有 {} 个张量属于 adapter（第一个是 {}），与训练它所用的 base 模型放在一起；'{}' "
       "由两者得到训练后的模型，{} 只转换 base，{} --to hf 得到 adapter 的 PEFT 文件"},
      {"name one with {} FORMAT", "请用 {} FORMAT 指定一个"},
      {"give a folder that holds one only", "请给出只含一个的文件夹"},
      {"give the folder of one of them", "请给出其中一个的文件夹"},
      {"{} holds {} checkpoints: {}; {}", "{} 中有 {} 个检查点：{}；{}"},
      {"{} {}: {} holds {}, no {}", "{} {}: {} 含有 {}，没有 {}"},
      {"--optimizer keep: a Hugging Face checkpoint has no optimizer state",
       "--optimizer keep: Hugging Face 检查点没有优化器状态"},
      {"{} optimizer tensors are dropped", "{} 个优化器张量被丢弃"},
      {"{} tensors are left out by --include/--exclude", "按 --include/--exclude，{} 个张量不写出"},
      {"{} shows {}; it is read by {}", "{} 表明{}；可由 {} 读取"},
      {"--to '{}': no format of this name is written; give one of {}{}",
       "--to '{}': 不能写出这种格式；请给出 {} 之一{}"},
      {"; {} is its download, which did not end: download it again",
       "；{} 是它没有完成的下载：请重新下载"},
      {"{0}: {0}.aria2 says that its download did not end, though the file has its full size; "
       "resume it, or remove {0}.aria2 where you know that it is complete",
       "{0}: {0}.aria2 说它的下载没有完成，虽然文件大小已经完整；请继续下载，或者在确知它完整时"
       "删除 {0}.aria2"},
      {"{}: found the dtype {}, which no tensor has", "{}: dtype 为 {}，没有张量用它"},
      {"{}: {} is no list", "{}: {} 不是列表"},
      {"{}: {} axes, limit {}", "{}: {} 个轴，上限为 {}"},
      {"{}: {}: found {}, expected a number from {}", "{}: {}：发现 {}，应为不小于 {} 的数"},
      {"{}: found zarr_format {}, expected 2", "{}: zarr_format 为 {}，应为 2"},
      {"{}: chunks with a {} are not read; save them without one",
       "{}: 不读取带 {} 的分块；请不带它重新保存"},
      {"{}: found the dimension_separator {}, expected a dot",
       "{}: dimension_separator 为 {}，应为点"},
      {"{}: found chunks of {} axes, expected {} as the shape has",
       "{}: 分块有 {} 个轴，应与 shape 一样为 {}"},
      {"{}: chunks are here ({} is the first), but no {}; copy it again",
       "{}：有块文件（第一个是 {}），却没有 {}；请重新复制"},
      {"{}: found files of {} chunks, expected {}; {} is the first that is missing: copy them "
       "again",
       "{}: 有 {} 个分块文件，应有 {} 个；缺少的第一个是 {}：请重新复制"},
      {"{}/{}: found {} bytes, expected {}; it was cut or is no chunk of this array",
       "{}/{}: 有 {} 字节，应为 {}；文件被截断，或不是此数组的分块"},
      {"metadata.json names the zarr backend", "metadata.json 写明 zarr backend"},
      {"{} holds a .zarray", "{} 含有 .zarray"},
      {"nothing", "空无一物"},
      {"{} labels", "{} 个标签"},
  });
  return kSentences;
}

}  // namespace shardwright
