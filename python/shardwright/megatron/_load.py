# SPDX-License-Identifier: Apache-2.0
"""Loading for Megatron-Core's dist_checkpointing."""
from megatron.core import parallel_state
from megatron.core.dist_checkpointing import serialization, validation
from megatron.core.dist_checkpointing.mapping import ShardedObject
from megatron.core.dist_checkpointing.strategies.torch import TorchDistLoadShardedStrategy

from .._arguments import whole_number
from .._loading import ROUND_BYTES, Job, Loading, LoadReport, catalog_of, read_metadata
from .._pickles import check_plain, unpickled
from ._asked_state import AskedState
from ._joined import join_without_copies, note_load
from ._stored_names import all_ask, know_when_all_ask, see_names_as_asked, stored_tensors

_MOST_PRICE = 1000  # its products with bytes are counted in 64 bits
_last_report = None


class LoadStrategy(TorchDistLoadShardedStrategy):
    """Loads a `torch_dist` checkpoint with few foreign files: each rank of a data-parallel group
    reads what lies in its own file, each file at most once and from its beginning on, and ranks
    that need the same exchange it.

    `dist_checkpointing.load(state, folder, sharded_strategy=LoadStrategy())`, on all ranks. What it
    loads is what Megatron-Core's own strategy would, bit by bit. Beyond that

    * a tensor that each tensor rank stored as `X.__tp_replica_RANK` is found by that name, by X and
      by the name of a rank that the saving job did not have; `__shadow_RANK__X` serves where it
      lies nearer. Every mode of `strict` sees the names that the model asks for. Copies are not
      compared with one another: `shardwright verify` does that.
    * a tensor that is not stored, or not whole, is an error that names it, never a partial load;
      so is a payload whose CRC-32 is another one.
    * a rank that fails makes every rank raise, with the error that it had.

    `parallelization_group`: ranks that need much the same, by default Megatron's data-parallel
    group with context parallelism, or all ranks without Megatron's groups. Every rank has to be in
    one such group. `process_group`: the ranks that load together, by default all of the job.
    Ranks of a group that is on one machine copy from one another's memory or exchange through
    memory that they share, others over its backend.
    `read_price`, `sent_price`: what a byte costs to read and to send, small whole numbers; where
    an exchange is slow, `sent_price=4` makes most ranks read for themselves. `round_bytes`: how
    much a rank sends and receives at a time. `weights_only` refuses objects that are more than plain data (SW0224), see
    `shardwright.torch.StorageReader`; without it objects are unpickled as Megatron-Core does,
    which runs what they name.
    """

    def __init__(
        self,
        parallelization_group=None,
        *,
        process_group=None,
        read_price=1,
        sent_price=1,
        round_bytes=ROUND_BYTES,
        weights_only=False,
    ):
        prices = {"read_price": read_price, "sent_price": sent_price}
        self._options = {
            name: whole_number(name, price, most=_MOST_PRICE) for name, price in prices.items()
        }
        self._options["round_bytes"] = whole_number("round_bytes", round_bytes, least=1)
        super().__init__()
        # Later versions of Megatron-Core ask: what is filled here must not be quantised.
        self.stream_ckpt_dequant = False
        self._group = parallelization_group
        self._process_group = process_group
        self._weights_only = weights_only
        see_names_as_asked(validation)
        know_when_all_ask(serialization)
        join_without_copies(serialization)

    def load(self, sharded_state_dict, checkpoint_dir, async_strategy="mcore"):
        """Fills the state dict's tensors and gives a state dict of them and of the objects. Raises
        shardwright.Error, on every rank: ModelError (SW0404, SW0405) for what the checkpoint does
        not have in that shape, FormatError and StorageError for damage, with file and tensor."""
        global _last_report
        job = Job(self._process_group)
        group, tensor_rank = job.attempt(self._group_and_rank)
        loading = Loading(
            str(checkpoint_dir), group, job=job, tensor_rank=tensor_rank, **self._options
        )
        asked = AskedState(str(checkpoint_dir))
        done, report = loading.run(lambda catalog: asked.wanted(catalog, sharded_state_dict))
        loaded = job.attempt(lambda: asked.filled(sharded_state_dict, done, self._unpickle))
        _last_report = report
        note_load()
        return loaded

    def load_tensors_metadata(self, checkpoint_dir, metadata=None):
        """Tensors by the names that models give them: of several copies the tensor."""
        if metadata is not None:
            return super().load_tensors_metadata(checkpoint_dir, metadata)
        return stored_tensors(self._read_catalog(str(checkpoint_dir)))

    def load_sharded_metadata(self, checkpoint_dir):
        """The same, and objects."""
        catalog = self._read_catalog(str(checkpoint_dir))
        entries = {}
        for name in catalog.objects():
            entry = ShardedObject.empty_from_unique_key(name)
            entries[entry.unique_key] = entry
        entries.update(stored_tensors(catalog))
        return entries

    def _group_and_rank(self):
        if not parallel_state.model_parallel_is_initialized():
            return self._group, 0
        group = self._group
        if group is None:
            group = parallel_state.get_data_parallel_group(with_context_parallel=True)
        return group, parallel_state.get_tensor_model_parallel_rank()

    def _read_catalog(self, folder):
        if not all_ask():
            return catalog_of(read_metadata(folder), folder)
        job = Job(self._process_group)
        contents = job.tell_first(lambda: read_metadata(folder))
        return job.attempt(lambda: catalog_of(contents, folder))

    def _unpickle(self, pickle, where):
        if self._weights_only:
            check_plain(pickle, where)
        return unpickled(pickle, where)


def last_load():
    """This rank's LoadReport of the last load by a LoadStrategy that succeeded, or None."""
    return _last_report
