# SPDX-License-Identifier: Apache-2.0
"""One rank of a Megatron job: saves a golden family's weights, or loads them and compares."""
import argparse

import checkpoints
import megatron_cpu


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("action", choices=["save", "load", "save_legacy", "load_legacy"])
    parser.add_argument("family")
    parser.add_argument("folder")
    parser.add_argument("--spec", choices=["te", "local"], default="te")
    parser.add_argument("--strict", default="raise_all")
    parser.add_argument("--store", required=True)
    for size in ("rank", "world", "tp", "pp", "ep"):
        parser.add_argument(f"--{size}", type=int, default=0 if size == "rank" else 1)
    args = parser.parse_args()
    megatron_cpu.start(
        args.rank, args.world, store=args.store, tp=args.tp, pp=args.pp, ep=args.ep
    )
    hf = megatron_cpu.read_config(checkpoints.GOLDEN / "hf" / args.family / "hf")
    truth = checkpoints.truth(args.family)
    model = megatron_cpu.build(hf, args.spec)
    if args.action == "save":
        megatron_cpu.fill(model, truth)
        megatron_cpu.save(model, args.folder, hf)
    elif args.action == "save_legacy":
        megatron_cpu.fill(model, truth)
        megatron_cpu.save_legacy(model, args.folder, hf)
    else:
        folder = checkpoints.iteration_folder(args.folder)
        if args.action == "load":
            megatron_cpu.load(model, folder, args.strict)
        else:
            megatron_cpu.load_legacy(model, folder)
        assert megatron_cpu.assert_holds(model, truth), "this rank holds nothing"


if __name__ == "__main__":
    main()
