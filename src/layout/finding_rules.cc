// SPDX-License-Identifier: Apache-2.0
#include "layout/finding_rules.h"

#include <algorithm>
#include <array>

namespace shardwright {
namespace {

constexpr auto kInfo = Severity::kInfo;
constexpr auto kWarning = Severity::kWarning;
constexpr auto kError = Severity::kError;

constexpr std::array kRules = {
    FindingRule{
        "L01",
        kInfo,
        {"A loader that takes PP>1 for three coordinates expects mp_rank_{{tp}}_{{pp}}_{{ep}}, "
         "but this checkpoint only has mp_rank_{{tp}}_{{pp}}. PP does not add an expert "
         "coordinate; use the non-EP reader.",
         "若加载器因 PP>1 而按 mp_rank_{{tp}}_{{pp}}_{{ep}} 查找，则找不到：该 checkpoint 只有 "
         "mp_rank_{{tp}}_{{pp}}。PP 不会增加 expert 坐标，请使用非 EP 读取方式。"}},
    FindingRule{
        "L02",
        kInfo,
        {"EP={ep} with PP=1: Megatron writes mp_rank_{{tp}}_{{ep}} (two coordinates). Read "
         "the second coordinate as EP, not PP; do not require three.",
         "EP={ep} 且 PP=1 时，Megatron 写出的是 mp_rank_{{tp}}_{{ep}}（两个坐标）。第二个坐标应按 "
         "EP 而不是 PP 读取，不要强制要求三维。"}},
    FindingRule{
        "L03",
        kInfo,
        {"An expert parallel size of 1 adds no directory coordinate; treat it as \"no EP\".",
         "expert parallel size 为 1 不会增加目录坐标，应视为未启用 EP。"}},
    FindingRule{"L04",
                kWarning,
                {"Directories have two coordinates and no usable args: either (tp,pp) or (tp,ep). "
                 "Evidence so far: {evidence}. Pass --pp or --ep to confirm.",
                 "目录只有两个坐标且无可用 args：可能是 (tp,pp) 或 "
                 "(tp,ep)。现有证据：{evidence}。请用 --pp "
                 "或 --ep 指定。"}},
    FindingRule{
        "L05",
        kError,
        {"Runtime TP/PP/EP/ETP = {believed} but disk holds {disk}. Legacy checkpoints do not "
         "reshard on load; convert first: {command}",
         "运行参数 TP/PP/EP/ETP = {believed}，磁盘为 {disk}。legacy checkpoint "
         "加载时不能重新切分，请先转换：{command}"}},
    FindingRule{"L06",
                kInfo,
                {"ETP={etp} with TP={tp}: only {count} of {product} (tp,ep) directories exist by "
                 "design; none of the others belongs to a rank.",
                 "ETP={etp}、TP={tp}：按设计 {product} 个 (tp,ep) 组合中只存在 {count} "
                 "个目录，其余不对应任何 rank。"}},
    FindingRule{
        "L07",
        kError,
        {"Dense shards for tp={ranks} were never written (Megatron before core 0.19 with "
         "TP > ETP×EP, PR #4678). They cannot be recovered from this checkpoint.",
         "tp={ranks} 的 dense 分片从未写出（core 0.19 之前的 Megatron 在 TP > ETP×EP 时的缺陷，PR "
         "#4678），无法从该 checkpoint 恢复。"}},
    FindingRule{"L08",
                kError,
                {"ETP={etp} {relation} TP={tp} cannot be stored in mp_rank naming; expert slices "
                 "overwrote each other.",
                 "ETP={etp} {relation} TP={tp} 无法用 mp_rank 命名表示，专家切片已互相覆盖。"}},
    FindingRule{"L09",
                kError,
                {"Missing shard {shard}; found {found} of {expected}.",
                 "缺少分片 {shard}；已找到 {found}/{expected}。"}},
    FindingRule{"L10",
                kWarning,
                {"The {place} coordinate is the data-parallel rank of {writer} ({file}), not EP.",
                 "{place}坐标是{writer}的数据并行 rank（{file}），不是 EP。"}},
    FindingRule{"L11",
                kError,
                {"Shard contains {count} virtual chunks ({keys}) but VPP={vpp} was requested.",
                 "分片包含 {count} 个虚拟段（{keys}），但请求的 VPP={vpp}。"}},
    FindingRule{
        "L12",
        kInfo,
        {"Stage layer counts on disk are {counts}; the even split would be {even}. Pass the "
         "recorded layout.",
         "磁盘上各 stage 层数为 {counts}，均分应为 {even}，请使用记录的切分方案。"}},
    FindingRule{"L13",
                kInfo,
                {"Stage {stage} has no decoder layers (vision/embedding only); this is valid.",
                 "stage {stage} 没有 decoder 层（仅视觉/embedding），属正常情况。"}},
    FindingRule{"L14",
                kError,
                {"Tracker points to {target} but {folder} is missing or partial.",
                 "tracker 指向 {target}，但 {folder} 不存在或不完整。"}},
    FindingRule{"L15",
                kInfo,
                {"You passed the iteration directory; Megatron --load expects its parent.",
                 "传入的是 iteration 目录，Megatron 的 --load 需要其父目录。"}},
    FindingRule{"L16",
                kWarning,
                {"Found {file} where model_optim_rng.pt is expected.",
                 "期望 model_optim_rng.pt，实际为 {file}。"}},
    FindingRule{
        "L17",
        kWarning,
        {"Padded vocab {disk} on disk vs {required} required for TP={tp}; rows ≥ {vocab} are "
         "padding (policy: {policy}).",
         "磁盘 padded vocab 为 {disk}，TP={tp} 需要 {required}；第 {vocab} "
         "行之后为填充（策略：{policy}）。"}},
    FindingRule{"L18",
                kError,
                {"num_experts={experts} is not divisible by EP={ep}.",
                 "num_experts={experts} 不能被 EP={ep} 整除。"}},
    FindingRule{
        "L19",
        kError,
        {"Shards hold different local experts under the same names; reading only ep=0 would "
         "drop {percent}% of experts. Pass --ep {ep} and read with the EP-aware loader.",
         "各分片在相同名字下保存不同的本地专家；只读 ep=0 会丢失 {percent}% 的专家。请传入 --ep "
         "{ep}，并使用支持 EP 的读取方式。"}},
    FindingRule{
        "L20",
        kWarning,
        {"{name}: all TP shards are identical; it is replicated, not sharded. Concatenation "
         "would give {shape}.",
         "{name}：所有 TP 分片完全相同，属复制而非切分；拼接会得到错误形状 {shape}。"}},
    FindingRule{"L21",
                kError,
                {"{name} must be identical across {axis} but differs in {count} bytes (first at "
                 "{offset}).",
                 "{name} 在 {axis} 上应一致，但有 {count} 字节不同（首个偏移 {offset}）。"}},
    FindingRule{
        "L22",
        kError,
        {"Metadata covers only {percent}% of {name}; {count} entries have such holes. A cover "
         "too small by the factor ETP is the replica_id defect (Megatron-LM #1836).",
         "元数据只覆盖 {name} 的 {percent}%；共 {count} 个条目有空洞。若恰好缩小 ETP 倍，则符合 "
         "ETP "
         "replica_id 缺陷（Megatron-LM #1836）。"}},
    FindingRule{"L23",
                kWarning,
                {"Both {chosen} and {other} found in {folder}; using {chosen} because {why}.",
                 "{folder} 中同时存在 {chosen} 与 {other}，因{why}，采用 {chosen}。"}},
    FindingRule{"L24",
                kInfo,
                {"hc_head.* is replicated; a name rule on \"head\" wrongly marks it as sharded "
                 "(found {name}).",
                 "hc_head.* 是复制张量；按 \"head\" 匹配的规则会误判为切分（发现 {name}）。"}},
    FindingRule{"L25",
                kInfo,
                {"Encoder TP={encoder} differs from language TP={tp}; shards repeat with period "
                 "{encoder}.",
                 "编码器 TP={encoder} 与语言模型 TP={tp} 不同，分片以 {encoder} 为周期重复。"}},
    FindingRule{"L26",
                kInfo,
                {"Only common.pt is present: weights are in the sibling safetensors (ms-swift).",
                 "只有 common.pt：权重在同级 safetensors 中（ms-swift）。"}},
    FindingRule{"L27",
                kError,
                {"Two saves are mixed in one directory: {first} and {second}. Keep one of them.",
                 "同一目录混有两次保存：{first} 与 {second}。请只保留其中之一。"}},
    FindingRule{"L28",
                kInfo,
                {"{name} in the checkpoint is left over from an interrupted tool; it is ignored.",
                 "checkpoint 中的 {name} 是工具中断后的残留，已忽略。"}},
    FindingRule{
        "L29",
        kWarning,
        {"The mp_rank_* folders hold no model, only {files}; nothing here is a model shard.",
         "mp_rank_* 目录中没有模型，只有 {files}；这里没有模型分片。"}},
    FindingRule{
        "L30",
        kError,
        {"args record TP/PP/EP/ETP = {recorded}, whose folders are {expected}; the folders "
         "here are {disk}.",
         "args 记录的 TP/PP/EP/ETP = {recorded}，其目录应为 {expected}；实际目录为 {disk}。"}},
    FindingRule{
        "L31",
        kWarning,
        {"All data are there, but a Megatron run of TP={tp} EP={ep} ETP={etp} also asks for "
         "{name}, which no rank writes; rename or convert before loading.",
         "数据完整，但 TP={tp} EP={ep} ETP={etp} 的 Megatron 还会读取从未写出的 "
         "{name}；加载前请改名或转换。"}},
    FindingRule{
        "L32",
        kError,
        {"EP={ep} asks for the EP-aware loader, but the disk shows no experts split by EP; "
         "drop --ep.",
         "EP={ep} 要求使用支持 EP 的读取方式，但磁盘上没有按 EP 切分的专家；请去掉 --ep。"}},
    FindingRule{
        "L33",
        kError,
        {"The router has {experts} experts, but {ep} ranks with {local} local experts hold "
         "{held}.",
         "router 有 {experts} 个专家，但 {ep} 个 rank、每个 {local} 个本地专家，共 {held} 个。"}},
    FindingRule{"L34",
                kInfo,
                {"This is {what}. shardwright does not convert it; it is read by {reader}.",
                 "类型：{what}。shardwright 不转换它；读取工具：{reader}。"}},
    FindingRule{"L35", kError, {"{file} cannot be read: {error}", "{file} 无法读取：{error}"}},
    FindingRule{"L36",
                kWarning,
                {"Names have three numbers although PP=1 (LLaVA-OneVision-2's tools write this); "
                 "Megatron itself looks for {expected}.",
                 "PP=1 却使用三个数字命名（LLaVA-OneVision-2 的工具如此写）；Megatron 本身查找 "
                 "{expected}。"}},
    FindingRule{"L37",
                kError,
                {"{name}: {what} are not in these files. An early MLite took them for replicas of "
                 "what it kept; {experts} experts over EP={ep} are expected. They cannot be "
                 "recovered from this checkpoint.",
                 "{name}：文件中缺少{what}。早期 MLite 误将其当作副本；应有 {experts} 个专家，"
                 "EP={ep}。无法从该 checkpoint 恢复。"}},
    FindingRule{"L38",
                kError,
                {"{layers} layers by name, {expected} in the model: Megatron-FSDP numbers the "
                 "layers of each of {stages} pipeline stages alike, and those of one name replaced "
                 "each other.",
                 "按名称只有 {layers} 层，模型应有 {expected} 层：Megatron-FSDP 在 {stages} 个 "
                 "pipeline stage 中使用相同的层编号，同名的层互相覆盖。"}},
    FindingRule{"L39",
                kError,
                {"How many tensor ranks share out the encoder cannot be told: {error}",
                 "无法确定编码器由多少个 tensor rank 切分：{error}"}},
};

// Appends the text with its parameters; a name without a parameter stays as it is, which the tests
// of the table look for.
std::string filled(std::string_view text, std::span<const Parameter> parameters,
                   Language language) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c != '{' && c != '}') {
      result += c;
      continue;
    }
    if (i + 1 < text.size() && text[i + 1] == c) {
      result += c;
      ++i;
      continue;
    }
    const std::size_t end = text.find('}', i);
    const std::string_view name = text.substr(i + 1, end - i - 1);
    const auto found = std::ranges::find(parameters, name, &Parameter::name);
    result += found == parameters.end() ? std::string(text.substr(i, end + 1 - i))
                                        : found->value.in(language);
    i = end;
  }
  return result;
}

}  // namespace

Phrase fill(const Template& text, std::span<const Parameter> parameters) {
  return {filled(text.english, parameters, Language::kEnglish),
          filled(text.chinese, parameters, Language::kChinese)};
}

Phrase fill(const Template& text, std::initializer_list<Parameter> parameters) {
  return fill(text, std::span(parameters.begin(), parameters.size()));
}

std::span<const FindingRule> finding_rules() { return kRules; }

Finding make_finding(std::string_view code, std::initializer_list<Parameter> parameters) {
  const auto rule = std::ranges::find(kRules, code, &FindingRule::code);
  return {std::string(rule->code), rule->severity, fill(rule->message, parameters)};
}

std::vector<std::string> finding_codes() {
  std::vector<std::string> codes;
  for (const FindingRule& rule : kRules) codes.emplace_back(rule.code);
  return codes;
}

bool Diagnosis::has_errors() const {
  return std::ranges::any_of(
      findings, [](const Finding& finding) { return finding.severity == Severity::kError; });
}

}  // namespace shardwright
