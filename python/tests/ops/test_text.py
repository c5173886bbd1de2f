"""Characters, n-grams, sets of strings and numbers, separated fields, coordinates.
The expected values were read off TensorFlow 2.21."""

import headrace as tf
import pytest

raw = tf.raw_ops
BAD = [b"h\xc3\xa9", b"\xff\xfea", b"\xe6\x97", b"a\xed\xa0\x80b", b""]


def test_bytes_that_are_no_characters():
    def rows(errors):
        return tf.strings.unicode_decode(BAD, "UTF-8", errors=errors).to_list()

    bad = 0xFFFD
    assert rows("replace") == [
        [104, 233],
        [bad, bad, 97],
        [bad],
        [97, bad, bad, bad, 98],
        [],
    ]
    assert rows("ignore") == [[104, 233], [97], [], [97, 98], []]
    with pytest.raises(tf.errors.InvalidArgumentError, match="Invalid formatting"):
        rows("strict")


@pytest.mark.parametrize(
    "encoding, text, points",
    [
        ("UTF-16-BE", b"\x00a\xd8\x3d\xde\x00", [97, 0x1F600]),
        ("UTF-16-BE", b"\x00a\xd8\x00", [97, 0xFFFD]),
        ("ISO-8859-1", b"a\xe9", [97, 233]),
        ("US-ASCII", b"a\xe9b", [97, 0xFFFD, 98]),
        ("US ASCII", b"ab", [97, 98]),
        ("SHIFT_JIS", "日本".encode("shift_jis"), [26085, 26412]),
    ],
)
def test_encodings(encoding, text, points):
    assert tf.strings.unicode_decode(text, encoding).numpy().tolist() == points


def test_wrong_encodings_and_characters():
    for name in ("NOPE", "", "UTF-8//IGNORE", "a\0b"):
        with pytest.raises(tf.errors.InvalidArgumentError, match="create converter"):
            tf.strings.unicode_decode(["a"], name)
    with pytest.raises(tf.errors.InvalidArgumentError, match="out of unicode"):
        tf.strings.unicode_decode(["a"], "UTF-8", replacement_char=0x110000)
    with pytest.raises(tf.errors.InvalidArgumentError, match="is a surrogate"):
        tf.strings.unicode_encode([0xD800], "UTF-8", errors="strict")


@pytest.mark.parametrize("splits", [[0, 3], [1, 2], [0, 2, 1, 2], []])
def test_forged_splits(splits):
    with pytest.raises(tf.errors.InvalidArgumentError):
        raw.UnicodeEncode(
            input_values=[104, 105],
            input_splits=tf.constant(splits, tf.int64),
            output_encoding="UTF-8",
        )


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16-BE", "UTF-32-BE"])
def test_there_and_back(encoding):
    python = {"UTF-8": "utf-8", "UTF-16-BE": "utf-16-be", "UTF-32-BE": "utf-32-be"}
    texts = ["Gö", "日本😀", ""]
    coded = tf.strings.unicode_transcode(texts, "UTF-8", encoding)
    assert coded.numpy().tolist() == [t.encode(python[encoding]) for t in texts]
    points = tf.strings.unicode_decode(coded, encoding)
    assert tf.strings.unicode_encode(points, encoding).numpy().tolist() == (
        coded.numpy().tolist()
    )


def test_splits_of_all_ranks():
    split = tf.strings.unicode_split
    assert split("Gö", "UTF-8").numpy().tolist() == [b"G", "ö".encode()]
    assert split(["ab", "c"], "UTF-8").to_list() == [[b"a", b"b"], [b"c"]]
    assert split([["ab"], ["c"]], "UTF-8").to_list() == [[[b"a", b"b"]], [[b"c"]]]
    ragged = tf.ragged.constant([["ab", "c"], ["d"]])
    assert split(ragged, "UTF-8").to_list() == [[[b"a", b"b"], [b"c"]], [[b"d"]]]
    points, starts = tf.strings.unicode_decode_with_offsets(["öa"], "UTF-8")
    assert (points.to_list(), starts.to_list()) == ([[246, 97]], [[0, 2]])
    assert tf.strings.bytes_split(["hi", ""]).to_list() == [[b"h", b"i"], []]
    spec = tf.TensorSpec([None], tf.string)
    f = tf.function(lambda x: split(x, "UTF-8"), input_signature=[spec])
    assert f(["ab"]).to_list() == [[b"a", b"b"]]


def test_ngrams():
    ngrams = tf.strings.ngrams
    rows = tf.ragged.constant([["A", "B", "C"], ["D"]])
    assert ngrams(rows, 2).to_list() == [[b"A B", b"B C"], []]
    assert ngrams(["A", "B", "C"], (2, 3), "-").numpy().tolist() == [
        b"A-B",
        b"B-C",
        b"A-B-C",
    ]
    assert ngrams([["A", "B"]], 3, pad_values=("<", ">")).numpy().tolist() == [
        [b"< < A", b"< A B", b"A B >", b"B > >"]
    ]
    assert ngrams(["A"], 3, preserve_short_sequences=True).numpy().tolist() == [b"A"]
    for wrong, match in (
        ({"ngram_width": 0}, "greater than 0"),
        ({"ngram_width": 2, "padding_width": 1}, "pad_values must be provided"),
    ):
        with pytest.raises(ValueError, match=match):
            ngrams(["A"], **wrong)


@pytest.mark.parametrize("splits", [[0, 3], [1, 2], [0, 2, 1, 2], [[0, 2]]])
def test_ngrams_of_forged_splits(splits):
    with pytest.raises(tf.errors.InvalidArgumentError):
        raw.StringNGrams(
            data=["a", "b"],
            data_splits=splits,
            separator="",
            ngram_widths=[1],
            left_pad="",
            right_pad="",
            pad_width=0,
            preserve_short_sequences=False,
        )


def test_segment_join():
    join = tf.strings.unsorted_segment_join
    assert join(["a", "b", "c"], [1, 0, 1], 3, ":").numpy().tolist() == [
        b"b",
        b"a:c",
        b"",
    ]
    assert join([["a", "b"], ["c", "d"]], [1, 1], 2).numpy().tolist() == [
        [b"", b""],
        [b"ac", b"bd"],
    ]
    for ids in ([1, -1, 0], [1, 5, 0]):
        with pytest.raises(tf.errors.InvalidArgumentError, match="not allowed"):
            join(["a", "b", "c"], ids, 3)


def test_unravel_index():
    assert tf.unravel_index([7, 3], [3, 4]).numpy().tolist() == [[1, 0], [3, 3]]
    assert tf.unravel_index(5, [3, 4]).numpy().tolist() == [1, 1]
    for index, dims in ((12, [3, 4]), (-1, [3, 4]), (0, [0, 4]), (0, [2**30] * 3)):
        with pytest.raises(tf.errors.InvalidArgumentError):
            tf.unravel_index(tf.constant([index]), dims)


ZERO, NUMBER, TEXT = tf.constant([0]), tf.constant([0.0]), tf.constant([""])


def test_decode_csv():
    columns = tf.io.decode_csv(["1,2.5,x", ' 3 ,,"a,""b"""'], [ZERO, NUMBER, TEXT])
    assert [c.numpy().tolist() for c in columns] == [
        [1, 3],
        [2.5, 0.0],
        [b"x", b'a,"b"'],
    ]
    (some,) = tf.io.decode_csv([["1|2|NA"]], [[7]], "|", na_value="NA", select_cols=[2])
    assert some.numpy().tolist() == [[7]]


@pytest.mark.parametrize(
    "record, defaults, options, text",
    [
        ("1", [ZERO, ZERO], {}, "Expect 2 fields but have 1 in record 0"),
        ("1,2,3", [ZERO, ZERO], {}, "Expect 2 fields but have 3"),
        ("a", [ZERO], {}, "Field 0 in record 0 is not a valid int32: a"),
        ("99999999999", [ZERO], {}, "is not a valid int32"),
        (",", [[0], tf.constant([], tf.int32)], {}, "Field 1 is required but missing"),
        ('"ab', [TEXT], {}, "Quoted field has to end with quote"),
        ('a"b', [TEXT], {}, "Unquoted fields cannot have quotes"),
        ('"a"b', [TEXT], {}, "has to be escaped by another quote"),
        ("1,2", [ZERO], {"field_delim": "||"}, "should be only 1 char"),
        ("1,2", [ZERO, ZERO], {"select_cols": [1, 0]}, "strictly increasing"),
        ("1,2", [ZERO], {"select_cols": [0, 1]}, "should match output size"),
    ],
)
def test_wrong_csv(record, defaults, options, text):
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        tf.io.decode_csv([record], defaults, **options)


def test_sets():
    a, b = [[1, 2, 2], [4, 5, 6]], [[2, 9], [6, 5]]

    def rows(sparse):
        return tf.RaggedTensor.from_sparse(sparse).to_list()

    assert rows(tf.sets.union(a, b)) == [[1, 2, 9], [4, 5, 6]]
    assert rows(tf.sets.intersection(a, b)) == [[2], [5, 6]]
    assert rows(tf.sets.difference(a, b)) == [[1], [4]]
    assert rows(tf.sets.difference(a, b, aminusb=False)) == [[9], []]
    sparse = tf.sparse.from_dense(b)
    assert rows(tf.sets.difference(a, sparse)) == [[1], [4]]
    assert rows(tf.sets.difference(sparse, a)) == [[9], []]
    assert rows(tf.sets.union(sparse, sparse)) == [[2, 9], [5, 6]]
    assert tf.sets.size(tf.sparse.from_dense([[3, 3], [0, 4]])).numpy().tolist() == [
        1,
        1,
    ]
    with pytest.raises(TypeError, match="Expected `SparseTensor`"):
        tf.sets.size([[1]])


@pytest.mark.parametrize(
    "indices, text",
    [
        ([[0, 5]], "out of bounds"),
        ([[1, 0], [0, 1]], "out of order"),
        ([[0, 0], [0, 0]], "repeated"),
        ([[0]], "must match second dimension"),
    ],
)
def test_forged_sets(indices, text):
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        raw.SetSize(
            set_indices=tf.constant(indices, tf.int64),
            set_values=[1] * len(indices),
            set_shape=tf.constant([3, 2], tf.int64),
        )
