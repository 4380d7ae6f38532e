# SPDX-License-Identifier: Apache-2.0
"""Loading in jobs that run: what Megatron-Core saved, by shardwright.megatron.LoadStrategy."""
import json
import os
import pathlib
import pickle
import re
import shutil

import pytest
from torch.distributed.checkpoint.metadata import MetadataIndex, TensorStorageMetadata

JOBS = "training_load_jobs"
DENSE, SPARSE = "llama3_4l", "mixtral"
# TP, PP, EP; the rest of four ranks is data-parallel.
SAVED = {
    DENSE: {"tp2dp2": (2, 1), "tp2pp2": (2, 2), "tp1": (1, 1)},
    SPARSE: {"tp2dp2": (2, 1), "ep2": (1, 1, 2)},
}
LOADED = {
    DENSE: [(1,), (2,), (4,), (2, 2)],
    SPARSE: [(1,), (4,), (2, 2), (2, 1, 2)],
}


class Saved:
    """Checkpoints of a family, each also with copies as Megatron-LM's PR 3392 saves them."""

    def __init__(self, root, family):
        self.root = root
        self.family = family
        self.layouts = {
            name + ending: (sizes, bool(ending))
            for name, sizes in SAVED[family].items()
            for ending in ("", "-copies")
        }

    def arguments(self, **more):
        return dict(root=self.root, family=self.family, **more)

    def told(self, name, world=4):
        """What each rank wrote."""
        return [json.loads((self.root / f"{name}.{rank}").read_text()) for rank in range(world)]


@pytest.fixture(scope="module")
def saved(ranks, tmp_path_factory):
    made = {}

    def save(family):
        if family not in made:
            made[family] = Saved(tmp_path_factory.mktemp(family), family)
            arguments = made[family].arguments(layouts=made[family].layouts)
            ranks(JOBS, "save_all", 4, **arguments)
        return made[family]

    return save


@pytest.mark.parametrize("family", SAVED)
def test_loads_at_every_layout(saved, ranks, family):
    job = saved(family)
    ranks(JOBS, "load_all", 4, **job.arguments(folders=list(job.layouts), layouts=LOADED[family]))
    for reports in job.told("reports"):
        assert len(reports) == 2 * len(job.layouts) * len(LOADED[family])
        for report in reports.values():
            assert report["own_bytes"] + report["foreign_bytes"] + report["received_bytes"] > 0
            assert report["foreign_opens"] <= report["opens"] <= 4, "each file at most once"


@pytest.mark.parametrize(
    "options, apart",
    (({"sent_price": 9}, False), ({"round_bytes": 5000}, False), ({"round_bytes": 5000}, True)),
)
def test_prices_and_rounds_change_no_bit(saved, ranks, options, apart):
    job = saved(DENSE)
    arguments = job.arguments(folders=["tp2dp2-copies"], layouts=[(1,), (2,)], options=options)
    ranks(JOBS, "load_all", 4, **arguments, apart=apart)
    objects = 30_000  # bytes, which are sent at any price
    for reports in job.told("reports"):
        for report in reports.values():
            assert (report["received_bytes"] < objects) == ("sent_price" in options), report


def test_what_is_put_together_is_not_copied(saved, ranks):
    ranks(JOBS, "joined", 4, **saved(DENSE).arguments(folder="tp2dp2"))


OWN = [
    (DENSE, "tp2dp2", "assume_ok_unexpected"),
    (DENSE, "tp2pp2", "assume_ok_unexpected"),
    (SPARSE, "tp2dp2", "assume_ok_unexpected"),
    (DENSE, "tp2dp2", "raise_all"),
]


@pytest.mark.parametrize("family, folder, strict", OWN)
def test_ranks_that_saved_open_their_own_file_once(saved, ranks, family, folder, strict):
    job = saved(family)
    sizes = SAVED[family][folder]
    path = job.root / f"{folder}-copies"
    ranks(JOBS, "own_load", 4, **job.arguments(folder=path.name, sizes=sizes, strict=strict))
    metadata = 0
    for rank, report in enumerate(job.told("reports")):
        found = (report["opens"], report["foreign_opens"], report["foreign_bytes"])
        assert found == (1, 0, 0), (rank, report)
        trace = (job.root / f"trace.{rank}").read_text()
        opened = re.findall(r'"(?:[^"]*/)?(__\d+_\d+\.distcp|\.metadata)"', trace)
        metadata += opened.count(".metadata")
        files = [name for name in opened if name != ".metadata"]
        assert files == [f"__{rank}_0.distcp"], (rank, opened)
    # For the tensors, and before that for the names.
    assert metadata == 1 + (strict == "raise_all"), "one rank reads it for all"


def test_inside_the_wrapper_of_megatron(saved, ranks):
    folders, layouts = ["tp2dp2", "tp2dp2-copies"], [(1,), (2,)]
    arguments = saved(DENSE).arguments(folders=folders, layouts=layouts, options={"wrapped": True})
    ranks(JOBS, "load_all", 4, **arguments)


def test_without_a_job(saved, ranks):
    ranks(JOBS, "load_without_a_job", 1, **saved(DENSE).arguments(folder="tp2dp2-copies"))


def test_in_a_later_megatron(saved, ranks, monkeypatch):
    newer = os.environ.get("SHARDWRIGHT_NEWER_MEGATRON", "")
    assert pathlib.Path(newer, "megatron/core").is_dir(), (
        f"found no Megatron-Core in '{newer}'; './dev test' puts it there"
    )
    job = saved(DENSE)
    tools = str(pathlib.Path(__file__).resolve().parent / "tools")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([newer, tools, os.environ["PYTHONPATH"]]))
    arguments = job.arguments(folders=list(job.layouts), layouts=[(1,), (2, 2)])
    ranks(JOBS, "load_all", 4, **arguments)
    ranks(JOBS, "strict_mismatches", 4, **job.arguments(folder="tp2dp2-copies"))
    assert_mismatches_told(job)


def test_each_tensor_rank_gets_its_own_copy(saved, ranks):
    ranks(JOBS, "diverged_copies", 4, **saved(DENSE).arguments(folder="diverged"))


def shadow(source, target, *, keeps):
    """A checkpoint in which what data-parallel rank 1 wrote is its shadow, and the tensors' own too
    where it `keeps` that: as Megatron-LM's PR 4628 saves it, without writing it twice."""
    shutil.copytree(source, target)
    path = target / ".metadata"
    metadata = pickle.loads(path.read_bytes())
    count = 0
    for index, info in list(metadata.storage_data.items()):
        rank = int(info.relative_path.split("_")[2])
        if rank < 2 or index.offset is None:
            continue
        name = f"__shadow_{rank}__{index.fqn}"
        whole = metadata.state_dict_metadata[index.fqn]
        (chunk,) = (chunk for chunk in whole.chunks if chunk.offsets == index.offset)
        shadowed = metadata.state_dict_metadata.setdefault(
            name, TensorStorageMetadata(whole.properties, whole.size, [])
        )
        metadata.storage_data[MetadataIndex(name, index.offset, len(shadowed.chunks))] = info
        shadowed.chunks.append(chunk)
        count += 1
        if not keeps:
            del metadata.storage_data[index]
            whole.chunks.remove(chunk)
            if not whole.chunks:
                del metadata.state_dict_metadata[index.fqn]
    assert count > 10
    path.write_bytes(pickle.dumps(metadata))


@pytest.mark.parametrize("keeps", (True, False))
def test_shadows_serve_at_every_layout(saved, ranks, keeps):
    job = saved(DENSE)
    folders = []
    for source in ("tp2dp2", "tp2dp2-copies"):
        folders.append(f"{source}-shadows-{keeps}")
        shadow(job.root / source, job.root / folders[-1], keeps=keeps)
    layouts = [(1,), (2,), (2, 2)] if keeps else [(1,)]
    ranks(JOBS, "load_all", 4, **job.arguments(folders=folders, layouts=layouts))


def test_every_strictness_sees_the_names_that_were_asked_for(saved, ranks):
    job = saved(DENSE)
    arguments = job.arguments(folders=["tp2dp2-copies", "tp1"], layouts=[(1,), (4,)])
    ranks(JOBS, "strict_loads", 4, **arguments)


@pytest.mark.parametrize("folder", ("tp2dp2", "tp2dp2-copies"))
def test_every_strictness_tells_what_does_not_fit(saved, ranks, folder):
    job = saved(DENSE)
    ranks(JOBS, "strict_mismatches", 4, **job.arguments(folder=folder))
    assert_mismatches_told(job)


def assert_mismatches_told(job):
    extra, norm = "model.more", "decoder.final_layernorm.weight"
    for told in job.told("outcomes"):
        kind, text = told.pop("assume_ok_unexpected")
        assert kind == "ModelError" and "SW0404" in text and extra in text
        for mode in ("raise_unexpected", "raise_all"):
            kind, text = told.pop(mode)
            assert kind == "CheckpointingException" and extra in text
            assert (norm in text) == (mode == "raise_all"), text
        assert told.pop("return_unexpected") == ["loaded", [], [extra]]
        assert told.pop("return_all") == ["loaded", [norm], [extra]]
        assert told.pop("ignore_all") == ["loaded"]
        for mode in ("log_unexpected", "log_all"):
            kind, text = told.pop(mode)
            assert kind == "loaded" and extra in text and (norm in text) == (mode == "log_all")
        assert not told


def test_a_vocabulary_is_padded_and_cut_as_megatron_has_it(saved, ranks):
    ranks(JOBS, "padded_loads", 4, **saved(DENSE).arguments(folder="tp2dp2"))


def assert_all_were_told(job, *texts, kind):
    told = job.told("told")
    for found, text, seconds in told:
        assert found == kind, text
        assert seconds < 10
        assert all(part in text for part in texts), text
    assert len({text for _, text, _ in told}) == 1, told


@pytest.mark.parametrize("hook", ("ask", "plan", "open", "read", "unpack", "take", "finish"))
def test_a_rank_that_fails_fails_all(saved, ranks, hook):
    job = saved(DENSE)
    ranks(JOBS, "failing_load", 4, **job.arguments(folder="tp2dp2-copies", hook=hook, rank=2))
    assert_all_were_told(job, "SW0109", "rank 2", "a disk on fire", kind="StorageError")


@pytest.mark.parametrize("hook", ("plan", "read", "unpack", "take"))
def test_a_rank_that_dies_fails_all(saved, ranks, hook):
    job = saved(DENSE)
    (job.root / "told.1").unlink(missing_ok=True)
    arguments = job.arguments(folder="tp2dp2-copies", hook=hook, rank=1, dies=True)
    ranks(JOBS, "failing_load", 4, **arguments)
    assert not (job.root / "told.1").exists()
    for rank in (0, 2, 3):
        kind, text, seconds = json.loads((job.root / f"told.{rank}").read_text())
        assert kind != "loaded" and seconds < 10, (rank, text)


def entries(folder, file):
    """(place, name) of what is in a file."""
    stored = pickle.loads((folder / ".metadata").read_bytes()).storage_data
    return [(info, index.fqn) for index, info in stored.items() if info.relative_path == file]


def items_of(folder, file):
    """(offset, length, name) in a file, by offset."""
    found = [(info.offset, info.length, name) for info, name in entries(folder, file)]
    assert found
    return sorted(found)


@pytest.mark.parametrize("damage", ("cut", "flipped", "object", "gone", "metadata"))
def test_damage_is_named_on_every_rank(saved, ranks, damage):
    job = saved(DENSE)
    folder = job.root / f"damaged-{damage}"
    shutil.copytree(job.root / "tp2dp2-copies", folder)
    file = "__2_0.distcp"
    path = folder / file
    texts, kind = [file], "StorageError"
    if damage == "cut":
        offset, length, name = items_of(folder, file)[-1]
        path.write_bytes(path.read_bytes()[: offset + length // 2])
        texts += [name, "SW0104"]
    elif damage == "flipped":
        offset, length, name = max(items_of(folder, file), key=lambda item: item[1])
        contents = bytearray(path.read_bytes())
        contents[offset + length // 2] ^= 1
        path.write_bytes(contents)
        texts += [name, "SW0314"]
        kind = "FormatError"
    elif damage == "object":
        file, name = "__0_0.distcp", "step/shard_0_1"
        path = folder / file
        contents = bytearray(path.read_bytes())
        offset = next(info.offset for info, fqn in entries(folder, file) if fqn == name)
        contents[contents.index(b"X\x02\0\0\0at", offset) + 5] ^= 1  # a dict's key
        path.write_bytes(contents)
        texts, kind = [file, name, "SW0314"], "FormatError"
    elif damage == "gone":
        path.unlink()
        texts, kind = [file, "SW0101"], "MissingError"
    else:
        path = folder / ".metadata"
        path.write_bytes(path.read_bytes()[:100])
        texts, kind = [".metadata", "SW0220"], "CodecError"
    ranks(JOBS, "failing_load", 4, **job.arguments(folder=folder.name, hook=None, rank=0))
    assert_all_were_told(job, *texts, kind=kind)
