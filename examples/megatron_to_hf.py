# SPDX-License-Identifier: Apache-2.0
"""A Megatron run becomes a Hugging Face model, and it is proven that it is the same one.

    python examples/megatron_to_hf.py [FOLDER]

FOLDER is where everything is written; without it a temporary folder is used.
"""
import pathlib
import sys
import tempfile

import tiny_models

import shardwright


def main(folder):
    # Stands for a run of Megatron on eight ranks: torch_dist, TP 2, PP 2.
    original = tiny_models.write_llama(folder / "original")
    run = folder / "run"
    shardwright.convert(original, run, to="torch_dist", tp=2, pp=2)

    # What is it, and is it whole? Both results are true where nothing is wrong.
    diagnosis = shardwright.diagnose(run)
    print(f"{diagnosis.format}, saved with {diagnosis.sizes}, {diagnosis.confidence}")
    assert diagnosis and shardwright.verify(run)

    # config.json is made from the run's arguments; hf_config= takes one that you have, with the
    # tokenizer beside it. vocab_size and tokenizer are the original's then.
    model = folder / "model"
    done = shardwright.convert(run, model, to="hf", hf_config=original)
    print(f"wrote {done.output}: {done.bytes_written} bytes in {done.files_written} files")

    difference = shardwright.diff(original, model)
    print(f"equal: {difference.equal}, {difference.compared} tensors compared bit by bit")
    assert difference


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(pathlib.Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(pathlib.Path(temporary))
