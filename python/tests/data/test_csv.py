"""CsvDataset and make_csv_dataset against Python's own reader and upstream's words."""

import csv
import gzip
import random

import headrace as tf
import numpy as np
import pytest

CsvDataset = tf.data.experimental.CsvDataset
make_csv_dataset = tf.data.experimental.make_csv_dataset
DEFAULTS = [
    tf.constant([-1], tf.int32),
    tf.constant([0.5], tf.float32),
    tf.constant(["d"], tf.string),
]


@pytest.fixture(autouse=True)
def _inside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def _file(text, name="f.csv"):
    with open(name, "w", encoding="utf8", newline="") as f:
        f.write(text)
    return name


def _rows(dataset):
    return [
        tuple(np.asarray(x).tolist() for x in row)
        for row in dataset.as_numpy_iterator()
    ]


ROWS = [
    ('1,2.5,"a,\nb"\n', [(1, 2.5, b"a,\nb")]),
    (',3,x\r\n7,,""\n', [(-1, 3.0, b"x"), (7, 0.5, b"d")]),
    ('9,1e3,"q""q"', [(9, 1000.0, b'q"q')]),
    ("1,2,3\r4,5,6\r", [(1, 2.0, b"3"), (4, 5.0, b"6")]),
    (" 1 , 2 , 3 \n", [(1, 2.0, b" 3 ")]),
    ('1,2,"a\r\nb"\r\n3,4,c\r\n', [(1, 2.0, b"a\r\nb"), (3, 4.0, b"c")]),
    ("", []),
]


@pytest.mark.parametrize("text, expected", ROWS)
@pytest.mark.parametrize("buffer_size", [1, 3, None])
def test_records(text, expected, buffer_size):
    dataset = CsvDataset(_file(text), DEFAULTS, buffer_size=buffer_size)
    assert _rows(dataset) == expected
    assert [s.dtype for s in dataset.element_spec] == [d.dtype for d in DEFAULTS]


BAD = [
    ("\n1,2,3\n", "Expect 3 fields but have 1 in record"),
    ("1,2,3,4\n", "Expect 3 fields but have more in record"),
    ("h,2,3\n", "Field 0 in record is not a valid int32: h"),
    ("99999999999,2,3\n", "Field 0 in record is not a valid int32: 99999999999"),
    ('1,2,x"y\n', "Unquoted fields cannot have quotes"),
    ('1,2,"xy\n', "Quoted field has to end with quote"),
    ('1,2,"x"y\n', "Quote inside a string has to be escaped"),
]


@pytest.mark.parametrize("text, message", BAD)
def test_damaged_records(text, message):
    good = CsvDataset(_file(text + "7,8,9\n"), DEFAULTS)
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        _rows(good)
    if '"xy' not in text:
        assert (7, 8.0, b"9") in _rows(good.ignore_errors())


def test_header_and_several_files():
    names = [_file("h,i,j\n5,5,z\n", "a"), _file("h,i,j\n6,,y\n", "b")]
    expected = [(5, 5.0, b"z"), (6, 0.5, b"y")]
    assert _rows(CsvDataset(names, DEFAULTS, header=True)) == expected
    with pytest.raises(tf.errors.InvalidArgumentError, match="header"):
        _rows(CsvDataset(_file(""), DEFAULTS, header=True))


def test_required_fields():
    types = [tf.int32, tf.float32, tf.string]
    assert _rows(CsvDataset(_file("1,2,x\n"), types)) == [(1, 2.0, b"x")]
    with pytest.raises(tf.errors.InvalidArgumentError, match="Field 1 is required"):
        _rows(CsvDataset(_file("1,,x\n"), types))


def test_columns_that_are_taken():
    name, ends = _file("1,2,x\n3,4,y\n"), [DEFAULTS[0], DEFAULTS[2]]
    expected = [(1, b"x"), (3, b"y")]
    assert _rows(CsvDataset(name, ends, select_cols=[0, 2])) == expected
    assert _rows(CsvDataset(name, ends, exclude_cols=[1])) == expected
    for message, settings in [
        ("strictly increasing", {"select_cols": [2, 0]}),
        ("match output size", {"select_cols": [0]}),
        ("Either", {"select_cols": [0, 2], "exclude_cols": [1]}),
        ("only 1 char", {"field_delim": "||"}),
        ("should be positive", {"buffer_size": 0}),
    ]:
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            CsvDataset(name, ends, **settings)


def test_settings():
    row = [(1, 0.5, b'"x')]
    name = _file('1|na|"x\n')
    dataset = CsvDataset(
        name, DEFAULTS, field_delim="|", use_quote_delim=False, na_value="na"
    )
    assert _rows(dataset) == row
    with gzip.open("z", "wt") as f:
        f.write("1,2,x\n")
    assert _rows(CsvDataset("z", DEFAULTS, "GZIP")) == [(1, 2.0, b"x")]


def test_what_python_writes():
    rng = random.Random(1)
    rows = [
        ["".join(rng.choices('ab",\r\n ;', k=rng.randrange(6))) for _ in range(4)]
        for _ in range(200)
    ]
    with open("p.csv", "w", newline="", encoding="utf8") as f:
        csv.writer(f, quoting=csv.QUOTE_ALL).writerows(rows)
    found = _rows(CsvDataset("p.csv", [[""]] * 4, buffer_size=7))
    assert found == [tuple(x.encode() for x in row) for row in rows]


@pytest.mark.parametrize("buffer_size", [1, 5, 1000])
def test_places_are_saved(buffer_size):
    names = [_file("h,i,j\n1,2,x\n3,4,y\n5,6,z\n", "a"), _file("h,i,j\n7,8,w\n", "b")]
    dataset = CsvDataset(names, DEFAULTS, buffer_size=buffer_size, header=True)
    whole = _rows(dataset)
    for steps in range(len(whole) + 1):
        iterator = iter(dataset)
        for _ in range(steps):
            next(iterator)
        path = tf.train.Checkpoint(i=iterator).write(f"ckpt{steps}")
        other = iter(dataset)
        tf.train.Checkpoint(i=other).read(path)
        rest = [tuple(np.asarray(x).tolist() for x in row) for row in other]
        assert rest == whole[steps:]


TRAINING = "a,b,c,d\n1,2.5,x,\n2,3,y,99999999999\n,1e60,z,1\n"


def _batches(dataset):
    return [
        tf.nest.map_structure(lambda t: np.asarray(t).tolist(), batch)
        for batch in dataset
    ]


def test_batches_of_columns():
    name = _file(TRAINING)
    dataset = make_csv_dataset(name, 2, shuffle=False, num_epochs=1)
    types = [s.dtype for s in dataset.element_spec.values()]
    assert types == [tf.int32, tf.float64, tf.string, tf.int64]
    assert _batches(dataset) == [
        {"a": [1, 2], "b": [2.5, 3.0], "c": [b"x", b"y"], "d": [0, 99999999999]},
        {"a": [0], "b": [1e60], "c": [b"z"], "d": [1]},
    ]
    dataset = make_csv_dataset(
        [name, _file("a,b,c,d\n5,5,z,3\n", "g.csv")],
        2,
        shuffle=False,
        num_epochs=1,
        label_name="c",
        select_columns=["d", "c"],
    )
    assert _batches(dataset) == [
        ({"d": [0, 99999999999]}, [b"x", b"y"]),
        ({"d": [1, 3]}, [b"z", b"z"]),
    ]


def test_batches_without_end_are_whole_and_shuffled():
    name = _file("a\n" + "".join(f"{i}\n" for i in range(20)))
    dataset = make_csv_dataset(name, 5, shuffle_seed=3)
    assert dataset.element_spec["a"].shape == (5,)
    seen = np.concatenate([b["a"].numpy() for b in dataset.take(4)])
    assert sorted(seen) == list(range(20)) and list(seen) != sorted(seen)


def test_given_columns():
    types = [tf.int32, tf.float32, tf.string, tf.int64]
    settings = {"shuffle": False, "num_epochs": 1}
    dataset = make_csv_dataset(
        _file(TRAINING), 2, column_defaults=types, ignore_errors=True, **settings
    )
    assert _batches(dataset) == [
        {"a": [2], "b": [3.0], "c": [b"y"], "d": [99999999999]}
    ]
    dataset = make_csv_dataset(
        _file("1;2\n"), 1, ["p", "q"], field_delim=";", header=False, **settings
    )
    assert _batches(dataset) == [{"p": [1], "q": [2]}]


@pytest.mark.parametrize(
    "message, arguments",
    [
        ("No files match", {"file_pattern": "none*"}),
        ("Neither is provided", {"header": False}),
        ("duplicate column names", {"column_names": list("aabc")}),
        ("must be of one of the", {"select_columns": ["x"]}),
        ("Column index 9", {"select_columns": [9]}),
        ("duplicate columns", {"select_columns": [0, 0]}),
        ("provided must be one of the columns", {"label_name": "z"}),
        ("same length", {"select_columns": [0], "column_defaults": [1, 2]}),
    ],
)
def test_refused(message, arguments):
    arguments = {"file_pattern": _file(TRAINING), "batch_size": 2, **arguments}
    with pytest.raises(ValueError, match=message):
        make_csv_dataset(**arguments)


def test_headers_must_agree():
    names = [_file("a,b\n1,2\n", "a.csv"), _file("a,c\n1,2\n", "b.csv")]
    with pytest.raises(ValueError, match="b.csv has different column names"):
        make_csv_dataset(names, 2)
