# SPDX-License-Identifier: Apache-2.0
"""What every benchmark of whole tasks is asked for on its command line."""

import argparse
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[1]


class TaskArguments(argparse.ArgumentParser):
    """`name` is the folder under build/bench; sizes and runs are defaults."""

    def __init__(self, description, name, tasks, size_gib, runs):
        super().__init__(description=description.splitlines()[0])
        self.add_argument("--size-gib", type=float, default=size_gib, help="of each model")
        self.add_argument("--runs", type=int, default=runs)
        self.add_argument("--only", action="append", choices=list(tasks), help="may be given again")
        self.add_argument("--binary", default=str(ROOT / "build/release/shardwright"))
        self.add_argument("--work", type=pathlib.Path, default=ROOT / "build/bench" / name)

    def parse_args(self, args=None, namespace=None):
        arguments = super().parse_args(args, namespace)
        if arguments.runs < 1 or arguments.size_gib <= 0:
            self.error("--runs and --size-gib must be positive")
        return arguments
