"""Verifies a folder of checkpoints and lists every record of a generation, from runtime/src/checkpoint/FORMAT.md alone.

python3 reader.py DIR [GENERATION]

Prints a line of JSON for each record: kind, pe, type, collection, index, length and SHA-256 of its body and of each
attachment, and its value where its shape is known. Ends with 1 and a sentence if anything is not what was written.
"""

import ctypes, hashlib, json, struct, sys
from blake3 import blake3
from pathlib import Path

PLACE = "IQIB32s"
KINDS = ["chare", "PE", "node", "driver"]
FIXED = {"u8": "B", "i8": "b", "f32": "f", "f64": "d"}
ARRAYS = {**FIXED, "u16": "H", "u32": "I", "u64": "Q", "i16": "h", "i32": "i", "i64": "q"}


class Damaged(Exception):
    """A part of a checkpoint is not what was written."""


def need(is_so, file, what):
    if not is_so:
        raise Damaged(f"{file}: {what}")


def unzstd(data, length, file):
    out, library = ctypes.create_string_buffer(length), ctypes.CDLL("libzstd.so.1")  # Systems have it for their packages.
    done = library.ZSTD_decompress(out, ctypes.c_size_t(length), data, ctypes.c_size_t(len(data)))
    need(done == length, file, "what is compressed has another length")
    return out.raw


class Fields:
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

    def varint(self):
        byte = self.number("B")
        return byte if byte < 128 else byte - 128 + (self.varint() << 7)

    def end(self):
        need(self.at == len(self.data), self.file, "something follows its end")

    def length(self, count, byte=255):  # After 15 come bytes to be added, up to one below 255.
        while count >= 15 and byte == 255:
            byte = self.number("B")
            count += byte
        return count

    def expand(self):
        """What a block of LZ4 stands for: some bytes as they are, then a copy of earlier ones, in turn."""
        out = bytearray()
        while self.at < len(self.data):
            token = self.number("B")
            out += self.take(self.length(token >> 4))
            if self.at < len(self.data):
                back = self.number("H")
                for _ in range(4 + self.length(token & 15)):
                    out.append(out[-back])  # Ends with an IndexError where that is before the beginning.
        return bytes(out)


def plain(number):
    """As JSON can have it: what is no number or infinite, and what has more than 64 bits, as text."""
    has = number - number == 0 if isinstance(number, float) else -(1 << 63) <= number < 1 << 64
    return number if has else str(number).replace("nan", "NaN")


def decode(shape, fields, arrays, around=()):
    """The value of that shape, inside these named types."""
    kind, of = (shape, None) if isinstance(shape, str) else next(iter(shape.items()))
    inside = lambda shape: decode(shape, fields, arrays, around)
    if kind == "named":
        return decode(of[1], fields, arrays, (*around, of))
    if kind == "again":
        at = max(at for at, (name, _) in enumerate(around) if name == of)
        return decode(around[at][1], fields, arrays, around[: at + 1])
    if kind in FIXED:
        return plain(fields.number(FIXED[kind]))
    if kind[1:] in ("16", "32", "64", "128", "size"):
        value = fields.varint()
        return plain(value if kind[0] == "u" else (value >> 1) ^ -(value & 1))
    if kind in ("bytes", "text", "char"):
        return (list if kind == "bytes" else bytes.decode)(bytes(fields.take(fields.varint())))
    if kind in ("tuple", "struct"):
        return [inside(part) for part in of] if kind == "tuple" else {name: inside(part) for name, part in of}
    if kind == "enum":
        name, part = of[fields.varint()]
        return name if part == "unit" else {name: inside(part)}
    if kind == "bulk":
        is_beside = fields.number("B") == 0
        data = arrays[fields.varint()] if is_beside else fields.take(fields.varint())
        numbers = [plain(one) for (one,) in struct.iter_unpack("<" + ARRAYS[of], data)]
        need(not is_beside or fields.varint() == len(numbers), fields.file, "an array has another length")
        return numbers
    if kind in ("seq", "map"):
        return [inside(of) if kind == "seq" else [inside(part) for part in of] for _ in range(fields.varint())]
    need(kind in ("unit", "bool", "option"), fields.file, f"a shape is of the unknown kind {kind}")
    is_so = kind != "unit" and fields.number("?")
    return is_so if kind == "bool" else inside(of) if is_so else None


class Generation:
    def __init__(self, root, number):
        self.root = root
        text = (file := self.file(number, "MANIFEST.json")).read_bytes()
        lines = [f"{sum(text).hexdigest()}  MANIFEST.json\n".encode() for sum in (blake3, hashlib.sha256)]
        need(self.file(number, "COMMIT").read_bytes() in lines, file, "COMMIT says something else")
        self.manifest = json.loads(text)
        of = [self.manifest[key] for key in ("format", "version", "generation")]
        is_known = of in (["metachare checkpoint", version, number] for version in (1, 2, 3))
        need(is_known, file, "it is of something else, another version or another generation")
        self.lengths = {one["generation"]: one["bytes"] for one in self.manifest["chunk_files"]}
        for path, length in ((self.file(generation, "chunks"), length) for generation, length in self.lengths.items()):
            need(path.stat().st_size == length, path, "it has another length than was written")
        self.index = self.file(number, "index")
        data, said = self.index.read_bytes(), self.manifest["index"]
        found = {"bytes": len(data), "blake3": blake3(data).hexdigest(), "sha256": hashlib.sha256(data).hexdigest()}
        need(len(said) == 2 and said.items() <= found.items(), self.index, "its checksum is wrong")
        fields = Fields(data, self.index)
        need(fields.take(8) == b"\x93mcckp\r\n", self.index, "it does not begin as an index does")
        version, self.chunk_length, count = fields.numbers("IIQ")
        need(version in (1, 2, 3) and 1 <= self.chunk_length <= 64 << 20, self.index, "its header is wrong")
        self.tables = [(*fields.numbers("BII"), fields.numbers(PLACE)) for _ in range(count)]
        fields.end()

    def file(self, generation, name):
        return self.root / f"generation-{generation:06}" / name

    def chunk(self, place, length=None):
        generation, offset, stored, codec, digest = place
        file, sum = self.file(generation, "chunks"), blake3 if codec > 1 else hashlib.sha256
        need(codec in ((0, 1, 2, 3) if length else (0, 2)), file, "it is stored in an unknown way")
        need(offset + stored <= self.lengths.get(generation, 0), file, "a chunk would be beyond its end")
        with open(file, "rb") as opened:
            opened.seek(offset)
            data = opened.read(stored)
        if codec in (1, 3):
            need(sum(data[:-8]).digest()[:8] == data[-8:], file, f"what is compressed at {offset} is damaged")
            data = unzstd(data[:-8], length, file) if codec == 3 else Fields(data[:-8], file).expand()
        is_right = sum(data).digest() == digest and length in (None, len(data))
        need(is_right, file, f"the checksum or length of the chunk at {offset} is wrong")
        return data

    def value(self, fields):
        mark, length = fields.numbers("BQ")
        need(mark in (0, 1), fields.file, "a value is marked in an unknown way")
        data = bytearray(fields.take(length) if mark == 0 else b"")
        for start in range(0, length * mark, self.chunk_length):
            data += self.chunk(fields.numbers(PLACE), min(self.chunk_length, length - start))
        return bytes(data)

    def records(self):
        for kind, pe, count, place in self.tables:
            fields = Fields(self.chunk(place), self.file(place[0], "chunks"))
            for _ in range(count):
                name = fields.take(fields.number("I")).decode()
                collection, *index = fields.numbers("QIII")
                values = [self.value(fields) for _ in range(fields.number("I"))]
                need(values, fields.file, "a record has no body")
                yield {"kind": KINDS[kind], "pe": pe, "type": name, "collection": collection, "index": index}, values
            fields.end()


def main(root, number=None):
    committed = [int(path.parent.name[11:]) for path in Path(root).glob("generation-*/COMMIT")]
    generation = Generation(Path(root), max(committed) if number is None else int(number))
    shapes = {(one["kind"], one["name"]): one["shape"] for one in generation.manifest["types"] if "shape" in one}
    shapes |= {("node", one["id"]): one["shape"] for one in generation.manifest.get("variables", ())}
    counted = [0, 0]
    for record, values in generation.records():
        record["values"] = [[len(value), hashlib.sha256(value).hexdigest()] for value in values]
        counted = [counted[0] + 1, counted[1] + sum(map(len, values))]
        of_one = shapes.get((record["kind"], record["collection"]), "opaque")
        if (shape := shapes.get((record["kind"], record["type"]), of_one)) != "opaque":
            fields = Fields(values[0], generation.index)
            record["value"] = decode(shape, fields, values[1:])
            fields.end()
        print(json.dumps(record))
    need(counted == [generation.manifest[key] for key in ("records", "bytes")], "MANIFEST.json", "it counts otherwise")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except (Damaged, OSError, IndexError, ValueError) as error:
        sys.exit(f"{type(error).__name__}: {error}")
