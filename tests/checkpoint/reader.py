"""Verifies a folder of checkpoints and lists every record of a generation, from runtime/src/checkpoint/FORMAT.md alone.

python3 reader.py DIR [GENERATION]

Prints a line of JSON for each record: kind, pe, type, collection, index, and length and SHA-256 of its body and of each
attachment. Ends with exit code 1 and a sentence if anything is not what was written.
"""

import hashlib
import json
import os
import struct
import sys

MAGIC = bytes.fromhex("936d63636b700d0a")
KINDS = ["chare", "PE", "node", "driver"]


class Damaged(Exception):
    """A part of a checkpoint is not what was written."""


def need(is_so, file, what):
    if not is_so:
        raise Damaged(f"{file}: {what}")


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def read(*path):
    with open(os.path.join(*path), "rb") as file:
        return file.read()


class Fields:
    """Bytes that are read one field after the other."""

    def __init__(self, data, file):
        self.data, self.at, self.file = data, 0, file

    def take(self, count):
        need(self.at + count <= len(self.data), self.file, "it ends too early")
        self.at += count
        return self.data[self.at - count : self.at]

    def numbers(self, layout):
        return struct.unpack("<" + layout, self.take(struct.calcsize("<" + layout)))

    def number(self, layout):
        return self.numbers(layout)[0]

    def place(self):
        return self.numbers("IQIB32s")

    def end(self):
        need(self.at == len(self.data), self.file, "something follows its end")


class Generation:
    """One checkpoint."""

    def __init__(self, root, number):
        self.root = root
        folder = os.path.join(root, f"generation-{number:06}")
        file = os.path.join(folder, "MANIFEST.json")
        text = read(file)
        line = f"{sha256(text)}  MANIFEST.json\n".encode()
        need(read(folder, "COMMIT") == line, file, "COMMIT says something else")
        self.manifest = json.loads(text)
        need(self.manifest["format"] == "metachare checkpoint", file, "it is of something else")
        need(self.manifest["version"] == 1, file, "it is of another version")
        need(self.manifest["generation"] == number, file, "it is of another generation")
        self.lengths = {one["generation"]: one["bytes"] for one in self.manifest["chunk_files"]}
        for generation, length in self.lengths.items():
            path = self.chunks(generation)
            need(os.path.getsize(path) == length, path, "it has another length than was written")
        self.index = os.path.join(folder, "index")
        self.read_index(read(self.index))

    def chunks(self, generation):
        return os.path.join(self.root, f"generation-{generation:06}", "chunks")

    def read_index(self, data):
        expected = self.manifest["index"]
        need((len(data), sha256(data)) == (expected["bytes"], expected["sha256"]), self.index, "its checksum is wrong")
        fields = Fields(data, self.index)
        need(fields.take(8) == MAGIC, self.index, "it does not begin as an index does")
        version, self.chunk_length, count = fields.numbers("IIQ")
        need(version == 1 and 1 <= self.chunk_length <= 64 << 20, self.index, "its header is wrong")
        self.tables = [(*fields.numbers("BII"), fields.place()) for _ in range(count)]
        fields.end()

    def chunk(self, place):
        generation, offset, stored, codec, digest = place
        file = self.chunks(generation)
        need(codec == 0, file, "it is stored in an unknown way")
        need(offset + stored <= self.lengths.get(generation, 0), file, "a chunk would be beyond its end")
        with open(file, "rb") as opened:
            opened.seek(offset)
            data = opened.read(stored)
        need(hashlib.sha256(data).digest() == digest, file, f"the checksum of the chunk at {offset} is wrong")
        return data

    def value(self, fields):
        mark, length = fields.numbers("BQ")
        need(mark in (0, 1), fields.file, "a value is marked in an unknown way")
        if mark == 0:
            return fields.take(length)
        data = bytearray()
        for start in range(0, length, self.chunk_length):
            chunk = self.chunk(fields.place())
            need(len(chunk) == min(self.chunk_length, length - start), fields.file, "a chunk has a wrong length")
            data += chunk
        return bytes(data)

    def records(self):
        for kind, pe, count, place in self.tables:
            need(kind < len(KINDS), self.index, "a kind of record is unknown")
            fields = Fields(self.chunk(place), self.chunks(place[0]))
            for _ in range(count):
                name = fields.take(fields.number("I")).decode()
                collection, *index = fields.numbers("QIII")
                values = [self.value(fields) for _ in range(fields.number("I"))]
                need(values, fields.file, "a record has no body")
                yield {"kind": KINDS[kind], "pe": pe, "type": name, "collection": collection, "index": index}, values
            fields.end()


def committed(root):
    names = (name for name in os.listdir(root) if name.startswith("generation-"))
    return sorted(int(name[11:]) for name in names if os.path.exists(os.path.join(root, name, "COMMIT")))


def main(root, number=None):
    number = committed(root)[-1] if number is None else int(number)
    generation = Generation(root, number)
    records = total = 0
    for record, values in generation.records():
        record["values"] = [[len(value), sha256(value)] for value in values]
        records, total = records + 1, total + sum(map(len, values))
        print(json.dumps(record))
    manifest = generation.manifest
    need((records, total) == (manifest["records"], manifest["bytes"]), "MANIFEST.json", "it counts other records")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except (Damaged, OSError, IndexError, ValueError) as error:
        sys.exit(f"{type(error).__name__}: {error}")
