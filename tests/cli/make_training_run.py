#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes small checkpoints of DeepSpeed and of training loops, with nothing but Python.

make_training_run.py KIND OUT [CHANGE ...]: a pipeline's layers (pipe), ZeRO 3 (zero3), a universal
checkpoint (universal), one without ZeRO (plain), or one file of torch.save (torch, lightning). The
changes are what the tests try.
"""
import pathlib
import struct
import sys
import types

from torch_writer import Size, Tensor, save, stand_in

Namespace = stand_in("argparse", "Namespace", types.SimpleNamespace)
WIDTH, ROWS = 4, 8
MOMENTS = ("exp_avg", "exp_avg_sq")


def tensor(*shape, first=1.0):
    count = 1
    for extent in shape:
        count *= extent
    return Tensor(struct.pack(f"<{count}f", *(first + i / 64 for i in range(count))), shape)


def optimizer(names, step=1200):
    """What torch's AdamW gives as its state dict."""
    state = {i: {"step": step, **{m: tensor(WIDTH) for m in MOMENTS}} for i in range(len(names))}
    return {"state": state, "param_groups": [{"lr": 0.1, "params": list(range(len(names)))}]}


def save_pipe(out, changes):
    """A GPT of one layer on two tensor-parallel ranks, whose last file repeats the embedding."""
    layer = {
        "input_layernorm.weight": tensor(WIDTH),
        "self_attention.query_key_value.weight": tensor(3 * WIDTH // 2, WIDTH),
        "self_attention.dense.weight": tensor(WIDTH, WIDTH // 2),
        "post_attention_layernorm.weight": tensor(WIDTH),
        "mlp.dense_h_to_4h.weight": tensor(2 * WIDTH // 2, WIDTH),
        "mlp.dense_4h_to_h.weight": tensor(WIDTH, 2 * WIDTH // 2),
    }
    arguments = {
        "num_layers": 1, "hidden_size": WIDTH, "num_attention_heads": 2, "ffn_hidden_size": 8,
        "padded_vocab_size": ROWS, "tensor_model_parallel_size": 2, "add_bias_linear": False,
    }  # fmt: skip
    cut = [name for name, part in layer.items() if len(part.shape) > 1]
    for rank in range(2):
        layer |= {name: tensor(*layer[name].shape, first=rank + 2) for name in cut}
        embedding = tensor(ROWS // 2, WIDTH, first=rank)
        copy = tensor(ROWS // 2, WIDTH, first=rank + ("copy_differs" in changes and rank))
        if "copy_has_rows" in changes:
            copy = tensor(ROWS, WIDTH)
        files = {
            1: {"word_embeddings.weight": embedding},
            3: dict(layer),
            5: {"weight": tensor(WIDTH)},
            6: {"word_embeddings.weight": copy},
        }
        if "two_norms" in changes:
            files[5] = {"norm1.weight": tensor(WIDTH), "norm2.weight": tensor(WIDTH)}
        if "norm_again" in changes:
            files[7] = {"weight": tensor(WIDTH)}
        if "untied" in changes:
            arguments["untie_embeddings_and_output_weights"] = True
        for change in changes:
            if change.startswith("without_"):
                files.pop(int(change.removeprefix("without_")), None)
        for number, tensors in files.items():
            save(tensors, out / f"layer_{number:02}-model_{rank:02}-model_states.pt")
        state = {"args": Namespace(**arguments), "checkpoint_version": 3.0, "module": None}
        if "optimizer" in changes:
            state["optimizer"] = optimizer(layer)
        if "no_states" not in changes:
            save(state, out / f"mp_rank_{rank:02}_model_states.pt")
        if "zero" in changes:
            save({}, out / f"zero_pp_rank_0_mp_rank_{rank:02}_optim_states.pt")


MODEL = {"a.weight": (3, 2), "b.weight": (WIDTH,)}


def model_of(**more):
    return {
        "module": {name: tensor(*shape) for name, shape in MODEL.items()},
        "buffer_names": [], "shared_params": {}, "global_steps": 1200, "dp_world_size": 1,
        "mp_world_size": 1, "param_shapes": None, "optimizer": None, **more,
    }  # fmt: skip


def save_plain(out, changes):
    state = model_of(optimizer=optimizer(MODEL))
    if "trainer" in changes:
        state["rng"] = {"devices": [tensor(2)]}
    save(state, out / "mp_rank_00_model_states.pt")


def save_zero3(out, changes):
    """One rank, whose parameters lie in two buffers; a.weight in both, or each in its own."""
    sizes = [6, 4] if "apart" in changes else [5, 5]
    shapes = {name: Size(shape) for name, shape in MODEL.items()}
    placeholders = {name: tensor(0) for name in MODEL}
    save(
        model_of(module=placeholders, param_shapes=[shapes]),
        out / "zero_pp_rank_0_mp_rank_00_model_states.pt",
    )
    states = {
        group: {"step": 1200, **{moment: tensor(size) for moment in MOMENTS}}
        for group, size in enumerate(sizes)
    }
    if "no_second" in changes:
        del states[1]["exp_avg_sq"]
    if "no_states" in changes:
        states = {}
    state = {
        "zero_stage": 3,
        "partition_count": 1,
        "fp32_flat_groups": [tensor(size) for size in sizes],
        "optimizer_state_dict": {"state": states, "param_groups": [{"params": [0]}]},
    }
    save({"optimizer_state_dict": state}, out / "zero_pp_rank_0_mp_rank_00_optim_states.pt")


def save_universal(out, changes):
    shapes = {name: Size(shape) for name, shape in MODEL.items()}
    save(model_of(param_shapes=[shapes]), out / "mp_rank_00_model_states.pt")
    for name, shape in MODEL.items():
        folder = out / "zero" / name
        folder.mkdir(parents=True)
        for kind in ("fp32", *MOMENTS):
            save({"param": tensor(*shape)}, folder / f"{kind}.pt")
        save(1200, folder / "step.pt")


def save_torch(out, changes):
    model = {name: tensor(*shape) for name, shape in MODEL.items()}
    if "inside" in changes:
        save({**model, "optimizer": optimizer(MODEL), "epoch": 3}, out / "pytorch_model.bin")
        return
    state = {"model": model, "epoch": 3, "optimizer": optimizer(MODEL)}
    if "stateless" in changes:
        state["optimizer"] = {"state": {}, "param_groups": [{"lr": 0.1, "params": [0, 1]}]}
    if "rng" in changes:
        state = {"model": model, "rng": {"devices": [tensor(2)]}}
    save(state, out / "pytorch_model.bin")


def save_lightning(out, changes):
    model = {name: tensor(*shape) for name, shape in MODEL.items()}
    state = {"state_dict": model, "optimizer_states": [optimizer(MODEL)], "lr_schedulers": []}
    save(state, out / "pytorch_model.bin")


def save_consolidated(out, changes):
    model = {"norm.weight": tensor(WIDTH), "output.weight": tensor(ROWS, WIDTH)}
    save({"model": model, "optim": optimizer(model)}, out / "consolidated.00.pth")


def main():
    kind, out, changes = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]
    out.mkdir(parents=True)
    globals()[f"save_{kind}"](out, changes)


if __name__ == "__main__":
    main()
