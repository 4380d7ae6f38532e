# SPDX-License-Identifier: Apache-2.0
"""What is in a checkpoint: names, shapes, files, values, without loading it.

    python examples/look_inside.py [FOLDER]
"""
import pathlib
import sys
import tempfile

import tiny_models

import shardwright


def main(folder):
    run = folder / "run"
    shardwright.convert(tiny_models.write_llama(folder / "hf"), run, to="torch_dist", tp=2)

    found = shardwright.inspect(run, tensors="*linear_fc1*")
    print(f"{found.format}: {found.totals['tensors']} tensors, {found.totals['bytes']} bytes")
    for tensor in found.tensors:
        print(tensor.name, tensor.dtype, tensor.shape)
        for chunk in tensor.chunks:
            print(f"   {chunk['origin']} + {chunk['shape']}: {chunk['file']} at {chunk['offset']}")

    with shardwright.open(run) as ckpt:
        # Stored is one tensor for all layers; one layer's name finds its part of it.
        whole = ckpt.shape_of("decoder.layers.mlp.linear_fc1.weight")
        layer = ckpt.get_tensor("decoder.layers.3.mlp.linear_fc1.weight")
        rows = ckpt.get_slice("embedding.word_embeddings.weight")[10:14, ::16]
        print(whole, layer.shape, rows.tolist())
        assert layer.shape == whole[1:]

    # The same run under Hugging Face's names: made when it is read, nothing is converted.
    with shardwright.open(run, names="hf") as ckpt:
        print(len(ckpt), "tensors, the first is", next(iter(ckpt.items()))[0])

    report = shardwright.show(run, "output_layer.weight")
    print(f"mean {report.mean:.4f}, deviation {report.std:.4f}, {report.nan} NaN")
    assert report.nan == 0


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(pathlib.Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(pathlib.Path(temporary))
