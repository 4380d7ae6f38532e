#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The shell commands of the README and of the recipes work as they stand, and print what is shown.

run_recipes.py SHARDWRIGHT GOLDEN [PAGE...] runs each ```sh block of the pages in order, as one
script that stops at the first command that fails. The names in them stand for small checkpoints of
tests/golden, which lie in the working folder under those names. What an ```output block shows must
have been printed so, line by line: `…` stands for anything in a line, and alone for any lines; times
and memory are of this machine. One whose first line is `$ COMMAND` has that run. Blocks of another
kind (```text) are not held against anything. Chinese pages have the same code, which check_docs.py sees to.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).parents[2]
PAGES = ["README.md", "docs/index.md", "docs/verify.md", "docs/recipes/*.md"]
# Names that the pages use, and what stands for them here.
MODELS = {
    "Llama-3.1-8B": "hf/llama3/hf",
    "MyModel": "hf/qwen3/hf",
    "Qwen3-30B-A3B": "hf/qwen3_moe/hf",
    "Qwen3-VL-4B": "hf/qwen3_vl/hf",
    "Qwen3.5-27B": "hf/qwen35_vl/hf",
    "llama-run": "mcore/dense_te/v0.16.1/tp2pp2-torch_dist-full",
    "moe-run": "mcore/moe_te_grouped/v0.16.1/tp1pp2ep2dp2-torch_dist-full",
    "bucket-run": "mcore/dense_te/v0.16.1/tp2pp1dp2-torch_dist-bucket",
    "old-run": "hf/llama3/legacy_tp2pp2ep1",
    "mlite-run": "dcp/mlite_sound",
}
VERL_RUN = """
        python3 {root}/tests/cli/make_fsdp_run.py Llama-3.1-8B verl-run/global_step_5/actor
        touch verl-run/global_step_5/actor/optim_world_size_2_rank_{{0,1}}.pt"""
# What a page takes as given: made before its first block.
PREPARED = {
    "README.md": "sed s/qwen3/my_family/ {root}/models/qwen3.json > my_family.json",
    "docs/recipes/adapters.md": """
        python3 {root}/tests/cli/make_adapter.py Llama-3.1-8B adapter""",
    "docs/recipes/deepspeed.md": """
        python3 {root}/tests/cli/deepspeed_run.py Llama-3.1-8B zero-run""",
    "docs/recipes/fsdp.md": """
        shardwright convert Llama-3.1-8B fsdp-run --to dcp --shards 4
        shardwright convert llama-run mfsdp-run --to fsdp_dtensor --shards 4"""
    + VERL_RUN,
    "docs/recipes/megatron_to_hf.md": """
        mkdir Llama-3.1-8B-tokenizer
        shardwright convert llama-run draft --to hf
        cp draft/config.json Llama-3.1-8B-tokenizer/
        echo '{{}}' > Llama-3.1-8B-tokenizer/tokenizer.json
        rm -r draft""",
    "docs/recipes/merge.md": """
        shardwright split Qwen3-VL-4B p
        mv p/language Qwen3-4B; mv p/images VIT; mv p/adapter MLP; rm -r p""",
    "docs/recipes/nemo.md": """
        shardwright convert Llama-3.1-8B legacy --to legacy
        cp legacy/iter_*/mp_rank_00/model_optim_rng.pt model_weights.ckpt
        printf '%s\\n' 'num_layers: 3' 'hidden_size: 64' 'ffn_hidden_size: 96' 'num_attention_heads: 4' \\
          'num_query_groups: 2' 'kv_channels: 16' 'max_position_embeddings: 256' \\
          'normalization: rmsnorm' 'activation: fast-swiglu' 'layernorm_epsilon: 1.0e-06' 'bias: false' \\
          'share_embeddings_and_output_weights: false' 'position_embedding_type: rope' \\
          'rotary_base: 10000.0' > model_config.yaml
        tar -cf model.nemo ./model_config.yaml ./model_weights.ckpt
        rm -r legacy model_weights.ckpt model_config.yaml""",
    "docs/recipes/siblings.md": VERL_RUN,
    "docs/verify.md": "shardwright convert Llama-3.1-8B ckpt --to torch_dist --tp 2",
}


def shell_blocks(text):
    return re.findall(r"^```sh\n(.*?)^```$", text, re.M | re.S)


def output_blocks(text):
    return re.findall(r"^```output\n(.*?)^```$", text, re.M | re.S)


def normalized(line):
    measured = re.sub(r"\b\d+(\.\d+)? (s|ms|MiB|MB/s)(?=\W|$)", "N \\2", line)
    return re.sub(r"\s+", " ", measured.strip())


def is_progress(line):
    """Whether it says how far a run is, which only slow ones do."""
    return re.match(r"[a-z]+ +\d+ %  ", line) is not None


def is_printed(block, printed):
    """Whether the block stands in what was printed."""
    pattern = "^"
    for line in block.splitlines():
        if line.strip() == "…":
            pattern += "(?:.*\n)*?"
        else:
            pattern += re.escape(normalized(line)).replace("…", ".*") + "\n"
    told = (line for line in printed.splitlines() if not is_progress(line))
    lines = "".join(normalized(line) + "\n" for line in told)
    return re.search(pattern, lines, re.M) is not None


def run(script, folder, program):
    path = f"{pathlib.Path(program).resolve().parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script], cwd=folder, text=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, "PATH": path},
    )  # fmt: skip


def failures(name, text, program, golden):
    """What of the page does not work or is not printed; later commands need earlier ones."""
    blocks = shell_blocks(text)
    if not blocks:
        yield f"{name}: shows no command"
        return
    with tempfile.TemporaryDirectory() as folder:
        for model, source in MODELS.items():
            if re.search(rf"(?<![\w.-]){re.escape(model)}(?![\w-])", text + PREPARED.get(name, "")):
                shutil.copytree(golden / source, pathlib.Path(folder, model))
        prepared = PREPARED.get(name, "").format(root=ROOT)
        printed = ""
        for script in [prepared, *blocks]:
            done = run(script, folder, program)
            printed += done.stdout
            if done.returncode:
                status = done.returncode
                yield f"{name}: exit status {status} of\n{script}\nwhich printed\n{done.stdout}"
                return
        for block in output_blocks(text):
            first, _, rest = block.partition("\n")
            here = run(first[2:], folder, program).stdout if first.startswith("$ ") else printed
            if not is_printed(rest if first.startswith("$ ") else block, here):
                yield f"{name}: shows\n{block}which was not printed so, but\n{here}"


def main():
    program, golden = sys.argv[1], pathlib.Path(sys.argv[2])
    pages = [pathlib.Path(page) for page in sys.argv[3:]]
    for pattern in [] if pages else PAGES:
        found = [page for page in sorted(ROOT.glob(pattern)) if not page.stem.endswith("_zh")]
        if not found:
            print(f"{pattern}: is listed as a page with commands and does not exist")
            return 1
        pages += found
    failed = 0
    for page in pages:
        name = page.relative_to(ROOT).as_posix() if page.is_relative_to(ROOT) else page.name
        for failure in failures(name, page.read_text("utf-8"), program, golden):
            failed += 1
            print(failure)
    print(f"{len(pages)} pages, {failed} failed")
    return 1 if failed or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
