"""Archives of others: their members by name, without a copy of the file."""
from __future__ import annotations

import io
import pathlib
import struct
import zipfile
import zlib
from typing import BinaryIO, Dict, NamedTuple

from .._arrays import Array
from .arrays import mapped
from .limits import MOST_DIRECTORY, MOST_ENTRIES, refuse


class Member(NamedTuple):
    name: str
    offset: int       # of its bytes in the file
    stored: int       # how many they are
    size: int         # how many they are when they are unpacked
    method: int       # 0: as they are; 8: deflated
    check: int        # CRC-32 of what is unpacked


class _ShortReads(io.RawIOBase):
    """A file that is never read at once by more bytes than an archive's directory may have."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def read(self, count: int = -1) -> bytes:
        if count > MOST_DIRECTORY:
            raise zipfile.BadZipFile(f"a directory of {count} bytes, at most {MOST_DIRECTORY}")
        return self._file.read(1 << 17 if count < 0 else count)  # its end has at most 65,557

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def seekable(self) -> bool:
        return True


def members(path: pathlib.Path) -> Dict[str, Member]:
    """The members of an archive. Raises Error import_container for one that is broken, or has two
    members of one name, import_limit for one of too many."""
    found: Dict[str, Member] = {}
    try:
        with open(path, "rb") as file:
            end = file.seek(0, 2)
            with zipfile.ZipFile(_ShortReads(file)) as archive:
                listed = archive.infolist()
            if len(listed) > MOST_ENTRIES:
                refuse("import_limit", f"{path} has {len(listed)} members; at most {MOST_ENTRIES}: "
                                       "split it")
            for info in listed:
                if info.filename in found:
                    refuse("import_container", f"{path} has two members {info.filename!r}")
                if info.flag_bits & 1:
                    refuse("import_container", f"{path}: {info.filename!r} is encrypted")
                file.seek(info.header_offset)
                header = file.read(30)
                if len(header) < 30 or header[:4] != b"PK\3\4":
                    refuse("import_container", f"{path}: no member begins where {info.filename!r} "
                                               "should; write the file again")
                name, extra = struct.unpack("<HH", header[26:30])
                offset = info.header_offset + 30 + name + extra
                if offset + info.compress_size > end:
                    refuse("import_container", f"{path} ends within {info.filename!r}; copy it "
                                               "again")
                found[info.filename] = Member(info.filename, offset, info.compress_size,
                                              info.file_size, info.compress_type, info.CRC)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, struct.error,
            OverflowError) as error:
        refuse("import_container", f"{path} is not an archive that can be read: {error}; "
                                   "copy it again")
    return found


def unpacked(path: pathlib.Path, member: Member, most: int) -> bytes:
    """The first `most` bytes of a deflated member, or all if it has no more."""
    what = f"{path}: {member.name}"
    if member.method != 8:
        refuse("import_container", f"{what} is packed in a way that is not read; legal: as it is, "
                                   "deflated")
    packed: Array = mapped(path, member.offset, member.stored)
    machine = zlib.decompressobj(-15)
    try:
        data = machine.decompress(packed.data, most + 1)
    except zlib.error as error:
        refuse("import_container", f"{what} cannot be unpacked: {error}; copy it again")
    if len(data) <= most and machine.eof and zlib.crc32(data) != member.check:
        refuse("import_container", f"{what} is not what was written: its CRC differs; copy it "
                                   "again")
    return data[:most]
