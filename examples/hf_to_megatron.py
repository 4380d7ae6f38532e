# SPDX-License-Identifier: Apache-2.0
"""A Hugging Face mixture of experts becomes a Megatron checkpoint for TP x PP x EP.

    python examples/hf_to_megatron.py [FOLDER]
"""
import pathlib
import sys
import tempfile

import tiny_models

import shardwright

SIZES = {"tp": 2, "pp": 2, "ep": 2, "etp": 1}


def main(folder):
    model = tiny_models.write_mixtral(folder / "mixtral")

    # A plan costs nothing, and the conversion does exactly what it says.
    plan = shardwright.plan(model, folder / "run", to="torch_dist", **SIZES)
    print(f"{plan.cost['bytes_written']} bytes in {plan.cost['target_files']} files, at most "
          f"{plan.cost['peak_memory_bytes']} bytes of memory")
    for rename in plan.renames[:3]:
        print("  ", " + ".join(rename.source), "->", rename.target)

    done = shardwright.convert(model, folder / "run", to="torch_dist", **SIZES)
    assert done.bytes_written == plan.cost["bytes_written"]
    assert shardwright.diff(model, folder / "run")

    # Older Megatron reads a folder for each rank.
    shardwright.convert(model, folder / "legacy", to="legacy", **SIZES)
    ranks = sorted(path.name for path in folder.glob("legacy/iter_*/mp_rank_*"))
    print(f"legacy: {', '.join(ranks)}")
    assert shardwright.diff(folder / "run", folder / "legacy")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(pathlib.Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(pathlib.Path(temporary))
