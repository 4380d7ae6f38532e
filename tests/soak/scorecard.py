# SPDX-License-Identifier: Apache-2.0
"""The rows, in order."""
import rows_build
import rows_closure
import rows_crash
import rows_disk
import rows_formats
import rows_hostile
import rows_integrity
import rows_mpi
import rows_pickle
import rows_power
from row import Row

ROWS = [
    Row("R1", "pickles that call things", "every callable of 150 files named, nothing run; 0 of 30 sound files refused",
        rows_hostile.measure_malicious, 2),
    Row("R2", "pickles against CPython's own unpickler", "10^6 streams: nothing accepted that it refuses, graphs equal",
        rows_pickle.measure, 6),
    Row("R3", "pickles that expand", "1 s and 64 MiB + 16 x file each, under 512 MiB", rows_hostile.measure_bombs, 1),
    Row("R4", "safetensors against the reference", "nothing accepted that it rejects; 12 rejections of our own",
        rows_formats.measure_safetensors, 1),
    Row("R5", "zip archives with one thing wrong", "every row as expected", rows_formats.measure_zip, 1),
    Row("R6", "metadata that is large or lies", "50,000 missing files in 3 s; 10^6 chunks in 2 s and 1 GiB",
        rows_formats.measure_geometry, 1),
    Row("R7", "fuzz targets", "12 targets, 0 crashes; codecs: 95 % of lines, 85 % of branches",
        rows_build.measure_fuzzing, 4),
    Row("R8", "sanitizers", "0 findings of address, undefined behaviour and threads", rows_build.measure_sanitizers, 4),
    Row("R9", "an allocation fails", "told, nothing published, no crash", rows_build.measure_allocations, 8),
    Row("R10", "a system call of a writer fails", "0 faults: told, old target intact, run again works",
        rows_crash.measure_errors, 8),
    Row("R11", "kill -9 at any system call of a writer", "0 faults: old target or the whole new one",
        rows_crash.measure_kills, 8),
    Row("R12", "power loss", "0 violations in 1,000 images of ext4, xfs and btrfs; each single fsync missed",
        rows_power.measure, 12),
    Row("R13", "fsync fails with EIO", "never success, once or for good", rows_crash.measure_fsync, 2),
    Row("R14", "disks that are full or read-only", "refused beforehand within 1 s, or a clean error",
        rows_disk.measure, 2),
    Row("R15", "flipped bits", "100 % found with digests; without them it is said", rows_integrity.measure_flips, 3),
    Row("R16", "manifests of others", "integrity.json both ways; model signing's verifier accepts ours",
        rows_integrity.measure_interop, 1),
    Row("R17", "what digests cost", "5 % of the time", rows_integrity.measure_cost, 1),
    Row("R18", "a rank of MPI fails", "an error within 5 s, nothing published, only the rest is written again",
        rows_mpi.measure, 8),
    Row("R19", "names that lead out", "0 opens outside", rows_hostile.measure_paths, 2),
    Row("R20", "special files for files", "no hang above 2 s, nothing converted", rows_hostile.measure_special, 1),
    Row("R21", "memory on large checkpoints", "512 MiB, whatever the size", rows_closure.measure_memory, 1),
    Row("R22", "same bytes each time", "byte-identical with 1 to 7 threads", rows_closure.measure_determinism, 1),
    Row("R23", "there and back", "one digest and the same bytes for all pairs", rows_closure.measure_closure, 2),
    Row("R24", "control characters in names", "none on a terminal, JSON valid", rows_hostile.measure_terminals, 1),
]  # fmt: skip
