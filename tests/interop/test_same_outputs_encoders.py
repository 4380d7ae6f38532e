# SPDX-License-Identifier: Apache-2.0
"""Megatron-Core's T5Model and BertModel, built from the arguments written, compute what transformers
does: T5 with relative positions, and Megatron-LM's own BERT, which transformers has."""
import dataclasses
import functools
import math
import re

import pytest
import torch
import torch.nn.functional as F
import transformers

import checkpoints
import hf_models
import hf_sizes
import megatron_from_args  # makes torch ready for Megatron on a CPU, so it comes before Megatron
from test_same_outputs import NOTICED, TOLERANCE, difference

from megatron.core.models.bert.bert_layer_specs import bert_layer_local_spec
from megatron.core.models.bert.bert_model import BertModel
from megatron.core.models.T5 import t5_spec
from megatron.core.models.T5.t5_model import T5Model
from megatron.core.transformer.dot_product_attention import DotProductAttention

T5 = ("t5", dict(hf_sizes.T5_SIZES, num_layers=3, relative_attention_max_distance=50))
BERT = (
    "megatron-bert",
    dict(
        vocab_size=510,
        hidden_size=72,
        intermediate_size=104,
        num_hidden_layers=3,
        num_attention_heads=6,
        max_position_embeddings=64,
    ),
)


def hf_t5(folder):
    return hf_models.t5_with_a_head(folder, T5[1])


def hf_bert(folder, **settings):
    config = transformers.AutoConfig.for_model(BERT[0], **BERT[1], **settings)
    config._attn_implementation = "eager"
    model = transformers.MegatronBertForPreTraining._from_config(config).eval()
    hf_models.fill(model)
    model.save_pretrained(folder)
    return model


def hf_untied_bert(folder):
    """Whose head computes with decoder.bias, and nothing with the bias beside it."""
    return hf_bert(folder, tie_word_embeddings=False)


class BiasedAttention(DotProductAttention):
    """Megatron's attention on a CPU takes no bias; Transformer Engine's adds it, as is done here."""

    def forward(self, query, key, value, attention_mask, attn_mask_type=None, attention_bias=None,
                packed_seq_params=None):  # fmt: skip
        scale = self.config.softmax_scale or 1 / math.sqrt(query.shape[-1])
        scores = torch.einsum("sbhd,tbhd->bhst", query, key) * scale
        if attention_bias is not None:
            scores = scores + attention_bias
        if attention_mask is not None:
            scores = scores.masked_fill(attention_mask, -torch.inf)
        mixed = torch.einsum("bhst,tbhd->sbhd", scores.softmax(-1), value)
        return mixed.reshape(*mixed.shape[:2], -1)


def tokens(length):
    generator = torch.Generator().manual_seed(2)
    return torch.randint(1, 510, (2, length), generator=generator)


def t5(args):
    config = megatron_from_args.transformer_config(args)
    config.gated_linear_unit = args.gated_linear_unit
    if args.gated_linear_unit:
        config.activation_func = functools.partial(F.gelu, approximate="tanh")
    encoder_config = dataclasses.replace(config, num_layers=args.encoder_num_layers)
    decoder_config = dataclasses.replace(config, num_layers=args.decoder_num_layers)
    encoder, decoder = (
        t5_spec.encoder_model_with_local_spec(), t5_spec.decoder_model_with_local_spec()
    )
    for attention in (
        encoder.submodules.self_attention,
        decoder.submodules.self_attention,
        decoder.submodules.cross_attention,
    ):
        attention.submodules.core_attention = BiasedAttention
    return T5Model(
        decoder_config,
        encoder_config,
        encoder,
        decoder,
        vocab_size=args.padded_vocab_size,
        max_sequence_length=args.max_position_embeddings,
        share_embeddings_and_output_weights=not args.untie_embeddings_and_output_weights,
        position_embedding_type=args.position_embedding_type,
        relative_attention_num_buckets=args.relative_attention_num_buckets,
        relative_attention_max_distance=args.relative_attention_max_distance,
    )


def bert(args):
    return BertModel(
        megatron_from_args.transformer_config(args),
        args.num_tokentypes,
        bert_layer_local_spec,
        vocab_size=args.padded_vocab_size,
        max_sequence_length=args.max_position_embeddings,
        share_embeddings_and_output_weights=not args.untie_embeddings_and_output_weights,
        position_embedding_type=args.position_embedding_type,
        add_binary_head=args.bert_binary_head,
    )


@pytest.fixture(scope="module")
def converted(shardwright, megatron, tmp_path_factory):
    """The transformers model of a case, and Megatron's that holds its checkpoint."""

    def convert(make, build):
        root = tmp_path_factory.mktemp(make.__name__)
        theirs = make(root / "hf")
        flags = ("--to", "torch_dist", "--tp", 2, "--spec", "local")
        shardwright("convert", root / "hf", root / "out", *flags)
        folder = checkpoints.iteration_folder(root / "out")
        ours = build(megatron_from_args.read_arguments(folder))
        for tensor in megatron_from_args.tensors(ours).values():
            tensor.fill_(float("nan"))
        megatron_from_args.load(ours.eval(), folder)
        return theirs, ours

    return convert


def test_t5(converted):
    theirs, ours = converted(hf_t5, t5)

    def wanted(source, target):
        with torch.no_grad():
            return theirs(input_ids=source, decoder_input_ids=target).logits

    def error(source, target, expected):
        read, written = source.shape[1], target.shape[1]
        whole = torch.zeros((len(source), 1, read, read), dtype=torch.bool)
        causal = torch.ones((written, written), dtype=torch.bool).triu(1)
        causal = causal.expand(len(source), 1, written, written)
        across = torch.zeros((len(source), 1, written, read), dtype=torch.bool)
        with torch.no_grad():
            made = ours(source, target, whole, causal, across)
        return difference(made[..., :510], expected)

    texts = tokens(90), tokens(40)
    expected = wanted(*texts)
    assert expected.std() > 1
    assert error(*texts, expected) < TOLERANCE
    # One of each kind; a wrong order of its rows is noticed, with fewer tokens.
    texts = tokens(20)[:1], tokens(10)[:1]
    expected = wanted(*texts)
    kinds = {re.sub(r"\.\d+", "", name): name for name in megatron_from_args.tensors(ours)}
    assert len(kinds) > 15
    for name in kinds.values():
        tensor = ours.state_dict()[name]
        original = tensor.clone()
        tensor.copy_(original.roll(1, dims=0))
        assert error(*texts, expected) > NOTICED, name
        tensor.copy_(original)


@pytest.mark.parametrize("make", [hf_bert, hf_untied_bert], ids=["tied", "untied"])
def test_bert(converted, make):
    theirs, ours = converted(make, bert)
    ids = tokens(50)
    kinds = (torch.arange(50) > 20).long().expand(2, 50)
    with torch.no_grad():
        expected = theirs(input_ids=ids, token_type_ids=kinds)
        logits, follows = ours(ids, torch.ones_like(ids), tokentype_ids=kinds)
    assert expected.prediction_logits.std() > 1
    made = logits if logits.shape[0] == 2 else logits.transpose(0, 1)
    assert difference(made[..., :510], expected.prediction_logits) < TOLERANCE
    assert difference(follows, expected.seq_relationship_logits) < TOLERANCE


def test_an_untied_bert_comes_back(shardwright, tmp_path):
    theirs = hf_untied_bert(tmp_path / "hf")
    shardwright("convert", tmp_path / "hf", tmp_path / "run", "--to", "legacy")
    shardwright("convert", tmp_path / "run", tmp_path / "back", "--to", "hf")
    loader = transformers.MegatronBertForPreTraining
    loaded, loading = loader.from_pretrained(tmp_path / "back", output_loading_info=True)
    assert not loading["missing_keys"] and not loading["unexpected_keys"], loading
    # A second model, because from_pretrained starts from tensors without memory.
    back = loader._from_config(theirs.config).eval()
    back.load_state_dict(loaded.state_dict())
    with torch.no_grad():
        assert torch.equal(back(tokens(50)).prediction_logits, theirs(tokens(50)).prediction_logits)
