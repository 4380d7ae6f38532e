// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <span>

#include "language/chinese_tables.h"

namespace shardwright {

std::span<const Sentence> chinese_of_arguments() {
  static constexpr auto kSentences = std::to_array<Sentence>({
      {"rotary frequencies are scaled as rope.type = {} says, and the arguments have "
       "position_embedding_type = {}",
       "旋转频率按 rope.type = {} 缩放，而参数中 position_embedding_type = {}"},
      {"rotary frequencies of layers with a sliding window are scaled as {} = {} says",
       "滑动窗口层的旋转频率按 {} = {} 缩放"},
      {"layers with a sliding window have {} = {}", "滑动窗口层的 {} = {}"},
      {"rotary frequencies of layers with whole attention are scaled as "
       "rope.full_attention.rope_type = {} says",
       "全注意力层的旋转频率按 rope.full_attention.rope_type = {} 缩放"},
      {"YaRN turns rotary_percent = {} of a head's channels, where Megatron-Core's turns all of "
       "them",
       "YaRN 只旋转每个头 rotary_percent = {} 的通道，而 Megatron-Core 的旋转全部通道"},
      {"rotary frequencies are scaled as the model's class has it, for config.json has no "
       "rope_parameters",
       "config.json 没有 rope_parameters，旋转频率按模型的类自带的方式缩放"},
      {"rotary frequencies of layers with a sliding window are not scaled as rope.type = {} says "
       "of "
       "the others",
       "滑动窗口层的旋转频率不按其他层的 rope.type = {} 缩放"},
      {"YaRN turns channels that lie in pairs (rotary_interleaved), where Megatron-Core builds no "
       "model with both",
       "YaRN 旋转成对相邻的通道（rotary_interleaved），而 Megatron-Core 不能构建两者兼有的模型"},
      {"queries that are not compressed (q_lora_rank = None) have no norm, where Megatron-Core "
       "0.19 gives them one with qk_layernorm and wants its weights, "
       "self_attention.linear_q_proj.layer_norm_weight (0.16 does not)",
       "未压缩的 query（q_lora_rank = None）没有 norm，而 Megatron-Core 0.19 在有 qk_layernorm "
       "时会给它一个并要求其权重 self_attention.linear_q_proj.layer_norm_weight（0.16 不会）"},
      {"norms of compressed queries, keys and values have an epsilon of {}, where Megatron-Core "
       "takes the model's, {}",
       "压缩后的 query、key 和 value 的 norm 的 epsilon 是 {}，而 Megatron-Core 用模型的 {}"},
      {"rotary_percent = {} says nothing beside YaRN: Megatron-Core's turns all channels of a "
       "head, and so does the model of config.json",
       "rotary_percent = {} 与 YaRN 并用时不起作用：Megatron-Core 的 YaRN 旋转每个头的全部通道，"
       "config.json 的模型也是如此"},
      {"groups of experts are chosen by their best {}, where Megatron-Core sums their best {} "
       "(moe_router_topk / moe_router_group_topk)",
       "专家组按组内最好的 {} 个选出，而 Megatron-Core 把最好的 {} 个相加（moe_router_topk / "
       "moe_router_group_topk）"},
      {"of {} = {} config.json gets the first", "{} = {} 中只有第一个写入 config.json"},
      {"the run's arguments: {}: found {}, expected a number; give the model's own config.json "
       "with "
       "--hf-config",
       "训练参数: {} 为 {}，应为数字；请用 --hf-config 给出模型自己的 config.json"},
      {"the weight of the only expert that a token goes to is normalised, which makes it 1, where "
       "Megatron-Core leaves it its score",
       "每个 token 只去一个专家，其权重被归一化为 1，而 Megatron-Core 保留其得分"},
      {"the weight of the only expert that a token goes to is 1, where Megatron-Core, which builds "
       "no such router, takes its share of the softmax ({})",
       "每个 token 只去一个专家，其权重为 1，而 Megatron-Core 不构建这样的路由器，取其 softmax "
       "份额（{}）"},
      {"config.json: each token goes to {} experts, and models of family {} apply an expert's "
       "weight to its input, which Megatron-Core builds for one expert a token only "
       "(moe_apply_probs_on_input)",
       "config.json: 每个 token 去 {} 个专家，而家族 {} "
       "的模型把专家权重用在其输入上，Megatron-Core 只在每个 token 去一个专家时构建它"
       "（moe_apply_probs_on_input）"},
      {"layers have a sliding window of sliding_window = {} tokens, as {} says, which the "
       "arguments leave out",
       "按 {1}，各层的滑动窗口为 sliding_window = {0} 个 token，而参数略去了它"},
      {"norms in Mamba mixers have an epsilon of {}, where Megatron-Core's have {}",
       "Mamba mixer 中 norm 的 epsilon 为 {}，而 Megatron-Core 的为 {}"},
      {"no expert drops tokens, where Megatron-Core's drop those beyond {} = {} times their even "
       "share",
       "专家不丢弃 token，而 Megatron-Core 丢弃超过平均份额 {} = {} 倍的 token"},
      {"experts are chosen and weighed by their scores alone, where {} = {} has a way of its own",
       "专家只按得分选择和加权，而 {} = {} 另有其方式"},
      {"config.json says {} = {} and {} = {}; the first is taken",
       "config.json 中 {} = {}，而 {} = {}；采用前者"},
      {"steps of Mamba mixers are kept within {} = {}, where Megatron-Core keeps them as they are",
       "Mamba mixer 的步长限制在 {} = {} 之内，而 Megatron-Core 不加限制"},
      {"models of family {} compute otherwise than the run: {}",
       "家族 {} 的模型与训练计算不同：{}"},
      {"time, height and width of pictures turn channels by turns (mrope_interleaved), where "
       "Megatron-Core's turn a block each",
       "图像的时间、高、宽轮流旋转各通道（mrope_interleaved），而 Megatron-Core 的各旋转一整段"},
      {"{}, which no argument of Megatron-Core says (family {})",
       "{}，Megatron-Core 没有参数能表示它（家族 {}）"},
      {"{} = {} has no counterpart in Megatron's {}", "{} = {} 在 Megatron 的 {} 中没有对应"},
      {"{} = {} is not a whole number, which Megatron's {} must be",
       "{} = {} 不是整数，而 Megatron 的 {} 必须是整数"},
      {"{} = {} is kept as argument {}, with which Megatron-Core computes nothing",
       "{} = {} 作为参数 {} 保留，Megatron-Core 不用它计算"},
      {"config.json: found {} = {} and {} = {}, expected them alike: Megatron has one argument "
       "for both, and a model with only one of them would lose tensors",
       "config.json: {} = {} 而 {} = {}，应相同：Megatron 对两者只有一个参数，只有其中一个的模型"
       "会丢失张量"},
      {"{} = {}, where Megatron has {} fixed for family {}",
       "{0} = {1}，而 Megatron 对家族 {3} 的 {2} 是固定的"},
      {"{}: found {}, expected a number from 1; give {}, a list with one entry per layer",
       "{}: 发现 {}，应为从 1 起的数；请给出 {}，即每层一项的列表"},
      {"{}: found {} entries, expected one for each of {} layers",
       "{}: 有 {} 项，应为 {} 层各一项"},
      {"{} are no whole numbers, which Megatron's {} lists",
       "{} 不是整数，而 Megatron 的 {} 列出整数"},
      {"{} has layers that no {} and {} of Megatron give",
       "{} 的层用 Megatron 的 {} 和 {} 无法表示"},
      {"{} and {}: found {} and {}, expected a number from 1 and one from 0",
       "{} 和 {}: 发现 {} 和 {}，应为从 1 起的数和从 0 起的数"},
      {"config.json: found layer {} to be {} by {}, expected what its tensors show ({} {}); "
       "make them agree",
       "config.json: 按 {2}，层 {0} 是 {1}，应与它的张量所示相符（{3} {4}）；请使两者一致"},
      {"does not exist", "不存在"},
      {"{}: config.json says {}, the tensors show {}", "{}: config.json 说 {}，张量显示 {}"},
      {"{} heads of {}", "{} 个 {} 的头"},
      {"{} has {} columns, for {} heads", "{} 有 {} 列，对应 {} 个头"},
      {" has no gate", " 没有 gate"},
      {" has one", " 有 gate"},
      {"{} has not the rows for it", "{} 的行数与它不符"},
      {" has not the rows for it", " 的行数与它不符"},
      {"{} is there", "存在 {}"},
      {"{} projects queries at once", "{} 一次投影 query"},
      {"{} has {} rows, for {} heads with {} positional channels",
       "{} 有 {} 行，对应 {} 个头和 {} 个位置通道"},
      {"{} has {} rows, for {} heads with {} channels of values",
       "{} 有 {} 行，对应 {} 个头和 {} 个 value 通道"},
      {" is there", " 存在"},
      {"no layer has norms of queries and keys", "没有层带有 query 和 key 的 norm"},
      {"no layer has such a bias", "没有层带有这样的 bias"},
      {"no layer's linear_qkv has a bias", "没有层的 linear_qkv 带有 bias"},
      {"it must divide num_attention_heads, {}", "它必须整除 num_attention_heads，即 {}"},
      {"the tensors are of {} layers", "张量有 {} 层"},
      {"no tensor of that part has such a width", "该部分没有任何张量有这样的宽度"},
      {"the tensors are of {} prediction layers", "张量有 {} 个预测层"},
      {"{} has fewer rows", "{} 的行数更少"},
      {"output_layer.weight is missing", "缺少 output_layer.weight"},
      {" has no bias beside it", " 旁边没有 bias"},
      {"embedding.position_embeddings.weight is missing",
       "缺少 embedding.position_embeddings.weight"},
      {"no tensor has such a size", "没有这样大小的张量"},
      {"not set", "未设置"},
      {"argument {} is {}, but {}", "参数 {} 为 {}，但{}"},
      {"there are {} layers", "有 {} 层"},
      {"layer {} is of another kind", "层 {} 属于另一种"},
      {"{} shows {} for {} groups", "{0} 显示 {2} 组为 {1}"},
      {"{} makes twice the {} channels of {}", "{0} 的行数是 {2} 的 {1} 个通道的两倍"},
      {"{} makes only the {} channels of {}", "{0} 的行数只有 {2} 的 {1} 个通道那么多"},
      {"no layer has a router", "没有层带有 router"},
      {"no layer has a shared expert", "没有层带有共享专家"},
      {"no layer would have experts", "不会有层带有专家"},
      {"has a router", "有 router"},
      {"layer {} has no {}", "第 {} 层没有 {}"},
      {"has no router", "没有 router"},
      {"no layer's MLP has a bias", "没有层的 MLP 带有 bias"},
      {"config.json: found {} = {}, expected {} as its other spelling says; make them agree",
       "config.json: {} = {}，应与它的另一种写法一样为 {}；请使两者一致"},
      {"{}: found {}, expected {}; correct it or give another configuration",
       "{}: 发现 {}，应为 {}；请改正，或给出另一份配置"},
      {"True or False", "True 或 False"},
      {"{}: found {}, expected {} as {} says; make them agree",
       "{0}: 发现 {1}，{3} 说应为 {2}；请使两者一致"},
      {"config.json: found {}, expected an object", "config.json: 发现 {}，应为对象"},
      {"{}: {} is missing, which family {} needs; give a configuration that has it",
       "{0}: 缺少 {1}，家族 {2} 需要它；请给出含有它的配置"},
      {"config.json: {} is {}, but {}", "config.json: {} 为 {}，但{}"},
      {"each token goes to some of {} experts", "每个 token 分给 {} 个专家中的若干个"},
      {"config.json: quantization_config says that weights are quantised ({}), and no tensor is: "
       "loaders would miss their scales and begin with weights of no training; take "
       "quantization_config out",
       "config.json: quantization_config 说权重是量化的（{}），但没有量化的张量：加载程序会缺少 "
       "scale 而使用未经训练的权重；请去掉 quantization_config"},
      {"no model has such a size", "没有这样大小的模型"},
      {"it must divide hidden_size, {}", "它必须整除 hidden_size，即 {}"},
      {"tensor {} {} shows ", "张量 {} {} 显示 "},
      {"no layer's {} shows it", "没有层的 {} 显示它"},
      {"{} has no list {}", "{} 没有列表 {}"},
      {"the gates of experts are stored in blocks (moe_mlp_glu_interleave_size), and no rule says "
       "how the rows of their adapters are; merge the adapter where it was trained",
       "专家的门控按块存放（moe_mlp_glu_interleave_size），而没有规则说明其适配器的行如何排列；"
       "请在训练它的地方合并适配器"},
      {"argument {}: found {}, expected how many rows of a gate lie together",
       "参数 {}：值为 {}，应为门控中连续存放的行数"},
      {"tensor {}: {} rows on {} ranks do not consist of blocks of {} rows of the gate and as many "
       "of the linear part",
       "张量 {}：{} 行分布在 {} 个 rank 上，不能分成 {} 行门控与同样多行线性部分的块"},
      {"the run's arguments say {} = {}, which no config.json of family {} says; give the true one "
       "with --hf-config, or name another family with --family",
       "训练参数中 {} = {}，而家族 {} 的 config.json 无法表达；请用 --hf-config 给出真实的 "
       "config.json，"
       "或用 --family 指定其他家族"},
      {"the run's arguments have YaRN without its factor (yarn_rotary_scaling_factor, "
       "rotary_scaling_factor), which config.json of family {} must say; give the true one with "
       "--hf-config",
       "训练参数使用 "
       "YaRN，却没有其系数（yarn_rotary_scaling_factor、rotary_scaling_factor），而家族 "
       "{} 的 config.json 必须写明；请用 --hf-config 给出真实的文件"},
      {"the run's arguments say that its MLPs use {}, and config.json of family {} would say {}; "
       "give "
       "the true one with --hf-config, or name another family with --family",
       "训练参数表明其 MLP 使用 {}，而家族 {} 的 config.json 会写成 {}；请用 --hf-config "
       "给出真实的 "
       "config.json，或用 --family 指定其他家族"},
      {"{} = {}, where family {} has {}", "{0} = {1}，而家族 {2} 为 {3}"},
      {"{}: found {}, expected a number above 0", "{}: 发现 {}，应为大于 0 的数"},
      {"layers: found {}, expected at most {}", "layers: 发现 {}，最多应为 {}"},
      {"{}: found {} entries, expected {}, one per layer", "{}: 发现 {} 项，应为 {} 项，每层一项"},
      {"{}: found '{}', expected '{}' or '{}'", "{}: 发现 '{}'，应为 '{}' 或 '{}'"},
      {"{}: found {}, expected {}; correct it", "{}: 发现 {}，应为 {}；请改正"},
      {"linear_attention, full_attention, mlp or moe",
       "linear_attention、full_attention、mlp 或 moe"},
      {"letters of M, *, - and E", "由 M、*、- 和 E 组成的字母"},
      {"a whole number of layers", "整数层数"},
      {"numbers from 1 to {}", "1 到 {} 之间的数"},
      {"{}: found {} layers, expected {}; make them agree",
       "{}: 发现 {} 层，应为 {}；请使两者一致"},
      {"a list of kinds", "种类的列表"},
      {"config.json: found {} = {}, expected the layers that {} lists; make them agree",
       "config.json: {} = {}，应为 {} 列出的层；请使两者一致"},
      {"a letter per layer", "每层一个字母"},
      {"layer_types: found '{}', expected '{}' or '{}'",
       "layer_types: 发现 '{}'，应为 '{}' 或 '{}'"},
      {"window_attn_skip_freq: found {}, expected None, a number from 1 or a list",
       "window_attn_skip_freq: 发现 {}，应为 None、从 1 起的数或列表"},
      {"interleaved_attn_pattern: found {}, expected two counts",
       "interleaved_attn_pattern: 发现 {}，应为两个计数"},
      {"exists", "存在"},
  });
  return kSentences;
}

}  // namespace shardwright
