// SPDX-License-Identifier: Apache-2.0
#include "cli/help.h"

#include <fmt/format.h>

#include <iterator>

namespace shardwright::cli {

namespace {

constexpr std::array<CommandHelp, kCommandCount> kHelps = {{
    {
        .name = "inspect",
        .summary = "what a checkpoint or a single file holds",
        .examples = R"(
  shardwright inspect Llama-3.1-8B/                     a Hugging Face model
  shardwright inspect ckpt --tensors '*.layers.0.*'     the tensors of layer 0
  shardwright inspect ckpt/iter_0001000/common.pt       a pickle's values, nothing in it is run
  shardwright inspect ckpt --tree                       its modules and how large they are
  shardwright inspect ckpt --json > ckpt.json           everything, every chunk
)",
        .usage = "PATH",
        .details = "PATH is a checkpoint (a run's root, one iteration or a model's folder) or one "
                   ".pt, .pkl, .distcp or .safetensors file. Only headers and metadata are read.",
    },
    {
        .name = "plan",
        .summary = "what a conversion would do and cost; writes nothing",
        .examples = R"(
  shardwright plan Llama-3.1-8B/ ckpt --to torch_dist --tp 4 --pp 2
  shardwright plan ckpt hf --to hf --verbose            which bytes go to which file
  shardwright plan ckpt hf --to hf --json > plan.json
)",
        .usage = "IN OUT --to FORMAT",
        .details = "Takes the arguments of convert. Shows bytes, files, memory, disk and every "
                   "rename. The plan is complete and proven: convert does exactly this.",
    },
    {
        .name = "convert",
        .summary = "convert or reshard a checkpoint",
        .examples = R"(
  shardwright convert Llama-3.1-8B/ ckpt --to torch_dist --tp 4 --pp 2    Hugging Face to Megatron
  shardwright convert ckpt ckpt-tp8 --to torch_dist --tp 8                reshard
  shardwright convert ckpt hf --to hf                                     Megatron to Hugging Face
  shardwright convert ckpt plain --to safetensors --include 'decoder.*'   a part, names as they are
)",
        .usage = "IN OUT --to FORMAT",
        .details =
            "IN's format and layout are detected. OUT appears when it is complete, or not at "
            "all; an existing OUT is left alone without --overwrite, and then replaced only where "
            "it "
            "is a checkpoint and nothing else (of a run's root: the iteration). Parallel sizes are "
            "those of OUT; Megatron's spellings are accepted too "
            "(--tensor-model-parallel-size 4).",
    },
    {
        .name = "publish",
        .summary = "check what the parts of a saved plan wrote, and let OUT appear",
        .examples = R"(
  shardwright plan ckpt hf --to hf --save hf.plan       on any node, once
  shardwright convert --plan hf.plan --part 1/3         on as many nodes as you like,
  shardwright convert --plan hf.plan --part 2/3         at once and in any order
  shardwright convert --plan hf.plan --part 3/3
  shardwright publish hf.plan                           when all parts are done
)",
        .usage = "FILE",
        .details = "FILE is a saved plan. Everything that the parts wrote is read and compared "
                   "with what they told of it. OUT appears when it is complete, or not at all: "
                   "parts that are missing are named, and can be run again.",
    },
    {
        .name = "diagnose",
        .summary = "which layout a path holds, what is wrong with it, how to read it",
        .examples = R"(
  shardwright diagnose ckpt                             layout, reason, loader, next command
  shardwright diagnose ckpt --tp 4 --ep 8               would a run of these sizes load it?
  shardwright diagnose ckpt --json --lang zh            for scripts; messages in Chinese
)",
        .usage = "PATH",
        .details =
            "PATH is any checkpoint, also of software that shardwright does not convert. Sizes "
            "are what you believe or load with, in Megatron's spellings too; what differs on "
            "disk is a finding. Names, metadata and a few pickles are read, nothing is run. "
            "Exit status 1 when a finding is an error.",
    },
    {
        .name = "verify",
        .summary = "prove that a checkpoint is whole, and name everything that is wrong",
        .examples = R"(
  shardwright verify ckpt                               coverage, checksums, index, model
  shardwright verify Llama-3.1-8B/ --against sums.json  and every tensor's digest
  shardwright verify ckpt --against Llama-3.1-8B/       the digests of another checkpoint
  shardwright verify ckpt --json > report.json
)",
        .usage = "PATH",
        .details = "Everything that is wrong is listed, not only the first. Each element of each "
                   "tensor must be stored once, files must end where they should, checksums that "
                   "are there must be right. Exit status: 0 proven, 1 findings, 2 failure.",
    },
    {
        .name = "diff",
        .summary = "compare two checkpoints of any formats and layouts, bit by bit",
        .examples = R"(
  shardwright diff ckpt-tp4 ckpt-tp2                    two layouts of one model
  shardwright diff Llama-3.1-8B/ ckpt                   Hugging Face with Megatron
  shardwright diff a b --stat                           which layers, how far
  shardwright diff a b --tolerance 1e-6                 floating point numbers may be this far off
)",
        .usage = "A B",
        .details = "Tensors are compared as Megatron's canonical ones, Hugging Face models through "
                   "their family's mapping; two Hugging Face models by their own names. Exit "
                   "status: 0 equal, 1 different, 2 failure.",
    },
    {
        .name = "hash",
        .summary = "digests of a checkpoint that do not depend on format and layout",
        .examples = R"(
  shardwright hash ckpt                                 every tensor's digest and the whole's
  shardwright hash ckpt --manifest sums.json            for verify --against
  shardwright hash Llama-3.1-8B/ --own-names            without a model family
)",
        .usage = "PATH",
        .details = "XXH3-128 of dtype, shape and elements of each canonical tensor; the last line "
                   "is the checkpoint's. docs/formats/digest.md says which bytes are hashed.",
    },
    {
        .name = "show",
        .summary = "one tensor: where it lies, its first values, statistics",
        .examples = R"(
  shardwright show ckpt decoder.layers.0.mlp.linear_fc1.weight
  shardwright show Llama-3.1-8B/ model.norm.weight --json
)",
        .usage = "PATH TENSOR",
        .details = "TENSOR is a stored name, or one layer's of a tensor that stacks the layers.",
    },
    {
        .name = "locality",
        .summary = "who would read which file when a job loads a torch_dist or DCP checkpoint",
        .examples = R"(
  shardwright locality ckpt --tp 2 --pp 2 --dp 2        opens and foreign bytes by three rules
  shardwright locality ckpt --tp 2 --dp 4 --optimizer   with optimizer states
  shardwright locality ckpt --tp 8 --ep 8 --dp 8 --etp 1 --json
)",
        .usage = "PATH",
        .details =
            "A fully parallel load as Megatron-Core shares it out (stock), as PR 3392 does "
            "(per_name) and chunk by chunk (per_chunk). A file __R_N.distcp is foreign to every "
            "rank but R. Nothing is read but metadata. docs/locality.md says what is counted.",
    },
    {
        .name = "index",
        .summary = "'index rebuild DIR' rewrites model.safetensors.index.json from the headers",
        .examples = R"(
  shardwright index rebuild Llama-3.1-8B/               the old index is kept as .bak
)",
        .usage = "rebuild DIR",
        .details = "Keys that no file holds and keys that the index lacks are listed. Nothing but "
                   "the index is touched, and it is replaced in one step.",
    },
    {
        .name = "clean",
        .summary = "unfinished outputs that killed runs left in a folder",
        .examples = R"(
  shardwright clean /checkpoints                        what lies there, how large, whose
  shardwright clean /checkpoints --remove               remove what no process holds
  shardwright clean s3://bucket/run --remove            abort unfinished uploads
)",
        .usage = "DIR",
        .details =
            "An output is made in a hidden folder beside its place, .NAME.partial-PID-N, and "
            "a run that is killed leaves it, and may leave its journals in one beside it, "
            ".NAME.partial-PID-N-journals. Only such names are touched; what a run may still write "
            "stays, and so does the only copy of what was to be replaced. In a bucket "
            "nobody can tell whether a run is at an upload: --remove aborts all below DIR.",
    },
    {
        .name = "explain",
        .summary = "what an error's or a finding's code means and what to do about it",
        .examples = R"(
  shardwright explain SW0307
  shardwright explain L19 --lang zh
)",
        .usage = "CODE",
        .details = "CODE is an error's (SW0307) or a finding's of diagnose (L07).",
    },
    {
        .name = "map",
        .summary = "try a mapping file of a model family that is not built in",
        .examples = R"(
  shardwright map check my_family.json --hf MyModel/    what it leaves out, misses and misshapes
  shardwright map list                                  families that are built in
)",
        .usage = "check FILE --hf DIR | list",
        .details = "Of the model only config.json and headers are read. Exit status 1 when the "
                   "file does not fit; convert takes one that does with --map FILE. How to write "
                   "one: docs/mapping.md.",
    },
    {
        .name = "merge",
        .summary = "put a language model, an encoder and an adapter together into one model",
        .examples = R"(
  shardwright merge VLM --component language=LLM --component images=VIT --component adapter=MLP
                        --config Qwen3-VL/              names as the whole model has them
  shardwright merge VLM ... --dry-run                   only say whether they belong together
)",
        .usage = "OUT --component NAME=DIR ... --config DIR",
        .details =
            "All are Hugging Face checkpoints; bytes are kept. --config is the whole model's "
            "config.json, or the folder that has it and the tokenizer. What does not fit "
            "is listed by part and nothing is written: exit status 1.",
    },
    {
        .name = "split",
        .summary = "take a multimodal model apart into its parts",
        .examples = R"(
  shardwright split Qwen3-VL/ parts                     parts/language, images, adapter, model
  shardwright merge again --component language=parts/language --component images=parts/images
                        --component adapter=parts/adapter --config parts/model
)",
        .usage = "IN OUT",
        .details = "Each part is a Hugging Face checkpoint with the names and the config that it "
                   "has alone. OUT/model gets the other files and what merge needs to make the "
                   "same model again, bit by bit.",
    },
    {
        .name = "merge-adapter",
        .summary = "add a LoRA, rsLoRA or DoRA adapter of PEFT to its base model",
        .examples = R"(
  shardwright merge-adapter Qwen3-8B/ adapter/ merged   the merged model
  shardwright merge-adapter Qwen3-8B/ adapter/ ckpt --to torch_dist --tp 4
  shardwright merge-adapter FP8-model/ adapter/ merged --dtype bfloat16
)",
        .usage = "BASE ADAPTER OUT",
        .details =
            "BASE is a Hugging Face model in any of the ways that convert reads, ADAPTER a folder "
            "with adapter_config.json and adapter_model.safetensors or adapter_model.bin. Products "
            "are summed in float32 and each weight is rounded once, to the type that it has in "
            "BASE or to --dtype. No model is loaded: memory is as with convert.",
    },
    {
        .name = "average",
        .summary = "the weighted mean of checkpoints of one model",
        .examples = R"(
  shardwright average run/iter_0010000 run/iter_0012000 run/iter_0014000 mean --to torch_dist --tp 4
  shardwright average SFT/ DPO/ mean --weights 0.7,0.3       a Hugging Face model of two
  shardwright average tuned-a/ tuned-b/ base/ sum --weights 1,1,-1   what both learned, together
)",
        .usage = "PATH PATH ... OUT",
        .details =
            "Each PATH is a checkpoint of the same model in any format and layout; names, shapes "
            "and types must agree. Each weight times its value, and their sum in the order given, "
            "is rounded to float32, the sum once to the type that is written. What is no tensor, "
            "and the arguments, come from the first; optimizer states are dropped.",
    },
    {
        .name = "report",
        .summary = "a page that shows a checkpoint, or two and what is different",
        .examples = R"(
  shardwright report ckpt -o ckpt.html --open           where its bytes are, who holds which part
  shardwright report ckpt --statistics --verify         with values and the proof
  shardwright report ckpt Llama-3.1-8B/ -o diff.html    what is different
)",
        .usage = "PATH [PATH2]",
        .details = "One HTML file that needs no network: English and Chinese, light and dark. "
                   "Without the flags that say so nothing but metadata is read. Exit status 1 when "
                   "a finding is an error or the two are different; the page is written all the "
                   "same.",
    },
    {
        .name = "demo",
        .summary = "convert a small model there and back and prove it bit-exact",
        .examples = R"(
  shardwright demo
  shardwright demo --keep out                           keep every checkpoint to look at
  shardwright demo --checkpoint Llama-3.1-8B/           with a model of your own
)",
        .usage = "",
        .details = "Hugging Face to Megatron, resharded, and back to Hugging Face; then every "
                   "tensor's bytes are compared with the input's.",
    },
    {
        .name = "completion",
        .summary = "a script that completes command lines in bash, zsh or fish",
        .examples = R"(
  shardwright completion bash > ~/.local/share/bash-completion/completions/shardwright
  shardwright completion zsh > ~/.zfunc/_shardwright    a folder of $fpath
  shardwright completion fish > ~/.config/fish/completions/shardwright.fish
)",
        .usage = "SHELL",
        .details = "Whoever installs with cmake --install or pip has these files already.",
    },
    {
        .name = "man",
        .summary = "the manual page with every command and flag",
        .examples = R"(
  shardwright man | man -l -
)",
        .usage = "",
        .details = "For man and groff; cmake --install and pip install it.",
    },
}};

}  // namespace

const std::array<CommandHelp, kCommandCount>& command_helps() { return kHelps; }

const CommandHelp* find_command(std::string_view name) {
  for (const CommandHelp& help : command_helps()) {
    if (help.name == name) return &help;
  }
  return nullptr;
}

std::string overview_text() {
  std::string text = R"(Examples:
  shardwright inspect Llama-3.1-8B/                                       what it holds
  shardwright plan Llama-3.1-8B/ ckpt --to torch_dist --tp 4 --pp 2       what it would cost
  shardwright convert Llama-3.1-8B/ ckpt --to torch_dist --tp 4 --pp 2    Hugging Face to Megatron
  shardwright convert ckpt back --to hf                                   and back, bit for bit

The checkpoint tool of Megatron-family training: reads, reshards, converts and proves.

Usage: shardwright COMMAND ...

Commands:
)";
  for (const CommandHelp& help : command_helps()) {
    fmt::format_to(std::back_inserter(text), "  {:<15}{}\n", help.name, help.summary);
  }
  text += R"(
  shardwright COMMAND --help    its flags
  shardwright --version

--lang zh, or LANG=zh_CN.UTF-8: errors, findings, notes, diagnose, verify, explain and pages speak
Chinese. Help, titles of tables and sentences in JSON are English.
Exit status: 0 fine, 1 findings or differences, 2 usage or failure, 128+N stopped by signal N.
)";
  return text;
}

std::string version_text() { return "shardwright " SHARDWRIGHT_VERSION "\n"; }

}  // namespace shardwright::cli
