// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

namespace shardwright {

/// What diagnose says, in one language: parameters stand in braces (`EP={ep}`), a doubled brace is
/// one.
struct Text {
  std::string_view key;
  std::string_view text;
};

// In order of the keys, which are those of texts_chinese.cc too. `L07` is a finding; other keys
// begin with what they are about.
inline constexpr std::array kEnglishTexts = {
    Text{"L01",
         "A loader that takes PP>1 for three coordinates expects mp_rank_{{tp}}_{{pp}}_{{ep}}, "
         "but this checkpoint only has mp_rank_{{tp}}_{{pp}}. PP does not add an expert "
         "coordinate; use the non-EP reader."},
    Text{"L02",
         "EP={ep} with PP=1: Megatron writes mp_rank_{{tp}}_{{ep}} (two coordinates). Read the "
         "second coordinate as EP, not PP; do not require three."},
    Text{"L03",
         "An expert parallel size of 1 adds no directory coordinate; treat it as \"no EP\"."},
    Text{"L04",
         "Directories have two coordinates and no usable args: either (tp,pp) or (tp,ep). "
         "Evidence so far: {evidence}. Pass --pp or --ep to confirm."},
    Text{"L05",
         "Runtime TP/PP/EP/ETP = {believed} but disk holds {disk}. Legacy checkpoints do not "
         "reshard on load; convert first: {command}"},
    Text{"L06",
         "ETP={etp} with TP={tp}: only {count} of {product} (tp,ep) directories exist by design; "
         "none of the others belongs to a rank."},
    Text{"L07",
         "Dense shards for tp={ranks} were never written (Megatron before core 0.19 with TP > "
         "ETP×EP, PR #4678). They cannot be recovered from this checkpoint."},
    Text{"L08",
         "ETP={etp} {relation} TP={tp} cannot be stored in mp_rank naming; expert slices "
         "overwrote each other."},
    Text{"L09", "Missing shard {shard}; found {found} of {expected}."},
    Text{"L10", "The {place} coordinate is the data-parallel rank of {writer} ({file}), not EP."},
    Text{"L11", "Shard contains {count} virtual chunks ({keys}) but VPP={vpp} was requested."},
    Text{"L12",
         "Stage layer counts on disk are {counts}; the even split would be {even}. Pass the "
         "recorded layout."},
    Text{"L13", "Stage {stage} has no decoder layers (vision/embedding only); this is valid."},
    Text{"L14", "Tracker points to {target} but {folder} is missing or partial."},
    Text{"L15", "You passed the iteration directory; Megatron --load expects its parent."},
    Text{"L16", "Found {file} where model_optim_rng.pt is expected."},
    Text{"L17",
         "Padded vocab {disk} on disk vs {required} required for TP={tp}; rows ≥ {vocab} are "
         "padding (policy: {policy})."},
    Text{"L18", "num_experts={experts} is not divisible by EP={ep}."},
    Text{"L19",
         "Shards hold different local experts under the same names; reading only ep=0 would drop "
         "{percent}% of experts. Pass --ep {ep} and read with the EP-aware loader."},
    Text{"L20",
         "{name}: all TP shards are identical; it is replicated, not sharded. Concatenation would "
         "give {shape}."},
    Text{
        "L21",
        "{name} must be identical across {axis} but differs in {count} bytes (first at {offset})."},
    Text{"L22",
         "Metadata covers only {percent}% of {name}; {count} entries have such holes. A cover too "
         "small by the factor ETP is the replica_id defect (Megatron-LM #1836)."},
    Text{"L23",
         "{folder} holds {count} checkpoints: {candidates}; name one with --as FORMAT or by its "
         "own folder. This is said of {chosen}, which Megatron would look for first."},
    Text{"L24",
         "hc_head.* is replicated; a name rule on \"head\" wrongly marks it as sharded (found "
         "{name})."},
    Text{
        "L25",
        "Encoder TP={encoder} differs from language TP={tp}; shards repeat with period {encoder}."},
    Text{"L26", "Only common.pt is present: weights are in the sibling safetensors (ms-swift)."},
    Text{"L27", "Two saves are mixed in one directory: {first} and {second}. Keep one of them."},
    Text{"L28", "{name} in the checkpoint is left over from an interrupted tool; it is ignored."},
    Text{"L29",
         "The mp_rank_* folders hold no model, only {files}; nothing here is a model shard."},
    Text{"L30",
         "args record TP/PP/EP/ETP = {recorded}, whose folders are {expected}; the folders here "
         "are {disk}."},
    Text{"L31",
         "All data are there, but a Megatron run of TP={tp} EP={ep} ETP={etp} also asks for "
         "{name}, which no rank writes; rename or convert before loading."},
    Text{"L32",
         "EP={ep} asks for the EP-aware loader, but the disk shows no experts split by EP; drop "
         "--ep."},
    Text{
        "L33",
        "The router has {experts} experts, but {ep} ranks with {local} local experts hold {held}."},
    Text{"L34", "This is {what}. shardwright does not convert it; it is read by {reader}."},
    Text{"L35", "{file} cannot be read: {error}"},
    Text{"L36",
         "Names have three numbers although PP=1 (LLaVA-OneVision-2's tools write this); Megatron "
         "itself looks for {expected}."},
    Text{"L37",
         "{name}: {what} are not in these files. An early MLite took them for replicas of what it "
         "kept; {experts} experts over EP={ep} are expected. They cannot be recovered from this "
         "checkpoint."},
    Text{"L38",
         "{layers} layers by name, {expected} in the model: Megatron-FSDP numbers the layers of "
         "each of {stages} pipeline stages alike, and those of one name replaced each other."},
    Text{"L39", "How many tensor ranks share out the encoder cannot be told: {error}"},
    Text{"L40",
         "{folder} holds another rank's file: {says}. Folders were renamed, swapped or copied; "
         "give each file back its rank's folder."},
    Text{"L41",
         "Nothing here is a checkpoint that is known ({names}). Give the folder with the data or "
         "a run's root."},
    Text{"L42",
         "The sizes given (TP/PP/EP/ETP = {believed}) ask for folders {asked}, but the folders "
         "here are {disk}."},
    Text{"L43",
         "{file}: a loader that obeys this pickle runs {names}. Nothing was run here; do not load "
         "the file with torch or Python."},
    Text{"L44", "{file}: a loader imports {names}, of software that is not known here."},
    Text{
        "L45",
        "{count} tensors are stored once by each tensor rank under names of its own, such as "
        "{name} "
        "(Megatron-LM PR 3392, not merged): stock Megatron-Core looks for {tensor} and cannot load "
        "them. Every conversion writes {tensor}."},
    Text{"L46",
         "Parts of {count} tensors are stored once more for the ranks that load them, such as "
         "{name} "
         "(Megatron-LM PRs 4628 and 5556, not merged). Stock Megatron-Core loads {tensor} and does "
         "not look at them."},
    Text{"args.pp_ep", "args record PP={pp} and EP={ep}"},
    Text{"args.writer", "args are those of {writer}"},
    Text{"bytes_compared", "{bytes} bytes of tensors were read to compare replicas"},
    Text{"components.empty", "component {name} of the run has no tensors here"},
    Text{"components.unrecorded", "nothing records the components' sizes; they load at any"},
    Text{"contents.contradicted", "{error}"},
    Text{"contents.nothing_stored", "{error}"},
    Text{"contents.unloadable", "{error}"},
    Text{"data_in", "the data are in {steps}"},
    Text{"file.empty", "it has no bytes"},
    Text{"folders.beyond", "{first} beyond these ({count} in all)"},
    Text{"format.consolidated", "Meta's consolidated.*.pth: a Llama cut by model-parallel rank"},
    Text{"format.dcp",
         "a .metadata file without metadata.json: plain torch.distributed.checkpoint"},
    Text{"format.deepspeed_pipe",
         "a file for each layer and tensor-parallel rank, as Megatron-DeepSpeed writes them"},
    Text{"format.deepspeed_universal",
         "a DeepSpeed universal checkpoint: a folder for each parameter"},
    Text{"format.deepspeed_zero",
         "DeepSpeed's files of ranks (what it calls pp_rank is the data-parallel rank)"},
    Text{"format.fsdp_dtensor", "DCP files with Megatron-FSDP's names (fsdp_dtensor)"},
    Text{"format.fsdp_ranks",
         "model state dicts of FSDP, one file of each rank, as verl and SkyRL save them"},
    Text{"format.hf", "safetensors files with Hugging Face names"},
    Text{"format.hf_dcp",
         "a Hugging Face model in DCP files, as FSDP, FSDP2 and torchtitan save it"},
    Text{"format.mimo",
         "tensors of a MIMO model in torch_dist: each component had ranks of its own"},
    Text{"format.mlite", "DCP files that MLite wrote, with its names"},
    Text{"format.names_only", "only the names of files say so; what is in them does not"},
    Text{"format.nemo1", "weights of NeMo 1"},
    Text{"format.nemo2", "torch_dist with NeMo 2's names, beside its context"},
    Text{
        "format.safetensors",
        "safetensors files with Megatron's names: what --to safetensors writes of its checkpoints"},
    Text{"format.torch_dist",
         "metadata.json names torch_dist: layout is in the metadata, not in names"},
    Text{"format.torch_files", "torch files of a state dict with Hugging Face names"},
    Text{"kind.dense", "a dense model: no tensor belongs to an expert"},
    Text{"kind.experts", "a mixture of experts"},
    Text{"kind.experts_counted", "a mixture of {experts} experts"},
    Text{"label.complete", "complete"},
    Text{"label.component", "component"},
    Text{"label.component_tensors", "{sizes}; {count} tensors"},
    Text{"label.evidence", "evidence"},
    Text{"label.layout", "layout"},
    Text{"label.loader", "loader"},
    Text{"label.missing", "missing"},
    Text{"label.names_carry_no_ranks", "names carry no ranks"},
    Text{"label.next", "next"},
    Text{"label.no", "no"},
    Text{"label.none", "nothing to report"},
    Text{"label.on_disk", "on disk"},
    Text{"label.pattern", "pattern"},
    Text{"label.reason", "reason"},
    Text{"label.unexpected", "unexpected"},
    Text{"label.unknown", "unknown"},
    Text{"label.yes", "yes"},
    Text{"loader.asked", "{note}; the sizes given, without --ep, ask for the non-EP loader"},
    Text{"loader.experts",
         "{numbers}; experts differ along ep, everything else is a replica along ep"},
    Text{"loader.number", "number {number} is {name}"},
    Text{"loader.numbers", "{before}, number {number} is {name}"},
    Text{"mlite.lost_both",
         "the experts of all EP ranks but one, or the rows of all expert data ranks but one,"},
    Text{"mlite.lost_experts", "the experts of all EP ranks but one"},
    Text{"mlite.lost_rows", "the rows of all expert data ranks but one"},
    Text{"model.unchecked",
         "what the run says of the model was not held against the tensors: {why}"},
    Text{"none", "none"},
    Text{"nothing_known", "nothing here is a checkpoint that we know: {names}"},
    Text{"numbers.four", "four numbers: AIAK's tools write tp, pp, dp, ep"},
    Text{"numbers.one", "one number: the tensor rank; no pipeline, no expert parallelism"},
    Text{"numbers.three", "three numbers: tensor, pipeline and expert rank"},
    Text{"numbers.three_dense", "three numbers but no experts: the third is a data-parallel rank"},
    Text{"padding.last_row", "last-row"},
    Text{"padding.other", "neither zero nor the last row"},
    Text{"padding.unread", "unknown, no bytes were read"},
    Text{"padding.zero", "zero"},
    Text{"pickles_audited",
         "what pickles would run was looked for in {files} files, not in {more} more; verify "
         "looks at all"},
    Text{"pickles_read", "read without running anything: {names}"},
    Text{"place.last", "last"},
    Text{"place.third", "third"},
    Text{"rank.claimed",
         "its arguments say that rank {rank} of {world} wrote it, whose folder is {folder}"},
    Text{"rank.holds_embedding", "it holds the embedding, which the first pipeline stage has"},
    Text{"rank.holds_norm",
         "it holds the norm behind the last layer, which the last pipeline stage has"},
    Text{"rank.lacks_embedding", "it lacks the embedding, which the first pipeline stage has"},
    Text{"rank.lacks_norm",
         "it lacks the norm behind the last layer, which the last pipeline stage has"},
    Text{"rank.other_iteration", "it is of iteration {iteration}, {first} of iteration {other}"},
    Text{"rank.other_sizes", "its arguments record other parallel sizes than those of {first}"},
    Text{"ranks.dataloader_only", "rank folders with states of data loaders and no model"},
    Text{"ranks.no_model", "rank folders without a model's file"},
    Text{"ranks.optimizer_only", "rank folders with an optimizer's files and no model"},
    Text{"ranks.two_saves",
         "folders with differently many numbers all hold models: which save is meant shows in "
         "none of them; move one of them away"},
    Text{"reader.common_only", "shardwright, given the parent folder"},
    Text{"reader.cornstarch", "Cornstarch (ColossalAI's checkpoint IO)"},
    Text{"reader.dataloader", "Megatron-Energon, through --dataloader-save"},
    Text{"reader.deep_speed", "DeepSpeed's load_checkpoint, or shardwright, given its folder"},
    Text{"reader.gradients", "torch.load"},
    Text{"reader.mlite", "MLite on equally many ranks"},
    Text{"reader.moe", "DeepSpeed's load_checkpoint"},
    Text{"reader.nemo_one", "shardwright, given the .nemo file itself (a .ckpt by NeMo 1 only)"},
    Text{"reader.non_persistent", "the Megatron run that wrote it"},
    Text{"reader.optimizer", "the Megatron run that wrote it"},
    Text{"reader.peft", "shardwright merge-adapter, with its base model; peft"},
    Text{"reader.pipe", "DeepSpeed's load_checkpoint"},
    Text{"reader.rank_folder", "shardwright, given its parent folder"},
    Text{"reader.verl_fsdp", "verl's model merger (python -m verl.model_merger)"},
    Text{"reader.zarr", "Megatron-Core 0.15 or older; re-save it there as torch_dist"},
    Text{"replicas.compared", "{count} replicas were compared, {bytes} bytes read"},
    Text{"replicas.differ", "{error}"},
    Text{"replicas.names", "{error}"},
    Text{"replicas.uncompared", "replicas were not compared: {error}"},
    Text{"replicas.unread", "{error}"},
    Text{"second.all_dense", "all {all} shards read hold a whole model without experts"},
    Text{"second.all_experts",
         "all {all} shards read hold the embedding, the final norm and experts"},
    Text{"second.caller", "the caller passed {flag}"},
    Text{"second.ends", "of {all} shards read, {a} hold the embedding and {b} the final norm"},
    Text{"second.lone_pipeline",
         "with both sizes 1, tools that always name the pipeline rank (verl, AIAK) write this"},
    Text{"second.other_bytes", "{name} differs between {a} and {b}"},
    Text{"second.router", "the router has {rows} experts, a shard holds {local}"},
    Text{"second.same_bytes", "{name} is the same, byte for byte, in {a} and {b}"},
    Text{"second.sparse",
         "not every first number goes with every second one, as with ETP below TP"},
    Text{"shown.sibling", "{entry} shows {what}"},
    Text{"shown.writer", "{entry} shows {writer}"},
    Text{"sibling.common_only",
         "a Megatron iteration of ms-swift without weights: they are in the safetensors beside it"},
    Text{"sibling.cornstarch",
         "a Cornstarch checkpoint (one folder per modality, one file per pipeline stage)"},
    Text{"sibling.dataloader", "states of data loaders, no model"},
    Text{
        "sibling.deep_speed",
        "a DeepSpeed checkpoint (model states by model-parallel rank; SwissArmyTransformer's too)"},
    Text{"sibling.gradients", "gradients that Megatron saved (mp_rank_*.pth), no checkpoint"},
    Text{"sibling.mlite", "training state of MLite, one file per rank"},
    Text{"sibling.moe", "a DeepSpeed MoE checkpoint (one file per expert)"},
    Text{"sibling.nemo_one", "a NeMo 1 checkpoint"},
    Text{"sibling.non_persistent", "Megatron's non-persistent checkpoints, kept for a restart"},
    Text{"sibling.optimizer", "an optimizer's files without a model"},
    Text{"sibling.peft", "a PEFT adapter without its base model"},
    Text{"sibling.pipe", "a DeepSpeed pipeline checkpoint with one file for each stage"},
    Text{"sibling.rank_folder", "the folder of one rank of a legacy Megatron checkpoint"},
    Text{"sibling.verl_fsdp", "a verl FSDP checkpoint (one file per rank)"},
    Text{"sibling.zarr", "a Megatron-Core checkpoint in the zarr backend"},
    Text{"sizes.saved", "saved with TP/PP/EP/ETP = {sizes}; it loads at any other"},
    Text{"software.bridge", "Megatron-Bridge"},
    Text{"software.mlite_dcp", "MLite"},
    Text{"software.nemo_two", "NeMo 2"},
    Text{"software.slime", "slime"},
    Text{"software.swift", "ms-swift"},
    Text{"software.ve_omni", "VeOmni"},
    Text{"software.verl", "verl"},
    Text{"stages.uneven", "none, {layers} layers do not divide by {stages}"},
    Text{"two.data", "two numbers, the second is a data-parallel rank"},
    Text{"two.expert", "two numbers, the second is the expert rank (PP=1): 3-D in meaning"},
    Text{"two.open",
         "two numbers that can be (tp,pp) or (tp,ep); args, or --pp or --ep, would settle it"},
    Text{"two.pipeline", "two numbers, the second is the pipeline rank"},
    Text{"writer.aiak_optimizer", "AIAK's optimizer"},
    Text{"writer.of_2022", "a short-lived writer of 2022"},
    Text{"writer.old_optimizer", "an old distributed optimizer"},
};

}  // namespace shardwright
