// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <span>

#include "language/chinese_tables.h"

namespace shardwright {

std::span<const Sentence> chinese_of_quantisation() {
  static constexpr auto kSentences = std::to_array<Sentence>({
      {"{}: found {} columns, expected a multiple of group_size {} (quantization_config in "
       "config.json)",
       "{}: 发现 {} 列，应为 group_size {} 的倍数（config.json 的 quantization_config）"},
      {"{}: found zero points of weights that are symmetric by quantization_config in "
       "config.json",
       "{}: 有零点，而按 config.json 的 quantization_config 权重是对称的"},
      {"{}: found {}, expected bytes of two fp4 values in {} axes",
       "{}: 发现 {}，应为 {} 个轴、每字节两个 fp4 值"},
      {"{}: found {} columns, expected a multiple of {}, as {} has",
       "{0}: 发现 {1} 列，应与 {3} 一样为 {2} 的倍数"},
      {"{}: found {}, expected {} as the groups of {} of {}",
       "{0}: 发现 {1}，作为 {4} 的 {3} 的组应为 {2}"},
      {"{}: found {}, expected one float32", "{}: 发现 {}，应为一个 float32"},
      {"{}: found {} rows, expected a multiple of group_size {} (quantization_config in "
       "config.json)",
       "{}: 发现 {} 行，应为 group_size {} 的倍数（config.json 的 quantization_config）"},
      {"{}: its shape is too large", "{}: 它的形状过大"},
      {"{}: found packed values without {}{}, which they mean nothing without",
       "{}: 有打包的值而没有 {}{}，缺了它就没有意义"},
      {"{}: found {}, expected {} of two axes", "{}: 发现 {}，应为两个轴的 {}"},
      {"{}: found {}, expected {} beside {} {}", "{0}: 发现 {1}，{3} {4} 旁边应为 {2}"},
      {"{}: found scales of {}, expected float32, bfloat16 or float16",
       "{}: scale 为 {}，应为 float32、bfloat16 或 float16"},
      {"{}: found shape {}, expected {} beside {} {} (quantization_config in config.json)",
       "{0}: 形状为 {1}，{3} {4} 旁边应为 {2}（config.json 的 quantization_config）"},
      {"{}: found {} columns, expected a multiple of {}", "{}: 发现 {} 列，应为 {} 的倍数"},
      {"{}: found {}, expected two whole numbers", "{}: 发现 {}，应为两个整数"},
      {"{}: found {}, expected the shape that {} {} has with {} integers of {} bits in each word",
       "{0}: 发现 {1}，应为 {2} {3} 在每个字含 {4} 个 {5} 位整数时的形状"},
      {"{}: found group {} for column {}, expected 0 to {}",
       "{0}: 列 {2} 的组为 {1}，应为 0 到 {3}"},
      {"{}: found {} columns in group {}, expected {}", "{0}: 组 {2} 中有 {1} 列，应为 {3}"},
      {"{}: found shape {}, expected one column for each integer of 2, 4 or 8 bits of {} {}",
       "{}: 形状为 {}，{} {} 的每个 2、4 或 8 位整数应有一列"},
      {"{}: found shape {}, expected groups of equal size of {} columns",
       "{}: 形状为 {}，{} 列应分为大小相等的组"},
      {"{}: fits several of config_groups in quantization_config of config.json, expected one",
       "{}: 与 config.json 的 quantization_config 中的多个 config_groups 相符，应为一个"},
      {"{}: found {}, and no such weights in quantization_config of config.json",
       "{}: 发现 {}，config.json 的 quantization_config 中没有这样的权重"},
      {"{}: found {} too, expected one of them", "{}: 还有 {}，应只有其中一个"},
      {"tensor {}: found {}, and no quantization_config in config.json that says what its "
       "scales are; give the folder of the model's own config.json (--hf-config), or copy the "
       "tensors as they are (--to safetensors)",
       "张量 {}: 发现 {}，而 config.json 中没有说明其 scale 的 quantization_config；请给出模型自"
       "己的 config.json 的文件夹（--hf-config），或照原样复制张量（--to safetensors）"},
      {"config.json: quantization_config: found quant_method {} {} (tensor {}), expected one "
       "that docs/formats/quantised.md lists; give the model that it was made of, or copy the "
       "tensors "
       "as they are (--to safetensors)",
       "config.json: quantization_config: 发现 quant_method {} {}（张量 {}），应为 "
       "docs/formats/quantised.md 列出的一种；请给出量化前的模型，或照原样复制张量（--to "
       "safetensors）"},
      {"tensor {}: found {}, expected {} with scales", "张量 {}: 发现 {}，应为带 scale 的 {}"},
      {"tensor {}: found scales {} and {}, expected one of them",
       "张量 {}: 有 scale {} 和 {}，应只有其中一个"},
      {"tensor {}: found {} without scales, expected {}_scale_inv or {}_scale; values without "
       "their scales mean nothing",
       "张量 {}: 发现没有 scale 的 {}，应有 {}_scale_inv 或 {}_scale；没有 scale 的值没有意义"},
      {"tensor {}: found scales of {}, expected float32, bfloat16, float16 or {}",
       "张量 {}: scale 为 {}，应为 float32、bfloat16、float16 或 {}"},
      {"one for the tensor or one for each row", "整个张量一个，或每行一个"},
      {"one for the tensor", "整个张量一个"},
      {"one for each row", "每行一个"},
      {"one for each block of {} x {}", "每个 {} x {} 的块一个"},
      {"tensor {}: found shape {}, expected {} of {} {} (quantization_config in config.json)",
       "张量 {0}: 形状为 {1}，{3} {4} 应为 {2}（config.json 的 quantization_config）"},
      {"tensor {}: found fp4 values without scales, expected {}{}",
       "张量 {}: 有 fp4 值而没有 scale，应有 {}{}"},
      {"tensor {}: found {} too, expected one of them", "张量 {}: 还有 {}，应只有其中一个"},
      {"tensor {}: found {} {}, expected uint8 (experts, rows, groups, 16)",
       "张量 {}: 发现 {} {}，应为 uint8（专家, 行, 组, 16）"},
      {"tensor {}: found {} {}, expected uint8 {} as the groups of {}",
       "张量 {0}: 发现 {1} {2}，作为 {4} 的组应为 uint8 {3}"},
      {"tensor {}: its shape is too large", "张量 {}: 它的形状过大"},
      {"tensor {}: found scales without values, expected {}{}",
       "张量 {}: 有 scale 而没有值，应有 {}{}"},
      {"{}: found {} {}, which belongs to no packed weights that quantization_config of "
       "config.json describes",
       "{}: 发现 {} {}，不属于 config.json 的 quantization_config 所描述的任何打包权重"},
      {"{}: found scales without values, expected {}{}", "{}: 有 scale 而没有值，应有 {}{}"},
      {"{}: found {} {}, and nothing in quantization_config of config.json that says how such "
       "weights are multiplied",
       "{}: 发现 {} {}，config.json 的 quantization_config 没有说明这样的权重如何相乘"},
      {"tensor {}: found scales {}, expected {} of {}", "张量 {0}: 有 scale {1}，应为 {3} 的 {2}"},
      {"whose values are ", "，其值为 "},
      {"without values", "而没有值"},
      {"config.json: quantization_config: found {} {}, expected two positive numbers",
       "config.json: quantization_config: {} 为 {}，应为两个正数"},
      {"config.json: quantization_config: found {} {}, expected text",
       "config.json: quantization_config: {} 为 {}，应为文本"},
      {"{}: tensor {}: scale number {} is NaN, infinite or divides by 0, so the weights that it is "
       "of mean nothing; get the file anew, or leave the tensor out (--exclude)",
       "{}: 张量 {}: 第 {} 个 scale 是 NaN、无穷大或除以 "
       "0，它所属的权重没有意义；请重新获取该文件，或用 "
       "--exclude 排除该张量"},
      {"config.json: quantization_config: found {} {}, expected a whole number",
       "config.json: quantization_config: {} 为 {}，应为整数"},
      {"config.json: quantization_config: found {} {}, expected true or false",
       "config.json: quantization_config: {} 为 {}，应为 true 或 false"},
      {"config.json: quantization_config: found group_size {}, expected a positive number or -1",
       "config.json: quantization_config: group_size 为 {}，应为正数或 -1"},
      {"with weights of {} bits and type '{}'", "（权重为 {} 位，type 为 '{}'）"},
      {"with strategy '{}'", "（strategy 为 '{}'）"},
      {"with two strategies of eight-bit floats", "（有两种八位浮点的 strategy）"},
      {"with fp4 weights of strategy '{}' and group_size {}",
       "（fp4 权重的 strategy 为 '{}'，group_size 为 {}）"},
      {"with weights of {} bits and type 'int'", "（权重为 {} 位，type 为 'int'）"},
      {"with integers of format '{}'", "（整数的 format 为 '{}'）"},
      {"with {} integers of strategy '{}'", "（{} 整数的 strategy 为 '{}'）"},
      {"with format '{}'", "（format 为 '{}'）"},
      {"with sparsity_config of format '{}'", "（sparsity_config 的 format 为 '{}'）"},
      {"with transform_config, which turns weights", "（有 transform_config，它会旋转权重）"},
      {"without weights in its config_groups", "（config_groups 中没有 weights）"},
      {"with {} bits", "（{} 位）"},
      {"with version '{}'", "（version 为 '{}'）"},
      {"with packing_format '{}'", "（packing_format 为 '{}'）"},
      {"with data_type '{}'", "（data_type 为 '{}'）"},
      {"with quantised activations (act_bits)", "（激活值也量化了，act_bits）"},
      {"with modules of other bits or group_size (extra_config)",
       "（有些模块的 bits 或 group_size 不同，extra_config）"},
      {"with backend 'llm-awq'", "（backend 为 'llm-awq'）"},
      {"which is not read", "（不能读取）"},
      {"config.json: quantization_config: found {}, expected an object",
       "config.json: quantization_config: 发现 {}，应为对象"},
      {"config.json: quantization_config leaves out {}, a regular expression; name the "
       "modules instead (`*` stands for anything)",
       "config.json: quantization_config 以正则表达式 {} 排除模块；请改为写出模块名（`*` "
       "代表任意内容）"},
      {"config.json: found model_type '{}', whose modules are not loaded from blocks of "
       "fp8; leave --quantise out{}",
       "config.json: model_type 为 '{}'，其模块无法从 fp8 分块加载；请去掉 --quantise{}"},
      {", or use --quantise mxfp4", "，或使用 --quantise mxfp4"},
      {"--dtype: {} tensors ({} the first) keep their dtype: the model computes with them in "
       "float32",
       "--dtype: {} 个张量（第一个为 {}）保持其 dtype：模型以 float32 用它们计算"},
      {"--extend-vocab: tensor {} is stored quantised, and no rows can be added to it; "
       "--dtype bfloat16 writes what its numbers mean",
       "--extend-vocab: 张量 {} 以量化形式存储，无法添加行；--dtype bfloat16 写出其数值"},
      {"{}: tensor {} is part of a low-rank adapter, and the mean of its factors is "
       "not that of what they add; merge each into its base (merge-adapter) and "
       "average these",
       "{}: 张量 {} 属于低秩 adapter，其因子的平均不等于增量的平均；请先用 merge-adapter "
       "合并到各自的"
       "基座，再对结果求平均"},
      {"config.json: found model_type '{}', whose tables are loaded with scales within their rows, "
       "which --quantise does not write; leave it out for what the numbers mean in bfloat16",
       "config.json: model_type 为 '{}'，其表加载时的缩放因子位于行内，--quantise "
       "不写这种形式；请去掉它，"
       "得到 bfloat16 的数值"},
      {"config.json: found model_type '{}', expected 'gpt_oss': no other model is loaded with "
       "its experts as mxfp4 blocks; --quantise fp8-block is for other models",
       "config.json: model_type 为 '{}'，应为 'gpt_oss'：没有别的模型以 mxfp4 块加载专家；"
       "--quantise fp8-block 适用于其他模型"},
      {"symmetric", "对称"},
      {"asymmetric", "非对称"},
  });
  return kSentences;
}

}  // namespace shardwright
