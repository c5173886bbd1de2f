"""Recipes of string ops and of parsing."""

import numpy as np
from draw import INDEX, NUMBERS, WIDE, Type

RECIPES = {}


def recipe(ops):
    def register(make):
        RECIPES.update(dict.fromkeys(ops.split(), make))
        return make

    return register


def _words(d, shape, words):
    made = np.empty(int(np.prod(shape)), object)
    made[:] = [d.pick(*words) for _ in range(made.size)]
    return made.reshape(shape)


@recipe("StringLower StringUpper")
def case(d, op):
    return {"input": d.array("string", d.shape()), "encoding": d.pick("", "utf-8")}


@recipe("StringStrip StringLength EncodeBase64")
def plain(d, op):
    made = {"input": d.array("string", d.shape())}
    if op == "StringLength":
        made["unit"] = d.pick("BYTE", "UTF8_CHAR")
    return {**made, "pad": d.maybe()} if op == "EncodeBase64" else made


@recipe("DecodeBase64")
def decode_base64(d, op):
    return {
        "input": _words(d, d.shape(), (b"", b"YQ", b"YWI=", b"-_-_", b"YQ==", b"Y!"))
    }


@recipe("StringJoin")
def join(d, op):
    shape = d.shape()
    parts = [
        d.array("string", () if d.maybe(0.2) else shape) for _ in range(d.integer(1, 3))
    ]
    return {"inputs": parts, "separator": d.pick("", ", ")}


@recipe("ReduceJoin")
def reduce_join(d, op):
    shape = d.shape(most=3)
    axes = np.asarray(d.axes(len(shape)), "int32")
    made = {"inputs": d.array("string", shape), "reduction_indices": axes}
    return {**made, "keep_dims": d.maybe(), "separator": d.pick("", "-")}


@recipe("UnsortedSegmentJoin")
def segment_join(d, op):
    shape = d.shape(least=1, most=2)
    ids = d.between(d.pick(*INDEX), shape[:1], 0, 2)
    number = np.asarray(3, "int32")
    return {
        "inputs": d.array("string", shape),
        "segment_ids": ids,
        "num_segments": number,
    }


@recipe("Substr")
def substr(d, op):
    shape = d.shape(most=2)
    index = d.pick(*INDEX)
    own = () if d.maybe() else shape
    made = {"input": _words(d, shape, (b"abcdef", "gr\u00fc\u00dfe".encode(), b"xyz"))}
    made["pos"], made["len"] = d.between(index, own, -3, 3), d.between(index, own, 0, 4)
    return {**made, "unit": d.pick("BYTE", "UTF8_CHAR")}


@recipe("StringSplit StringSplitV2")
def split(d, op):
    words = _words(
        d, (d.integer(0, 4),), (b"a b  c", b"a,b,,c", b"", b" ", b",", b"abc")
    )
    if op == "StringSplit":
        delimiter = np.asarray(d.pick(b" ", b",", b", ", b""), object)
        return {"input": words, "delimiter": delimiter, "skip_empty": d.maybe()}
    sep = np.asarray(d.pick(b"", b",", b",,"), object)
    return {"input": words, "sep": sep, "maxsplit": d.pick(-1, 0, 1, 2)}


@recipe("RegexReplace RegexFullMatch StaticRegexReplace StaticRegexFullMatch")
def regex(d, op):
    pattern, rewrite = (
        d.pick("a+", "(.)b", "[^a-z]", "", "(", "x|y", "^A"),
        d.pick("", "_\\1", "\\0!"),
    )
    made = {"input": d.array("string", d.shape())}
    if op.startswith("Static"):
        made["pattern"] = pattern
        return made if op.endswith("Match") else {**made, "rewrite": rewrite}
    made["pattern"] = np.asarray(pattern.encode(), object)
    if op.endswith("Match"):
        return made
    made["rewrite"] = np.asarray(rewrite.encode(), object)
    return {**made, "replace_global": d.maybe()}


@recipe("StringToNumber")
def to_number(d, op):
    words = (b"1", b"-2", b"3.5", b"1e3", b" 4 ", b"+5", b"inf", b"nan", b"0.1")
    kinds = (*WIDE, "int32", "int64", "uint32", "uint64")
    return {
        "string_tensor": _words(d, d.shape(most=2, largest=3), words),
        "out_type": Type(d.pick(*kinds)),
    }


@recipe("AsString")
def as_string(d, op):
    dtype = d.pick(*NUMBERS, "bool", "string")
    made = {"input": d.array(dtype, d.shape())}
    if dtype.startswith(("float", "bfloat", "complex")):
        made["precision"] = d.pick(-1, 0, 3, 17)
        made.update(d.pick({}, {"scientific": True}, {"shortest": True}))
    return {
        **made,
        "width": d.pick(-1, -1, 8),
        "fill": d.pick("", "", "0", " ", "-", "+", "#"),
    }


@recipe("StringToHashBucket StringToHashBucketFast StringToHashBucketStrong")
def hashes(d, op):
    name = "string_tensor" if op == "StringToHashBucket" else "input"
    made = {name: d.array("string", d.shape()), "num_buckets": d.integer(1, 1000)}
    return {**made, "key": [d.integer(0, 99), 7]} if op.endswith("Strong") else made


@recipe("UnicodeDecode UnicodeDecodeWithOffsets")
def unicode_decode(d, op):
    words = (
        "gr\u00fc\u00df".encode(),
        b"ab",
        b"",
        b"a\xffb",
        "\u4e2d\U0001f600".encode(),
    )
    made = {"input": _words(d, (d.integer(0, 4),), words)}
    made.update(
        input_encoding=d.pick("UTF-8", "UTF-16-BE"),
        errors=d.pick("replace", "ignore", "strict"),
    )
    made["replacement_char"] = d.pick(65533, 63)
    made["replace_control_characters"] = d.maybe(0.3)
    return {**made, "Tsplits": Type(d.pick(*INDEX))}


@recipe("UnicodeTranscode")
def transcode(d, op):
    words = ("gr\u00fc\u00df".encode(), b"ab", b"", b"a\xffb", b"\x01x")
    made = {"input": _words(d, d.shape(), words), "input_encoding": "UTF-8"}
    made["output_encoding"] = d.pick("UTF-8", "UTF-16-BE", "UTF-32-BE")
    return {
        **made,
        "errors": d.pick("replace", "ignore"),
        "replace_control_characters": d.maybe(),
    }


@recipe("UnicodeScript")
def script(d, op):
    return {"input": d.between("int32", d.shape(), 0, 3000)}


@recipe("DecodeRaw")
def decode_raw(d, op):
    words = (b"12345678", b"abcdefgh")
    out = Type(
        d.pick("uint8", "int32", "float32", "int64", "float16", "complex64", "bool")
    )
    made = {"bytes": _words(d, d.shape(most=2), words), "out_type": out}
    return {**made, "little_endian": d.maybe()}


@recipe("DecodePaddedRaw")
def decode_padded(d, op):
    words = (b"1234567", b"ab", b"")
    made = {"input_bytes": _words(d, d.shape(most=2), words)}
    made["fixed_length"] = np.asarray(8, "int32")
    out = Type(d.pick("uint8", "int32", "int16", "float32"))
    return {**made, "out_type": out, "little_endian": d.maybe()}


@recipe("DecodeCSV")
def decode_csv(d, op):
    rows = _words(d, d.shape(most=2), (b"1,2.5,a", b'3,,"b,c"', b"-4,1e2,", b",7,x"))
    defaults = [
        np.asarray([5], "int32"),
        np.asarray([0.5], "float32"),
        np.asarray([b"z"], object),
    ]
    if d.maybe(0.2):
        defaults[0] = np.zeros((0,), "int32")
    return {"records": rows, "record_defaults": defaults, "na_value": d.pick("", "-4")}


@recipe("StringNGrams")
def ngrams(d, op):
    count = d.integer(1, 6)
    cut = d.integer(0, count)
    made = {
        "data": d.array("string", (count,)),
        "data_splits": np.asarray([0, cut, count], d.pick(*INDEX)),
    }
    made.update(separator=d.pick(" ", ""), ngram_widths=d.pick([1], [2], [1, 3]))
    made.update(left_pad=d.pick("", "<"), right_pad=d.pick("", ">"))
    return {
        **made,
        "pad_width": d.pick(-1, 0, 1),
        "preserve_short_sequences": d.maybe(),
    }
