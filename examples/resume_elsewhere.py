# SPDX-License-Identifier: Apache-2.0
"""A run goes on with other parallel sizes: resharded, and laid out for the ranks that will load it.

    python examples/resume_elsewhere.py [FOLDER]
"""
import pathlib
import sys
import tempfile

import tiny_models

import shardwright


def main(folder):
    before = folder / "tp2"
    shardwright.convert(tiny_models.write_llama(folder / "hf"), before, to="torch_dist", tp=2)
    expected = shardwright.hash(before).digest

    # TP 2 becomes TP 1, PP 4. With dp= each file holds what its rank will read.
    after = folder / "pp4"
    shardwright.convert(before, after, to="torch_dist", tp=1, pp=4, dp=2)

    # The digest is of the weights: format and layout make no difference.
    digest = shardwright.hash(after).digest
    print(expected, digest)
    assert digest == expected and shardwright.verify(after, against=before)

    for path, name in ((before, "as it was saved"), (after, "laid out for the job")):
        rules = shardwright.locality(path, tp=1, pp=4, dp=2).rules
        foreign = rules["stock"]["foreign_bytes"]
        print(f"{name}: {foreign} bytes are read from files of other ranks")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(pathlib.Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(pathlib.Path(temporary))
