# SPDX-License-Identifier: Apache-2.0
"""A disk that notes what it is told: one file on a FUSE mount, for a loop device to lie on.

`python3 power_disk.py IMAGE FOLDER LOG` mounts FOLDER with a file `disk`, whose bytes are IMAGE's, and
appends each write and each flush to LOG until it is unmounted. Speaks the kernel's FUSE protocol
itself (linux/fuse.h), so that no library is needed.
"""
import ctypes
import errno
import os
import stat
import struct
import sys

(LOOKUP, FORGET, GETATTR, SETATTR, OPEN, READ, WRITE, STATFS, RELEASE, FSYNC, FLUSH, INIT, OPENDIR,
 READDIR, RELEASEDIR, INTERRUPT, DESTROY, BATCH_FORGET) = (
    1, 2, 3, 4, 14, 15, 16, 17, 18, 20, 25, 26, 27, 28, 29, 36, 38, 42)  # fmt: skip
HEADER = struct.Struct("<IIQQIIII")
RECORD = struct.Struct("<cQI")  # b"w" and where and how much, or b"f"
ROOT, DISK = 1, 2
MOST = 128 << 10
FOREVER = 1 << 30


class Disk:
    """The file system's answers."""

    def __init__(self, image, log):
        self.image = os.open(image, os.O_RDWR)
        self.size = os.fstat(self.image).st_size
        self.log = open(log, "wb", buffering=0)

    def attributes(self, node):
        mode = stat.S_IFDIR | 0o755 if node == ROOT else stat.S_IFREG | 0o600
        size = 0 if node == ROOT else self.size
        return struct.pack("<6Q10I", node, size, size // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)

    def answer(self, operation, node, body):
        """The reply's bytes, an errno, or None where the kernel wants no reply."""
        if operation in (FORGET, BATCH_FORGET, INTERRUPT):
            return None
        if operation == INIT:
            return struct.pack("<IIIIHHIIHH8I", 7, 31, MOST, (1 << 5) | (1 << 22), 16, 12, MOST, 1,
                               MOST // 4096, 0, *[0] * 8)  # fmt: skip
        if operation == LOOKUP:
            if body.rstrip(b"\0") != b"disk":
                return errno.ENOENT
            return struct.pack("<QQQQII", DISK, 0, FOREVER, FOREVER, 0, 0) + self.attributes(DISK)
        if operation in (GETATTR, SETATTR):
            return struct.pack("<QII", FOREVER, 0, 0) + self.attributes(node)
        if operation in (OPEN, OPENDIR):
            return struct.pack("<QII", 0, 0, 0)
        if operation == READ:
            _, offset, size = struct.unpack_from("<QQI", body)
            return os.pread(self.image, size, offset)
        if operation == WRITE:
            _, offset, size = struct.unpack_from("<QQI", body)
            data = body[40 : 40 + size]
            os.pwrite(self.image, data, offset)
            self.log.write(RECORD.pack(b"w", offset, size) + data)
            return struct.pack("<II", size, 0)
        if operation == FSYNC:
            self.log.write(RECORD.pack(b"f", 0, 0))
            return b""
        if operation == STATFS:
            return bytes(80)
        if operation in (FLUSH, RELEASE, RELEASEDIR, READDIR, DESTROY):
            return b""
        return errno.ENOSYS


def serve(fuse, disk):
    while True:
        try:
            request = os.read(fuse, MOST + 4096)
        except OSError as error:
            if error.errno == errno.EINTR:
                continue
            return  # unmounted
        _, operation, unique, node = HEADER.unpack_from(request)[:4]
        reply = disk.answer(operation, node, request[HEADER.size :])
        if reply is None:
            continue
        code, data = (-reply, b"") if isinstance(reply, int) else (0, reply)
        os.write(fuse, struct.pack("<IiQ", 16 + len(data), code, unique) + data)


def main():
    image, folder, log = sys.argv[1:4]
    fuse = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={fuse},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"soak", os.fsencode(folder), b"fuse", 6, options) != 0:  # nosuid, nodev
        raise OSError(ctypes.get_errno(), "mount")
    print("ready", flush=True)
    serve(fuse, Disk(image, log))


if __name__ == "__main__":
    main()
