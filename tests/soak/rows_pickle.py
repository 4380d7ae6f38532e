# SPDX-License-Identifier: Apache-2.0
"""R2: our decoder against CPython's unpickler, over generated streams."""
import random
import struct
import subprocess
import time

import pickle_streams
from row import Lacking, Outcome

BATCH = 5000
MOST = 1_000_000


def graphs_of(program, streams):
    """What our decoder makes of the streams: a line each."""
    given = b"".join(struct.pack("<I", len(stream)) + stream for stream in streams)
    done = subprocess.run([program], input=given, capture_output=True, check=True)
    return done.stdout.decode().splitlines()


def measure(bench):
    """R2."""
    program = bench.build / "pickle_graphs"
    if not program.exists():
        raise Lacking(f"{program.name} is not built; ./dev test builds it")
    faults = []
    tried = both = stricter = 0
    seed = 0
    while tried < MOST and (tried == 0 or time.monotonic() < bench.deadline):
        seed += 1
        chance = random.Random(seed)
        streams = [pickle_streams.stream_of(chance) for _ in range(BATCH)]
        found = graphs_of(program, streams)
        assert len(found) == BATCH, "the decoder stopped in the middle"
        tried += BATCH
        for stream, ours in zip(streams, found):
            theirs = pickle_streams.graph_of(stream)
            both += ours != "-" and theirs != "-"
            stricter += ours == "-" and theirs != "-"
            if ours != "-" and ours != theirs:
                faults.append(f"{stream.hex()}: CPython has {theirs[:80]}, we have {ours[:80]}")
    return Outcome(
        f"{tried} streams, {both} accepted by both, {stricter} by CPython only, "
        f"{len(faults)} otherwise", faults, tried < MOST
    )  # fmt: skip
