# SPDX-License-Identifier: Apache-2.0
"""For transformers: models of checkpoints of any format, without converting them."""
import importlib.util
import json
import os
import pathlib
import tempfile

import torch
import transformers

from ._errors import make
from ._naming import HF
from ._reading import Checkpoint

__all__ = ["from_pretrained"]

_LEAST_VERSION = 5  # the first one that takes tensors which are read when they are needed
_CONFIG = "config.json"
_CONFIGS = (_CONFIG, "generation_config.json")
_MOST_NAMED = 8


def from_pretrained(
    path,
    *,
    model_class=None,
    dtype=None,
    device=None,
    hf_config=None,
    family=None,
    map=None,
    mtp=None,
    accept_loss=False,
    replica=None,
    as_=None,
    **model_options,
):
    """A transformers model of a checkpoint of any format: what `convert(to="hf")` and transformers'
    own `from_pretrained` would give, with nothing written.

    The model is made on the meta device; its tensors are read one by one, under Hugging Face's
    names, buffers that are not stored are computed and tied weights tied, all by transformers.
    `model_class`: a model's class or an AutoModel…; default is the one that config.json names. `dtype`: a torch.dtype; default is
    what a conversion would write. `device`: default is the CPU. `hf_config` to `as_` are those of
    `shardwright.open`; `model_options` go to transformers (`attn_implementation`). Needs
    transformers 5.

    Raises Error: SW0404 for parameters that the checkpoint lacks, SW0403 for tensors that the model
    has no place for, SW0405 for other shapes, SW0400 for a class that this transformers lacks, and
    those of `shardwright.open`. Safe to call from several threads.
    """
    _check_version()
    choice = dict(hf_config=hf_config, family=family, map=map, mtp=mtp, accept_loss=accept_loss)
    checkpoint = Checkpoint(path, "pt", as_, names=HF, replica=replica, **choice)
    is_quantised = "quantization_config" in _config_of(checkpoint)
    if dtype is not None and is_quantised:
        # As a conversion to that dtype: the scales are multiplied in, and nothing is quantised.
        checkpoint = Checkpoint(path, "pt", as_, names=HF, replica=replica, dtype=dtype, **choice)
    with checkpoint, tempfile.TemporaryDirectory() as folder:
        for name in _CONFIGS:
            if name in checkpoint.document_keys():
                pathlib.Path(folder, name).write_bytes(checkpoint.get_document(name))
        config = _config_in(folder)
        generation = _generation_config(folder)
        kind = _own_class(model_class, config) if model_class else _class_of(config)
        model = _loaded(kind, config, generation, checkpoint, dtype, device, model_options)
        model.config.name_or_path = model.name_or_path = os.fsdecode(path)
    return model


def _loaded(kind, config, generation, checkpoint, dtype, device, model_options):
    by_map = device is not None and importlib.util.find_spec("accelerate") is not None
    if by_map:
        model_options = {**model_options, "device_map": {"": device}}
    if generation is not None:
        model_options = {"generation_config": generation, **model_options}
    model, told = kind.from_pretrained(
        None,
        config=config,
        # Slices, as safetensors' are to transformers: each is read when it is put in place.
        state_dict={name: checkpoint.get_slice(name) for name in checkpoint.keys()},
        dtype=dtype or config.dtype or _first_dtype(checkpoint),
        ignore_mismatched_sizes=True,  # they are told below, with the rest
        output_loading_info=True,
        **model_options,
    )
    _check(told, kind, checkpoint)
    return model if device is None or by_map else model.to(device)


def _first_dtype(checkpoint):
    """The first floating point type among the tensors, as transformers chooses it."""
    found = [getattr(torch, checkpoint.dtype_of(name)) for name in checkpoint.keys()]
    return next((dtype for dtype in found if dtype.is_floating_point), found[0])


def _check(told, kind, checkpoint):
    where = checkpoint.metadata()["path"]
    missing, unexpected = sorted(told["missing_keys"]), sorted(told["unexpected_keys"])
    mismatched = sorted(told["mismatched_keys"])
    if mismatched:
        name, found, expected = mismatched[0]
        raise make(
            "SW0405",
            f"{where}: {name}: found shape {tuple(found)}, expected {tuple(expected)} by "
            f"{kind.__name__} and config.json; correct it, or give the true one with hf_config=",
        )
    if missing:
        raise make(
            "SW0404",
            f"{where}: {kind.__name__} has {_named(missing)}, which the checkpoint lacks; nothing "
            "would fill them; model_class= names another class, hf_config= another config.json",
        )
    if unexpected:
        raise make(
            "SW0403",
            f"{where}: {kind.__name__} has no place for {_named(unexpected)}; model_class= names "
            "another class, mtp=\"drop\" leaves prediction layers out",
        )


def _named(names):
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


def _config_of(checkpoint):
    if _CONFIG not in checkpoint.document_keys():
        raise make(
            "SW0406",
            f"{checkpoint.metadata()['path']}: there is no config.json to make a model of; give "
            "one with hf_config=",
        )
    return json.loads(checkpoint.get_document(_CONFIG))


def _config_in(folder):
    try:
        return transformers.AutoConfig.from_pretrained(folder, local_files_only=True)
    except (KeyError, OSError, ValueError) as error:
        raise make(
            "SW0400",
            f"config.json: transformers {transformers.__version__} takes it for no model of its "
            f"own: {error}",
        ) from error


def _generation_config(folder):
    if not pathlib.Path(folder, _CONFIGS[1]).exists():
        return None
    return transformers.GenerationConfig.from_pretrained(folder, local_files_only=True)


def _class_of(config):
    for name in config.architectures or []:
        kind = getattr(transformers, name, None)
        if kind is not None:
            return kind
    raise make(
        "SW0400",
        f"config.json: transformers {transformers.__version__} has none of the classes "
        f"{', '.join(config.architectures or ['(none named)'])}; give one with model_class=",
    )


def _own_class(kind, config):
    """The class that `kind` makes of such a config: itself, or of an AutoModel… the one it picks."""
    if isinstance(kind, type) and issubclass(kind, transformers.PreTrainedModel):
        return kind
    if not isinstance(kind, type) or not kind.__name__.startswith("AutoModel"):
        raise make(
            "SW0900",
            f"model_class: found {kind!r}, expected a class of transformers: LlamaForCausalLM, "
            "AutoModelForCausalLM",
        )
    try:
        with torch.device("meta"):  # where it takes no memory
            return type(kind.from_config(config))
    except ValueError as error:
        raise make(
            "SW0400",
            f"config.json: {kind.__name__} of transformers {transformers.__version__} knows no such "
            f"model: {error}; give another class with model_class=",
        ) from error


def _check_version():
    version = transformers.__version__
    if int(version.split(".")[0]) < _LEAST_VERSION:
        raise make(
            "SW0900",
            f"found transformers {version}, expected {_LEAST_VERSION} or newer; "
            "install it, or convert the checkpoint with shardwright.convert(to=\"hf\")",
        )
