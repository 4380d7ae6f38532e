# SPDX-License-Identifier: Apache-2.0
"""Generated pickles, and what CPython's own unpickler in Python makes of them as a text."""
import io
import pickle
import struct

IMPORTED = ("mod_a", "mod_b.sub")


class Global:
    """What GLOBAL gives instead of an import."""

    def __init__(self, module, name):
        self.module = module
        self.name = name

    def __eq__(self, other):
        return isinstance(other, Global) and (self.module, self.name) == (other.module, other.name)

    def __hash__(self):
        return hash((self.module, self.name))


class Outside:
    """What only the one who reads could know: a persistent id (P), a registered extension (X)."""

    def __init__(self, kind, name):
        self.kind = kind
        self.name = name
        self.has_state = False


class Made:
    """What a call would make: a node with what was done to it."""

    def __init__(self, kind, callable_, args):
        self.kind = kind
        self.callable = callable_
        self.args = args
        self.appended = []
        self.items = []
        self.state = None
        self.has_state = False


class Pairs:
    """A dict that keeps every pair it was given; keys must be hashable all the same."""

    def __init__(self):
        self.pairs = []

    def set(self, key, value):
        hash(key)
        self.pairs.append((key, value))

    __hash__ = None


class Members:
    """A set that keeps every member it was given."""

    def __init__(self):
        self.members = []

    __hash__ = None


class FrozenMembers(tuple):
    """A frozenset in the order it was given."""


class Inert(pickle._Unpickler):
    """CPython's unpickler, with nodes where it would import, call, or merge equal keys."""

    dispatch = dict(pickle._Unpickler.dispatch)

    def find_class(self, module, name):
        return Global(module, name)

    def persistent_load(self, pid):
        return Outside("P", pid)

    def get_extension(self, code):
        if code <= 0:
            raise pickle.UnpicklingError("EXT specifies code <= 0")
        self.append(Outside("X", code))

    def made(self, kind, callable_, args):
        if not isinstance(callable_, (Global, Outside, Made)) or not isinstance(args, tuple):
            raise pickle.UnpicklingError("not callable")
        return Made(kind, callable_, args)

    def load_reduce(self):
        args = self.stack.pop()
        self.stack[-1] = self.made("R", self.stack[-1], args)

    def load_newobj(self):
        args = self.stack.pop()
        self.stack.append(self.made("O", self.stack.pop(), args))

    def load_build(self):
        state = self.stack.pop()
        node = self.stack[-1]
        if isinstance(node, Global):
            return  # functions have attributes; whether they are set is no part of the value
        can_have = isinstance(node, Made) or (isinstance(node, Outside) and node.kind == "P")
        if not can_have or node.has_state:
            raise pickle.UnpicklingError("no state for this")
        node.state, node.has_state = state, True

    def add_to_list(self, values):
        target = self.stack[-1]
        if isinstance(target, Made):
            target.appended += values
        elif type(target) is list:
            target.extend(values)
        else:
            raise pickle.UnpicklingError("no list")

    def load_append(self):
        value = self.stack.pop()
        self.add_to_list([value])

    def load_appends(self):
        self.add_to_list(self.pop_mark())

    def set_items(self, values):
        target = self.stack[-1]
        if len(values) % 2:
            raise pickle.UnpicklingError("odd number of items")
        for key, value in zip(values[::2], values[1::2]):
            if isinstance(target, Made):
                hash(key)
                target.items.append((key, value))
            elif isinstance(target, Pairs):
                target.set(key, value)
            else:
                raise pickle.UnpicklingError("no dict")

    def load_setitem(self):
        value = self.stack.pop()
        key = self.stack.pop()
        self.set_items([key, value])

    def load_setitems(self):
        self.set_items(self.pop_mark())

    def load_empty_dictionary(self):
        self.append(Pairs())

    def load_dict(self):
        values = self.pop_mark()
        self.append(Pairs())
        self.set_items(values)

    def load_bytearray8(self):
        size = struct.unpack("<Q", self.read(8))[0]
        data = self.read(min(size, 1 << 20))  # CPython makes room first, whatever is there
        if len(data) != size:
            raise pickle.UnpicklingError("truncated")
        self.append(bytearray(data))

    def load_empty_set(self):
        self.append(Members())

    def load_additems(self):
        values = self.pop_mark()
        target = self.stack[-1]
        if not isinstance(target, Members):
            raise pickle.UnpicklingError("no set")
        hash(tuple(values))
        target.members += values

    def load_frozenset(self):
        values = self.pop_mark()
        hash(tuple(values))
        self.append(FrozenMembers(values))

    for _code, _load in (
        (pickle.REDUCE, load_reduce), (pickle.NEWOBJ, load_newobj), (pickle.BUILD, load_build),
        (pickle.APPEND, load_append), (pickle.APPENDS, load_appends), (pickle.DICT, load_dict),
        (pickle.SETITEM, load_setitem), (pickle.SETITEMS, load_setitems),
        (pickle.EMPTY_DICT, load_empty_dictionary), (pickle.EMPTY_SET, load_empty_set),
        (pickle.BYTEARRAY8, load_bytearray8), (pickle.ADDITEMS, load_additems),
        (pickle.FROZENSET, load_frozenset),
    ):  # fmt: skip
        dispatch[_code[0]] = _load


class GraphText:
    """The text that pickle_graphs.cc prints too."""

    def __init__(self):
        self.parts = []
        self.numbers = {}

    def again(self, value):
        """Whether it was there before; what can be changed or shared has a number."""
        if id(value) in self.numbers:
            self.parts.append(f"@{self.numbers[id(value)]};")
            return True
        self.numbers[id(value)] = len(self.numbers)
        return False

    def of(self, value):
        self.add(value)
        return "".join(self.parts)

    def add(self, value):
        put = self.parts.append
        kind = type(value)
        if value is None:
            put("N;")
        elif kind is bool:
            put("T;" if value else "B;")
        elif kind is int:
            if -(1 << 63) <= value < 1 << 63:
                put(f"i{value};")
            else:
                size = (value.bit_length() if value >= 0 else (value + 1).bit_length()) // 8 + 1
                put(f"I{value.to_bytes(size, 'little', signed=True).hex()};")
        elif kind is float:
            put(f"f{c_hex(value)};")
        elif kind is str:
            put(f"s{value.encode('utf-8', 'surrogatepass').hex()};")
        elif kind in (bytes, bytearray):
            put(f"{'b' if kind is bytes else 'a'}{value.hex()};")
        elif kind is Global:
            names = (name.encode("utf-8", "surrogatepass").hex() for name in (value.module, value.name))
            put(f"g{' '.join(names)};")
        elif kind is Made:
            self.add_made(value)
        elif kind is Outside:
            put(value.kind)
            self.add(value.name)
        else:
            self.add_container(value, kind)

    def add_made(self, value):
        if self.again(value):
            return
        put = self.parts.append
        put("R(" if value.kind == "R" else "O(")
        self.add(value.callable)
        self.add(value.args)
        put("|")
        for one in value.appended:
            self.add(one)
        put("|")
        for pair in value.items:
            self.add(pair[0])
            self.add(pair[1])
        put("|")
        if value.has_state:
            self.add(value.state)
        put(")")

    def add_container(self, value, kind):
        heads = {list: "[", tuple: "(", Members: "S[", FrozenMembers: "F[", Pairs: "{"}
        if kind in (list, Members, Pairs) and self.again(value):
            return
        self.parts.append(heads[kind])
        if kind is Pairs:
            flat = [one for pair in value.pairs for one in pair]
        else:
            flat = value.members if kind is Members else value
        for one in flat:
            self.add(one)
        self.parts.append("]")


def c_hex(value):
    """A float as C's %a writes it."""
    if value != value:
        return "nan" if struct.pack("<d", value)[7] < 128 else "-nan"
    if value in (float("inf"), float("-inf")):
        return "inf" if value > 0 else "-inf"
    text = value.hex()
    mantissa, exponent = text.split("p")
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    return f"{mantissa}p{exponent}"


def graph_of(stream):
    """The text of what CPython makes of a stream; `-` where it refuses."""
    try:
        file = io.BytesIO(stream)
        value = Inert(file, encoding="utf-8").load()
        return GraphText().of(value)
    except (pickle.UnpicklingError, EOFError, ValueError, TypeError, IndexError, KeyError,
            AttributeError, OverflowError, struct.error, UnicodeError, MemoryError,
            RecursionError):  # fmt: skip
        return "-"


def value_ops(chance):
    """An opcode that pushes a value."""
    number = chance.randrange
    text = bytes(chance.choice(b"abcxyz\xc3\xa9") for _ in range(number(4)))
    return chance.choice([
        b"N", b"\x88", b"\x89", b"K" + bytes([number(256)]), b"M" + struct.pack("<H", number(65536)),
        b"J" + struct.pack("<i", number(-(1 << 31), 1 << 31)), b"]", b"}", b")", b"\x8f",
        b"G" + struct.pack(">d", chance.choice([0.5, -1e300, float("inf"), 1.0, -0.0])),
        b"\x8a" + bytes([len(text)]) + text, b"I%d\n" % number(-99, 99), b"I01\n", b"L%dL\n" % number(10**30),
        b"F%r\n" % chance.random(), b"X" + struct.pack("<I", len(text)) + text,
        b"\x8c" + bytes([len(text)]) + text, b"C" + bytes([len(text)]) + text,
        b"B" + struct.pack("<I", len(text)) + text, b"\x96" + struct.pack("<Q", len(text)) + text,
        b"cmod_a\nName%d\n" % number(2), b"V" + text.replace(b"\\", b"") + b"\n",
    ])  # fmt: skip


STRUCTURE = [
    b"(", b"(", b"l", b"t", b"d", b"e", b"u", b"a", b"s", b"0", b"1", b"2", b"\x85", b"\x86",
    b"\x87", b"\x90", b"\x91", b"R", b"\x81", b"b", b"\x94", b"\x93",
]  # fmt: skip


def stream_of(chance):
    """A stream of opcodes, half of it likely to be sound."""
    parts = [b"\x80" + bytes([chance.choice([2, 2, 4, 5])])] if chance.random() < 0.9 else []
    memo = 0
    for _ in range(chance.randrange(1, 14)):
        kind = chance.random()
        if kind < 0.55:
            parts.append(value_ops(chance))
        elif kind < 0.85:
            parts.append(chance.choice(STRUCTURE))
        elif kind < 0.93:
            parts.append(b"q" + bytes([memo]))
            memo += 1
        elif memo:
            parts.append(b"h" + bytes([chance.randrange(memo)]))
    if chance.random() < 0.6:
        parts.append(chance.choice([b"t", b"l", b"\x85", b"\x86", b"a", b"e", b"R", b"b"]))
    stream = b"".join(parts) + b"."
    if chance.random() < 0.05 and len(stream) > 2:
        at = chance.randrange(len(stream))
        stream = stream[:at] + bytes([chance.randrange(256)]) + stream[at + 1 :]
    return stream
