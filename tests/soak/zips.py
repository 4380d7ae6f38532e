# SPDX-License-Identifier: Apache-2.0
"""An archive of torch with one thing wrong at a time, and what is to be said of it."""
import struct

END = b"PK\x05\x06"
END64 = b"PK\x06\x06"
LOCATOR = b"PK\x06\x07"
ENTRY = b"PK\x01\x02"
LOCAL = b"PK\x03\x04"


class Archive:
    """Where the parts of an archive are; `patched` gives a copy with bytes replaced."""

    def __init__(self, data):
        self.data = data
        self.end = data.rindex(END)
        self.end64 = data.rindex(END64)
        self.locator = data.rindex(LOCATOR)
        self.entries = []
        at = struct.unpack_from("<Q", data, self.end64 + 48)[0]
        while data[at : at + 4] == ENTRY:
            name, extra, comment = struct.unpack_from("<HHH", data, at + 28)
            self.entries.append((at, name))
            at += 46 + name + extra + comment

    def patched(self, *changes):
        made = bytearray(self.data)
        for at, new in changes:
            made[at : at + len(new)] = new
        return bytes(made)

    def entry(self, number, field, new):
        return self.patched((self.entries[number][0] + field, new))

    def named(self, number, name):
        at, length = self.entries[number]
        new = name[:length].ljust(length, b"x")
        local = struct.unpack_from("<I", self.data, at + 42)[0]
        return self.patched((at + 46, new), (local + 30, new))


def verdicts(data):
    """By name: the archive, and which of `ok` and `no` may be said."""
    zip_ = Archive(data)
    at, length = zip_.entries[-1]
    local = struct.unpack_from("<I", data, at + 42)[0]
    size = struct.unpack_from("<I", data, at + 24)[0]
    name = struct.unpack_from("<HH", data, local + 26)
    content = local + 30 + sum(name)
    flipped = bytes([data[content] ^ 1]) if size else b"\0"
    rows = {
        "sound": (data, "ok"),
        "no_end": (data[: zip_.end], "no"),
        "cut_end": (data[:-3], "no"),
        "comment": (data[:-2] + struct.pack("<H", 4) + b"note", "ok no"),
        "false_end_in_comment": (data[:-2] + struct.pack("<H", 22) + END + bytes(18), "no"),
        "bytes_in_front": (b"MZ" * 32 + data, "no"),
        "bytes_behind": (data + b"junk", "no"),
        "locator_elsewhere": (zip_.patched((zip_.locator + 8, struct.pack("<Q", 7))), "no"),
        "no_zip64_end": (zip_.patched((zip_.end64, b"XX")), "no"),
        "count_lies": (zip_.patched((zip_.end64 + 32, struct.pack("<Q", 99))), "no"),
        "directory_beyond": (zip_.patched((zip_.end64 + 48, struct.pack("<Q", 1 << 40))), "no"),
        "directory_too_large": (zip_.patched((zip_.end64 + 40, struct.pack("<Q", 1 << 40))), "no"),
        "another_disk": (zip_.patched((zip_.end64 + 16, struct.pack("<I", 3))), "no"),
        "encrypted": (zip_.entry(-1, 8, struct.pack("<H", 0x0809)), "no"),
        "patched_flag": (zip_.entry(-1, 8, struct.pack("<H", 0x0828)), "no"),
        "strong_encryption": (zip_.entry(-1, 8, struct.pack("<H", 0x0848)), "no"),
        "masked_headers": (zip_.entry(-1, 8, struct.pack("<H", 0x2808)), "no"),
        "deflated": (zip_.entry(-1, 10, struct.pack("<H", 8)), "no"),
        "unknown_method": (zip_.entry(-1, 10, struct.pack("<H", 99)), "no"),
        "wrong_crc": (zip_.entry(-1, 16, b"\1\2\3\4"), "no"),
        "sizes_differ": (zip_.entry(-1, 20, struct.pack("<I", size + 1)), "no"),
        "larger_than_file": (
            zip_.patched((at + 20, struct.pack("<II", 0x7FFFFFFF, 0x7FFFFFFF))), "no"),
        "sentinel_without_extra": (zip_.entry(-1, 24, b"\xff\xff\xff\xff"), "no"),
        "local_signature": (zip_.patched((local, b"XX")), "no"),
        "local_name": (zip_.patched((local + 30, b"Z")), "no"),
        "local_beyond": (zip_.entry(-1, 42, struct.pack("<I", len(data))), "no"),
        "overlap": (zip_.entry(-1, 42, data[zip_.entries[0][0] + 42 :][:4]), "no"),
        "same_name_twice": (zip_.named(-1, data[zip_.entries[0][0] + 46 :][:length]), "no"),
        "absolute_name": (zip_.named(-1, b"/etc/passwd"), "no"),
        "name_leads_out": (zip_.named(-1, b"a/../../b"), "no"),
        "nul_in_name": (zip_.named(-1, b"a/b\0c"), "no"),
        "backslash_in_name": (zip_.named(-1, b"a\\b"), "no"),
        "flipped_payload": (zip_.patched((content, flipped)), "no"),
        "cut_in_half": (data[: len(data) // 2], "no"),
        "tar": (b"\0" * 257 + b"ustar\x0000" + bytes(400), "no"),
        "seven_zip": (b"7z\xbc\xaf\x27\x1c" + bytes(100), "no"),
        "gzip": (b"\x1f\x8b\x08" + bytes(100), "no"),
    }  # fmt: skip
    return rows
