# SPDX-License-Identifier: Apache-2.0
"""A user's program, for the type checkers: never run."""
from pathlib import Path
from typing import List, Tuple

import shardwright


def progress(done: int, total: int) -> None:
    print(done, total)


def use(source: Path, target: str) -> List[str]:
    done: shardwright.Conversion = shardwright.convert(
        source, target, to="torch_dist", tp=2, pp=4, mtp="drop", overwrite=True, progress=progress
    )
    plan: shardwright.Plan = shardwright.convert(source, target, to="hf", dry_run=True)
    print(done.bytes_written + plan.cost["bytes_written"], shardwright.__version__)
    if not shardwright.diff(source, target, tolerance=1e-6):
        print(shardwright.explain("SW0307", lang="zh").text)
    merged = shardwright.merge(target, {"language": source, "images": target}, config=source)
    if merged and merged.output is not None:
        print(merged.output.upper(), [part.tensors + 1 for part in merged.parts])
    shape: Tuple[int, ...] = ()
    with shardwright.open(source, framework="pt", device="cuda:0", names="hf") as ckpt:
        for name, tensor in ckpt.items():
            shape = ckpt.shape_of(name)
            print(tensor, ckpt.get_slice(name).get_dtype())
        names = ckpt.offset_keys()
    try:
        shardwright.verify(target, against=source)
    except (FileNotFoundError, shardwright.FormatError) as error:
        print(error)
    except shardwright.Error as error:
        print(error.code.lower(), error.message)
    found = shardwright.inspect(source, tensors=["*norm*"], limit=10)
    return [*names, *(tensor.name for tensor in found.tensors), str(len(shape))]
