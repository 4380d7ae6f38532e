# SPDX-License-Identifier: Apache-2.0
"""Outlines of checkpoints: folders in which each tensor's bytes are replaced by what packs well.

`diagnose` answers from names, headers and pickles, and compares tensors by their bytes where those
decide. An outline keeps all of the former, and of the latter whether two payloads are equal: each
payload becomes its own digest, repeated. So hundreds of checkpoints fit into one small archive.

    python outlines.py ROOT ARCHIVE FOLDER...   packs ROOT/FOLDER... (once per set of checkpoints)
"""

import hashlib
import io
import json
import pathlib
import struct
import sys
import tarfile
import zipfile
import zlib

KEPT_WHOLE = 64  # bytes; shorter payloads may be scalars that decide something


def stamped(payload):
    """As many bytes as `payload`, equal where the payloads are equal."""
    if len(payload) <= KEPT_WHOLE:
        return bytes(payload)
    stamp = hashlib.blake2b(bytes(payload), digest_size=4).digest()
    return (stamp * (len(payload) // len(stamp) + 1))[: len(payload)]


def storages_in(data, start, end):
    """(offset, size) of each storage of the torch archive at data[start:end]."""
    with zipfile.ZipFile(io.BytesIO(bytes(data[start:end]))) as archive:
        for entry in archive.infolist():
            folder, _, name = entry.filename.rpartition("/")
            if not (folder.endswith("/data") and name.isdigit()):
                continue
            head = start + entry.header_offset
            name_size, extra_size = struct.unpack_from("<HH", data, head + 26)
            yield head + 30 + name_size + extra_size, entry.file_size


def archives_in(data):
    """(start, end) of each zip in `data`, which may hold many, one after another."""
    at = 0
    while (found := data.find(b"PK\x05\x06", at)) >= 0:
        size, offset, comment = struct.unpack_from("<IIH", data, found + 12)
        end = found + 22 + comment
        directory = found - size
        if data[found - 20 : found - 16] == b"PK\x06\x07":  # ZIP64's locator and record
            record = found - 20 - 56
            size, offset = struct.unpack_from("<QQ", data, record + 40)
            directory = record - size
        start = directory - offset
        if start >= at and data[start : start + 4] == b"PK\x03\x04":
            yield start, end
        at = end


def sealed(content):
    """The same archives with the CRC-32 that each payload has now: an outline keeps the ones it had."""
    data = bytearray(content)
    for start, end in list(archives_in(data)):
        try:
            with zipfile.ZipFile(io.BytesIO(bytes(data[start:end]))) as archive:
                entries = archive.infolist()
                directory = start + archive.start_dir
            at = directory
            for entry in entries:
                crc_at = at + 16
                name_size, extra_size, comment_size = struct.unpack_from("<HHH", data, at + 28)
                at += 46 + name_size + extra_size + comment_size
                if entry.compress_type != zipfile.ZIP_STORED or entry.CRC == 0:
                    continue
                head = start + entry.header_offset
                local_name, local_extra = struct.unpack_from("<HH", data, head + 26)
                begin = head + 30 + local_name + local_extra
                payload = begin + entry.file_size
                crc = zlib.crc32(data[begin:payload])
                if crc == entry.CRC:
                    continue
                struct.pack_into("<I", data, crc_at, crc)
                if entry.flag_bits & 8:  # a data descriptor follows, with its signature
                    struct.pack_into("<I", data, payload + 4, crc)
                else:
                    struct.pack_into("<I", data, head + 14, crc)
        except (zipfile.BadZipFile, struct.error):  # hostile on purpose: kept as it is
            continue
    return bytes(data)


def outline(name, content):
    data = bytearray(content)
    if name.endswith(".safetensors"):
        payload = 8 + struct.unpack_from("<Q", data)[0]
        header = json.loads(data[8:payload])
        for key, tensor in header.items():
            if key != "__metadata__":
                begin, end = (payload + at for at in tensor["data_offsets"])
                data[begin:end] = stamped(data[begin:end])
    else:
        for start, end in list(archives_in(data)):
            try:
                for at, size in list(storages_in(data, start, end)):  # their CRCs stay as they were
                    data[at : at + size] = stamped(data[at : at + size])
            except (zipfile.BadZipFile, struct.error):  # hostile on purpose: kept as it is
                continue
    return bytes(data)


def pack(root, archive, folders):
    files = sorted(
        path
        for folder in folders
        for path in (root / folder).rglob("*")
        if path.is_file() and not path.is_symlink()
    )
    with tarfile.open(archive, "w:xz", format=tarfile.PAX_FORMAT, preset=9) as packed:
        for path in files:
            content = outline(path.name, path.read_bytes())
            entry = tarfile.TarInfo(str(path.relative_to(root)))
            entry.size = len(content)
            packed.addfile(entry, io.BytesIO(content))
    return len(files)


if __name__ == "__main__":
    root, archive, *folders = sys.argv[1:]
    print(pack(pathlib.Path(root), archive, folders), "files")
