// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <span>

#include "language/chinese_tables.h"

namespace shardwright {

std::span<const Sentence> chinese_of_convert() {
  static constexpr auto kSentences = std::to_array<Sentence>({
      {"config.json has no vision_config", "config.json 没有 vision_config"},
      {"{}: no part is left to be published, and all files of the plan are there, of the sizes "
       "that "
       "it says: an earlier 'publish' has done it ('verify' tells whether all is well), unless "
       "they "
       "are older",
       "{}: 没有可发布的部分，而计划中的所有文件都已在那里，大小也相符：之前的 'publish' 已经完成"
       "（'verify' 可检查是否完好），除非它们是更早的文件"},
      {"no run_config.yaml is written: Megatron-Bridge's provider has no field for {}",
       "不写 run_config.yaml：Megatron-Bridge 的 provider 没有对应 {} 的字段"},
      {"no run_config.yaml is written: which provider of Megatron-Bridge builds {} is not "
       "known; Megatron-LM needs none",
       "不写 run_config.yaml：不知道 Megatron-Bridge 的哪个 provider 构建 {}；Megatron-LM 不需要"
       "它"},
      {"hf/config.json is left out: it is that of the dense model; --hf-config names one of a "
       "model with experts when this is converted to hf",
       "hf/config.json 不写出：它属于稠密模型；之后转换为 hf 时请用 --hf-config 给出带专家的模型"
       "的配置"},
      {"run_config.yaml is left out: it would not be true of the new checkpoint, ",
       "run_config.yaml 不写出：它与新检查点不符，"},
      {"run_config.yaml gets the sizes and types of the new checkpoint",
       "run_config.yaml 写入新检查点的大小和类型"},
      {"run_config.yaml is left out: whoever reads it takes the gates of experts for contiguous, "
       "and "
       "here they lie in blocks (moe_mlp_glu_interleave_size)",
       "run_config.yaml 不写出：读取它的软件认为专家的门控连续存放，而这里它们按块存放"
       "（moe_mlp_glu_interleave_size）"},
      {"tensor {}: run_config.yaml says that its rows lie in blocks of {} on each of {} tensor "
       "ranks "
       "(moe_mlp_glu_interleave_size), which the weights that Megatron-Bridge stores do not; such "
       "states go to another torch_dist of as many ranks only (--tp, --etp), not to this {}; "
       "--optimizer drop leaves states out",
       "张量 {0}: run_config.yaml 表明它的行在 {2} 个张量 rank 的每一个上按 {1} 行的块存放"
       "（moe_mlp_glu_interleave_size），而 Megatron-Bridge "
       "保存的权重并非如此；这样的状态只能转换到"
       "相同 rank 数（--tp、--etp）的另一个 torch_dist，不能转换到这个 {3}；--optimizer drop "
       "可略去状态"},
      {"{}: its arguments say otherwise than those of {} how the gates of experts lie in blocks "
       "(moe_mlp_glu_interleave_size), which is kept for a Megatron target; average them --to hf "
       "and convert the mean",
       "{}: 它的参数与 {} 的参数对专家门控如何按块存放（moe_mlp_glu_interleave_size）说法不同，"
       "而 Megatron 目标会保留这一点；请用 --to hf 求平均，再转换其结果"},
      {"gates of experts lie in blocks on each tensor rank (moe_mlp_glu_interleave_size): what is "
       "written loads with TP {} and ETP {} only, as Megatron-Core does not move their rows",
       "专家的门控在每个张量 rank 上按块存放（moe_mlp_glu_interleave_size）：写出的检查点只能以 TP "
       "{} 和 "
       "ETP {} 加载，因为 Megatron-Core 不会移动它们的行"},
      {"{} is left out: no tensor is quantised now", "{} 不写出：现在没有量化的张量"},
      {"; it is not written into another checkpoint, where somebody might trust it: {}",
       "；它不会写入另一个检查点，以免有人信任它：{}"},
      {"convert with --to hf or --to safetensors, which carry no state",
       "请用 --to hf 或 --to safetensors 转换，它们不带状态"},
      {"entry {}", "条目 {}"},
      {"{}: the source's files are laid out by it, the output is not: its arguments say otherwise",
       "{}: 来源的文件按它排布，输出不是：输出的参数改为否"},
      {"the run shared its layers out by arguments of its own ({}); with these sizes stages have "
       "other layers, as the "
       "arguments of the output say: whoever loads it leaves the run's out",
       "该训练按自己的参数（{}"
       "）分配各层；用这些大小时各阶段的层不同，以输出中的参数为准：加载时请去掉训练原来的这些参"
       "数"},
      {"leave it out with --exclude '{}'", "请用 --exclude '{}' 不写出它"},
      {"remove the file from the source", "请从源中删除该文件"},
      {"the common state", "公共状态"},
      {"stopped before the checkpoint was published", "在检查点发布之前被中止"},
      {"all {} tensors are optimizer states, the weights are elsewhere{}",
       "全部 {} 个张量都是优化器状态，权重在别处{}"},
      {"; give {}", "；请给出 {}"},
      {"; {} describes the model and has none", "；{} 描述了模型，但没有权重"},
      {"; {} has what was trained, adapters in verl's own files, which verl loads onto the model "
       "that the run began with",
       "；{} 中是训练得到的 adapter，为 verl 自己的文件，由 verl 加载到训练开始时的模型上"},
      {"{} holds optimizer states alone, which are left", "{} 只有优化器状态，它们被留下"},
      {"no config.json is near, so the model is written without one, by the names that are "
       "stored; --hf-config gives the model's",
       "附近没有 config.json，因此写出的模型不带它，并沿用所存的名称；可用 --hf-config 给出"},
      {"{}: found {} bytes where {} were written; run again where nothing changes the output "
       "meanwhile",
       "{0}: 写入了 {2} 个字节，现有 {1} 个；请在写出期间没有别的程序改动输出的地方重新运行"},
      {"{}: it was removed while it was being written, so its contents are lost; run again where "
       "nothing cleans up meanwhile",
       "{}: 在写入期间被删除，内容已丢失；请在写出期间没有清理程序的地方重新运行"},
      {"{}: nothing is left to convert", "{}: 没有剩下可转换的内容"},
      {"{}: no rule says whose the optimizer states in {} are, and they are not converted; leave "
       "--optimizer keep out",
       "{}: 没有规则说明 {} 中的优化器状态属于哪些参数，它们不能转换；请去掉 --optimizer keep"},
      {"{}: its optimizer states have Hugging Face's names and are not converted to Megatron's; "
       "--to dcp and --to safetensors keep them under their names",
       "{}: 它的优化器状态使用 Hugging Face 的名字，不能转换为 Megatron 的；--to dcp 和 --to "
       "safetensors 可按原名保留"},
      {"{}: MLite's optimizer_rank_R.pt list states in the order of a rank's own parameters and "
       "are not converted; leave --optimizer keep out",
       "{}: MLite 的 optimizer_rank_R.pt 按 rank 自己的参数顺序列出状态，不能转换；请去掉 "
       "--optimizer keep"},
      {"optimizer state is dropped", "优化器状态被丢弃"},
      {"whose each optimizer state is follows from Megatron's rules; before anything is "
       "written, every master weight is compared with its weight",
       "每个优化器状态属于谁由 Megatron 的规则得出；写入任何内容之前，会把每个主权重与其权重比较"},
      {"{} parameters ({}), {} the first, have no master weight apart: nothing proves whose "
       "their states are but shapes, groups and order",
       "{} 个参数（{}，第一个是 {}）没有单独的主权重：除了形状、分组和顺序，没有什么能证明它们的"
       "状态属于谁"},
      {"config.json: found architecture '{}', expected one that 'shardwright map list' shows; {}"
       "; a mapping file of your own (--map) can extend that family: docs/mapping.md says how, "
       "'shardwright map check' tries it",
       "config.json: 发现架构 '{}'，应为 'shardwright map list' 列出的架构之一；{}；可以用自己的"
       "映射文件（--map）扩展该家族：做法见 docs/mapping.md，用 'shardwright map check' 试验"},
      {"{}: its arguments don't tell rows of the vocabulary from padding; convert it with --to "
       "hf --hf-config, extend that and convert it back",
       "{}: 它的参数不能区分词表的行与填充；请用 --to hf --hf-config 转换，扩展之后再转换回来"},
      {"tensor {}: found rows of {} tensor ranks, expected those of {}: the order of its rows "
       "depends on that",
       "张量 {}: 其行来自 {} 个张量 rank，应为 {} 个：行的顺序取决于此"},
      {"{}: found adapters, which --quantise, --extend-vocab and --mtp from= change nothing of; "
       "convert them without, 'shardwright merge-adapter' them into the base and convert that",
       "{}: 发现 adapter，--quantise、--extend-vocab 和 --mtp from= 对其不起作用；请不带这些参数"
       "转换，用 'shardwright merge-adapter' 合并到基础模型后再转换"},
      {"{} tensors of adapters with other names are left out, {} the first: what is trained is "
       "called default",
       "{} 个其他名称的 adapter 的张量被省略，第一个是 {}：训练的 adapter 名为 default"},
      {"{} tensors beside the adapters are left out: they are the base model's",
       "adapter 之外的 {} 个张量不写出：它们属于基础模型"},
      {"optimizer states are copied in the flat buffers that they lie in, which nothing in the new "
       "checkpoint explains: {}",
       "优化器状态按其所在的平铺缓冲区复制，新检查点中没有信息说明其内容：{}"},
      {"tensor {}: this weight is left out but its optimizer state is kept, which is the other "
       "half "
       "of it; keep or drop both",
       "张量 {}: 该权重被排除，但保留了它的优化器状态，而后者是它的另一半；请同时保留或同时丢弃"},
      {"tensor {}: found remainders of some master weights and others whole, expected one form; "
       "convert without the optimizer (--optimizer drop)",
       "张量 {}: 有些主权重是余数，有些是完整的，应为同一种形式；请不带优化器转换（--optimizer "
       "drop）"},
      {"the run keeps weights or master weights in a form (FP8, float16) in which the first are "
       "not "
       "the second, rounded: they are not compared",
       "该训练以某种形式（FP8、float16）保存权重或主权重，使前者不是后者舍入的结果：二者未作比较"},
      {"the run keeps of its master weights what its weights lack of them: nothing proves whose "
       "they "
       "are but shapes, groups and order",
       "该训练只保存主权重中权重所缺的部分：除形状、分组和顺序外，没有什么能证明它们属于哪个参数"},
      {"master weights are stored as what the weights lack of them "
       "(--use-precision-aware-optimizer); "
       "they are written as the float32 numbers that both make, which a run without that flag "
       "loads",
       "主权重存储为权重所缺的部分（--use-precision-aware-optimizer）；现写出二者合成的 float32 "
       "数，不带该选项的训练可以加载"},
      {"optimizer states in flat buffers get the names of their tensors",
       "平铺缓冲区中的优化器状态改用各自张量的名字"},
      {"{}; --accept-loss copies what is there", "{}；--accept-loss 复制现有的部分"},
      {"{}; --dtype would cast the scales that such integers need: leave it out, or give a "
       "config.json that names the quantisation",
       "{}；--dtype 会转换这些整数所需的缩放因子：请去掉它，或给出说明量化方式的 config.json"},
      {"; --dtype casts the tensors", "；--dtype 可转换这些张量"},
      {"family {} has no rule for what is copied as it is: {}",
       "模型族 {} 对以下张量没有规则，按原样复制：{}"},
      {"tensor {}: its rows are in the order of {} tensor ranks and would be read as those of {}"
       "; convert the adapter --to hf --hf-config BASE, and that --to torch_dist",
       "张量 {}: 它的行按 {} 个张量 rank 的顺序排列，会被当作 {} 个的顺序读取；请先用 --to hf "
       "--hf-config BASE 转换该 adapter，再转换为 --to torch_dist"},
      {"{}: no tensor has a Megatron name (decoder.*, embedding.*); --to safetensors keeps any "
       "names",
       "{}: 没有张量使用 Megatron 的名字（decoder.*、embedding.*）；--to safetensors 保留任何名字"},
      {"nothing says which modules the model has: names are those of Megatron's local ones; "
       "--spec te gives those of Transformer Engine",
       "没有信息说明模型使用哪种模块：名字采用 Megatron 的 local 模块；--spec te 给出 "
       "Transformer Engine 的名字"},
      {"tensor {}: found {} vocabulary rows, expected a multiple of --tp {}; "
       "--make-vocab-size-divisible-by {} makes it {} rows, filled with zeros",
       "张量 {}: 发现 {} 行词表，应为 --tp {} 的倍数；--make-vocab-size-divisible-by {} 使其成为"
       " {} 行，以零填充"},
      {"RNG states are left out: start the job with --no-load-rng",
       "不写出 RNG 状态：请用 --no-load-rng 启动作业"},
      {"{} RNG and rerun states are dropped: they belong to the ranks of the old layout",
       "{} 个 RNG 和 rerun 状态被丢弃：它们属于旧布局的 rank"},
      {"--pp {}: the model has no layers to share out among stages; leave it out",
       "--pp {}: 该模型没有可分给各 stage 的层；请去掉它"},
      {"the source has no arguments of a run: those of the layout are written",
       "源没有训练参数：只写出布局参数"},
      {"--max-memory {}: this conversion needs at least {} bytes ({} MiB): {} tensors of the "
       "source and {} of the target are known by name and place",
       "--max-memory {}: 该转换至少需要 {} 字节（{} MiB）：要记住源的 {} 个张量和目标的 {} 个张"
       "量的名字和位置"},
      {"{}: part {} is {}; run it again", "{}: 部分 {} {}；请再次运行它"},
      {"{}: no part of it is written; run the parts first",
       "{}: 它的任何部分都没有写；请先运行各部分"},
      {"missing (parts of {} different counts are there, none of them all; this count lacks "
       "least)",
       "缺失（那里有 {} 种不同数量的部分，没有一种是完整的；这种数量缺得最少）"},
      {": cannot move", "：无法移动"},
      {"found part {}, expected 1/N to N/N", "发现部分 {}，应为 1/N 到 N/N"},
      {"stopped before anything was to be written", "在写入任何内容之前被中止"},
      {"rank 0: a message of no known kind", "rank 0: 未知类型的消息"},
      {"; OUT must lie on a file system that all ranks share",
       "；OUT 必须位于所有 rank 共享的文件系统上"},
      {"stopped before the checkpoint was complete", "在检查点完成之前被中止"},
      {"{} has planned something else than rank 0: its source files have other sizes or times, "
       "or its program another version; all ranks must see the same files",
       "{} 的计划与 rank 0 不同：它的源文件大小或时间不同，或程序版本不同；所有 rank 必须看到相"
       "同的文件"},
      {"{}: piece {} was not to be done", "{}: 部分 {} 不该由它来做"},
      {"--mtp drop: found a Hugging Face model that keeps its names, expected a target that its "
       "family is needed for; --exclude leaves tensors out by name",
       "--mtp drop: 发现保留原名的 Hugging Face 模型，应为需要其家族的目标；--exclude 可按名字不"
       "写出张量"},
      {"--quantise does not apply to --to {}: only Hugging Face models are stored so; leave it "
       "out, or convert --to hf",
       "--quantise 不适用于 --to {}：只有 Hugging Face 模型才这样存储；请去掉它，或用 --to hf 转"
       "换"},
      {"{}: --adapter-names is about an adapter in PEFT's files, and this is a {} checkpoint; "
       "leave it out",
       "{}: --adapter-names 用于 PEFT 文件中的 adapter，而这是 {} 检查点；请去掉它"},
      {"weights get their new dtype from the optimizer's master weights",
       "权重由优化器的主权重转换为新的 dtype"},
      {"common state: the optimizer has parameter groups, and none of its states is stored; "
       "convert without it (--optimizer drop)",
       "common state: 优化器有参数组，却没有存储任何状态；请不带它转换（--optimizer drop）"},
      {"no use is made of {} {}: the model has no experts", "没有用到 {} {}: 模型没有专家"},
      {"no use is made of {}: --to {} keeps the names that are stored",
       "{} 没有用到：--to {} 保留已存储的名称"},
      {"; what is written loads with such a size only", "；写出的内容只能以这样的大小加载"},
      {"{} and {} more are left out: the target has no place for them",
       "{} 以及另外 {} 个不写出：目标没有存放它们的位置"},
      {"{} is left out: the target has no place for it", "{} 不写出：目标没有存放它的位置"},
      {"not as it was written any more", "与写入时不同了"},
      {"{}: found {} jobs, expected fewer than 2^32", "{}: 发现 {} 个任务，应少于 2^32"},
      {"stopped before everything was read", "在读完全部内容之前被中止"},
      {"{}: {} sees other things than rank 0: its files have other sizes or can't all be read, "
       "or its program is another version; all ranks must see the same files",
       "{}: {} 看到的内容与 rank 0 不同：文件大小不同或有的读不了，或程序版本不同；所有 rank 必"
       "须看到相同的文件"},
      {"{}: job {} was not to be done", "{}: 任务 {} 不该由它来做"},
      {"rank 0: a message about another step", "rank 0: 关于另一个步骤的消息"},
      {"rank 0: there is no job {}", "rank 0: 没有任务 {}"},
      {"what was found", "发现的内容"},
      {"{}: {} does not go with an output on a server, where nothing is read back or replaced; "
       "leave it out, or choose a local path and upload what was written",
       "{}: {} 不能用于服务器上的输出，那里不会读回也不会替换；请去掉它，或选择本地路径，写完再"
       "上传"},
      {"; {} could not be removed", "；{} 无法删除"},
      {"; 'shardwright clean {} --remove' removes unfinished uploads",
       "；'shardwright clean {} --remove' 可清除未完成的上传"},
      {"{}: this is not a checkpoint, and --overwrite would remove {}; choose another target, or "
       "remove it yourself",
       "{}: 这不是检查点，而 --overwrite 会删除 {}；请选择另一个 OUT，或自行删除"},
      {"{}: --overwrite would also remove {}, not known to be of the checkpoint that is "
       "replaced; move this away, or choose another target",
       "{}: --overwrite 还会删除 {}，不确定它们属于被替换的检查点；请移走它们，或选择另一个 OUT"},
      {"{}/{}: this is not an iteration's folder, and --overwrite would remove it; move it "
       "away, or choose another target",
       "{}/{}: 这不是迭代的文件夹，而 --overwrite 会删除它；请移走它，或选择另一个 OUT"},
      {"a text", "文本"},
      {"a text without zero bytes", "不含零字节的文本"},
      {"an absolute path", "绝对路径"},
      {"a format that is written", "可以写出的格式"},
      {"a list of texts", "文本的列表"},
      {"texts without zero bytes", "不含零字节的文本"},
      {"absolute paths", "绝对路径"},
      {"a list of numbers", "数字的列表"},
      {"true or false", "true 或 false"},
      {"a number of bytes, at least 1", "字节数，至少为 1"},
      {"null or a floating point dtype", "null 或浮点 dtype"},
      {"a list of components", "组件的列表"},
      {"{}: expected an object", "{}: 应为对象"},
      {"{}: found the key '{}', which a saved plan doesn't have",
       "{}: 发现键 '{}'，已保存的计划没有这个键"},
      {"{}: the key '{}' is missing", "{}: 缺少键 '{}'"},
      {"a whole number from {} to {}", "{} 到 {} 之间的整数"},
      {"{}: '{}' must be {}", "{}: '{}' 必须是 {}"},
      {"{}: it ends at byte {}", "{}: 它结束于字节 {}"},
      {"{}: several ranks write to a folder that all of them see; choose a local path, or run "
       "it without ranks",
       "{}: 多个 rank 要写入一个它们都能看到的文件夹；请选择本地路径，或不用多个 rank 运行"},
      {"'{}' is not UTF-8 and can't be saved in a plan; rename it",
       "'{}' 不是 UTF-8，无法保存在计划中；请改名"},
      {"{}: '{}' must be a text", "{}: '{}' 必须是文本"},
      {"{}: '{}' must be {} hex digits", "{}: '{}' 必须是 {} 位十六进制数字"},
      {"{}: parts are written to a folder that all of them see; choose a local path",
       "{}: 各部分要写入一个它们都能看到的文件夹；请选择本地路径"},
      {"{}: this is no saved plan; make one with 'shardwright plan ... --save FILE'",
       "{}: 这不是已保存的计划；请用 'shardwright plan ... --save FILE' 生成"},
      {"{}: version {} of this program saved this plan, this is {}; use that one, or save the "
       "plan again and run all parts again",
       "{}: 该计划由本程序的版本 {} 保存，现在是 {}；请使用那个版本，或重新保存计划并重做所有部"
       "分"},
      {"{}: 'piece_bytes' must be a number of bytes, at least 1",
       "{}: 'piece_bytes' 必须是字节数，至少为 1"},
      {"{}: this plan can't be carried out: {}; save it again and run all parts again",
       "{}: 该计划无法执行：{}；请重新保存并重做所有部分"},
      {"files of the source changed since it was saved", "保存之后源文件有改动"},
      {"what it asks for is planned otherwise now", "它要求的内容现在会规划成另一种样子"},
      {"{}: 'piece_bytes' is {}, too little for a checkpoint of {} bytes",
       "{}: 'piece_bytes' 为 {}，对 {} 字节的检查点来说太小"},
      {"stopped before anything was to be done", "在做任何工作之前被中止"},
      {"another version of this program wrote it", "它是本程序的另一个版本写的"},
      {"it is of another conversion: flags or source differ", "它属于另一次转换：参数或源不同"},
      {"files of the source changed since, or are others of the same names",
       "源文件此后有改动，或是同名的其他文件"},
      {"{}: the server tells neither ETag nor date of this file, so nobody can know whether it is "
       "the same for all parts; copy the checkpoint to a disk first, or convert it in one run",
       "{}: 服务器既不给出该文件的 ETag 也不给出日期，因此无法知道各部分读到的是否是同一个文件；"
       "请先把检查点复制到磁盘，或一次运行完成转换"},
      {"{}: cannot go on with this unfinished output: the server tells neither ETag nor date of "
       "{}, so nobody can know whether it is the same file; remove the output to begin anew, from "
       "a copy on a disk if it must be gone on with",
       "{}: 无法接着写这个未完成的输出：服务器既不给出 {} 的 ETag 也不给出日期，因此无法知道是否"
       "仍是同一个文件；要从头开始请删除该输出；若以后还需接着写，请从磁盘上的副本转换"},
      {"{}: found {}, expected an unfinished file of at most {} bytes, as this conversion made it; "
       "remove that, and the same command goes on",
       "{}: 发现{}，应为该转换写的、最多 {} 字节的未完成文件；请将其删除，同一命令即可接着进行"},
      {"a link", "一个链接"},
      {"something that is no file", "不是文件的东西"},
      {"a file of several names", "有多个名字的文件"},
      {"a file of {} bytes", "一个 {} 字节的文件"},
      {"{}: cannot go on with this unfinished output: {}; remove it to begin anew",
       "{}: 无法接着写这个未完成的输出：{}；要从头开始请删除它"},
      {"{}: parts {} are {}; run them again", "{}: 部分 {} {}；请再次运行它们"},
      {"missing", "缺失"},
      {"{}: found a folder, expected a saved plan; 'shardwright plan ... --save FILE' makes one",
       "{}: 发现文件夹，应为保存的计划；用 'shardwright plan ... --save FILE' 生成"},
  });
  return kSentences;
}

}  // namespace shardwright
