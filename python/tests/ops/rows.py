"""Rows that TensorFlow wrote: calls of ops and what they gave, in
tests/golden/ops/rows.npz, and programs of several ops (rows_of_*.py).

A program is a function `(tf, raw)` that returns tensors, nested as it likes:

    @row("TensorListReserve TensorListSetItem")
    def list_with_gaps(tf, raw): ...

It is a row of the ops that it names, which it must call by `raw`, tf.raw_ops.
tests/compare/record_rows.py writes the file. For ops that TensorFlow has no CPU
kernel of, `@formula` programs give pairs instead: a result and what it must be.
"""

import functools
import importlib
import json
import pathlib
import sys
import types

import numpy as np

ROOT = pathlib.Path(__file__).parents[3]
GOLDEN = ROOT / "tests" / "golden" / "ops" / "rows.npz"
sys.path.append(str(ROOT / "tests" / "compare"))
PROGRAMS, FORMULAS = {}, {}
# Ops that have no row, and why. Those of a name with "_" in front have none either:
# tf.raw_ops has no such op, graphs are rewritten to them.
_OWNED = "gives nothing, and TensorFlow refuses every handle that there is"
# TensorFlow's package for CPUs has no kernel of them either: graphs hold them
# (test_graph_only.py).
GRAPH_ONLY = [
    "BoostedTreesAggregateStats",
    "BoostedTreesBucketize",
    "BoostedTreesCalculateBestFeatureSplit",
    "BoostedTreesCalculateBestFeatureSplitV2",
    "BoostedTreesCalculateBestGainsPerFeature",
    "BoostedTreesCenterBias",
    "BoostedTreesCreateEnsemble",
    "BoostedTreesCreateQuantileStreamResource",
    "BoostedTreesDeserializeEnsemble",
    "BoostedTreesEnsembleResourceHandleOp",
    "BoostedTreesExampleDebugOutputs",
    "BoostedTreesFlushQuantileSummaries",
    "BoostedTreesGetEnsembleStates",
    "BoostedTreesMakeQuantileSummaries",
    "BoostedTreesMakeStatsSummary",
    "BoostedTreesPredict",
    "BoostedTreesQuantileStreamResourceAddSummaries",
    "BoostedTreesQuantileStreamResourceDeserialize",
    "BoostedTreesQuantileStreamResourceFlush",
    "BoostedTreesQuantileStreamResourceGetBucketBoundaries",
    "BoostedTreesQuantileStreamResourceHandleOp",
    "BoostedTreesSerializeEnsemble",
    "BoostedTreesSparseAggregateStats",
    "BoostedTreesSparseCalculateBestFeatureSplit",
    "BoostedTreesTrainingPredict",
    "BoostedTreesUpdateEnsemble",
    "BoostedTreesUpdateEnsembleV2",
    "IsBoostedTreesEnsembleInitialized",
    "IsBoostedTreesQuantileStreamResourceInitialized",
    "CTCLossV2",
    "CudnnRNN",
    "CudnnRNNBackprop",
    "CudnnRNNBackpropV2",
    "CudnnRNNBackpropV3",
    "CudnnRNNCanonicalToParams",
    "CudnnRNNCanonicalToParamsV2",
    "CudnnRNNParamsSize",
    "CudnnRNNParamsToCanonical",
    "CudnnRNNParamsToCanonicalV2",
    "CudnnRNNV2",
    "CudnnRNNV3",
    "GenerateBoundingBoxProposals",
    "NcclAllReduce",
    "NcclBroadcast",
    "NcclReduce",
]
EXCUSED = {
    **dict.fromkeys(GRAPH_ONLY, "TensorFlow has no kernel of it for CPUs"),
    **dict.fromkeys(
        ["RegisterDatasetV2", "DataServiceDatasetV4"],
        "they need servers: tests/distribute/test_data_service.py",
    ),
    "CheckPinned": "TensorFlow's fails on CPUs",
    "FileSystemSetConfiguration": "TensorFlow's file systems have no options",
    "AnonymousRandomSeedGenerator": "TensorFlow's cannot be run",
    "MutableDenseHashTable": "TensorFlow's cannot be run",
    "DeleteMemoryCache": _OWNED,
    "DeleteRandomSeedGenerator": _OWNED,
    "DeleteSeedGenerator": _OWNED,
}


@functools.cache
def compare_ops():
    """The tool of tests/compare."""
    return importlib.import_module("compare_ops")


def claims(ops):
    """Says of which ops a function is a row."""

    def name(function):
        function.ops = tuple(ops.split())
        return function

    return name


def _register(table, ops):
    def register(function):
        assert function.__name__ not in {**PROGRAMS, **FORMULAS}, function.__name__
        table[function.__name__] = claims(ops)(function)
        return function

    return register


def row(ops):
    """Makes a function a program that is a row of each of `ops`."""
    return _register(PROGRAMS, ops)


def formula(ops):
    """The same, of pairs: a result and the values that it must have."""
    return _register(FORMULAS, ops)


def programs(table=PROGRAMS):
    """All programs by name."""
    for path in sorted(pathlib.Path(__file__).parent.glob("rows_of_*.py")):
        importlib.import_module(path.stem)
    return table


def wave(tf, *shape, phase=0.3):
    """Numbers between -1 and 1, no two alike."""
    n = int(np.prod(shape))
    x = np.sin(np.arange(n) * 1.7 + phase).astype(np.float32).reshape(shape)
    return tf.constant(x)


def in_graph(tf, build):
    """What build() makes in a graph of its own, run."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        return session.run(build())


def _set_attr(tf, attr, value):
    if isinstance(value, bool):
        attr.b = value
    elif isinstance(value, int):
        attr.i = value
    elif isinstance(value, float):
        attr.f = value
    elif isinstance(value, bytes):
        attr.s = value
    elif isinstance(value, tf.TensorShape):
        attr.shape.CopyFrom(value.as_proto())
    elif isinstance(value, list) and value and isinstance(value[0], tf.DType):
        attr.list.type.extend(d.as_datatype_enum for d in value)
    elif isinstance(value, list) and value and isinstance(value[0], tf.TensorShape):
        attr.list.shape.extend(s.as_proto() for s in value)
    elif isinstance(value, list):
        attr.list.i.extend(value)
    elif isinstance(value, np.ndarray):
        attr.tensor.CopyFrom(tf.make_tensor_proto(value))
    else:
        attr.type = value.as_datatype_enum


def old_graph(tf, raw, producer, nodes, steps):
    """What a graph of an older version gives: `nodes` are (name, op, inputs,
    attributes), inputs names or arrays; `steps` the fetches of one run each, tensors
    or names of operations."""
    graph = tf.compat.v1.GraphDef()
    graph.versions.producer = producer
    for name, op, inputs, attrs in nodes:
        taken = []
        for i, value in enumerate(inputs):
            if not isinstance(value, str):
                tensor = tf.make_tensor_proto(value)
                made = graph.node.add(name=f"{name}_{i}", op="Const")
                made.attr["dtype"].type = tensor.dtype
                made.attr["value"].tensor.CopyFrom(tensor)
                value = made.name
            taken.append(value)
        node = graph.node.add(name=name, op=op)
        node.input.extend(taken)
        for key, value in attrs.items():
            _set_attr(tf, node.attr[key], value)
        raw.called.add(op)
    found = []
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        tf.import_graph_def(graph, name="")
        for fetches in steps:
            found += [x for x in session.run(fetches) if x is not None]
    return found


def of_old_graph(tf, raw, op, inputs, producer, **attrs):
    """The results of an op that only graphs of older versions may hold: `inputs`
    by name, and attributes."""
    graph = tf.compat.v1.GraphDef()
    graph.versions.producer = producer
    node = graph.node.add(name="it", op=op)
    for name, value in inputs.items():
        value = np.asarray(value)
        tensor = tf.make_tensor_proto(value)
        made = graph.node.add(name=name, op="Const")
        made.attr["dtype"].type = tensor.dtype
        made.attr["value"].tensor.CopyFrom(tensor)
        node.input.append(name)
    for name, value in attrs.items():
        _set_attr(tf, node.attr[name], value)
    raw.called.add(op)
    with tf.Graph().as_default() as g, tf.compat.v1.Session() as session:
        tf.import_graph_def(graph, name="")
        return session.run(list(g.get_operation_by_name("it").outputs))


class _Watched(types.ModuleType):
    """tf.raw_ops that keeps the names of the ops that are called."""

    def __init__(self, raw):
        super().__init__("raw_ops")
        self._raw, self.called = raw, set()

    def __getattr__(self, name):
        op = getattr(self._raw, name)

        def call(**arguments):
            self.called.add(name)
            return op(**arguments)

        return call


def _leaves(tf, function):
    raw = _Watched(tf.raw_ops)
    leaves = tf.nest.flatten(function(tf, raw))
    missing = set(function.ops) - raw.called
    assert not missing, f"{function.__name__} calls no {sorted(missing)}"
    return leaves


def run_program(tf, function):
    """What the program gives, as compare_ops has results."""
    return [plain(tf, x) for x in _leaves(tf, function)]


def run_formula(tf, function):
    """(given, wanted), likewise."""
    leaves = [plain(tf, x) for x in _leaves(tf, function)]
    wanted = [
        (g[0], w[1].astype(g[1].dtype))
        for g, w in zip(leaves[::2], leaves[1::2], strict=True)
    ]
    return leaves[::2], wanted


def plain(tf, value):
    """A result as (dtype, array)."""
    if isinstance(value, (str, bytes, int, float, np.ndarray, np.generic, list)):
        if isinstance(value, str):
            value = value.encode()
        value = np.asarray(value, object if isinstance(value, bytes) else None)
        if value.dtype.kind in "SO":
            return ("string", value.astype(object))
        return (value.dtype.name, value)
    return compare_ops().plain(tf, value)


def compare(wanted, given, single=False):
    unset = [i for i, w in enumerate(wanted) if w is None]
    text = compare_ops().difference(wanted, given, unset, single)
    assert text is None, f"wanted / given: {text}"


def says_something(results):
    """Whether there is a value among results: not only handles, and not only what
    is empty."""
    return any(
        r is not None
        and r[0] not in ("none", "variant", "resource")
        and np.asarray(r[1]).size
        for r in results
    )


# --- The file: JSON that says what lies where in an array of bytes.


class Writer:
    """Collects arrays, each once."""

    def __init__(self):
        self._data, self._places, self._at = [], {}, 0

    def array(self, a):
        a = np.asarray(a)
        if a.dtype == object:
            texts = [
                (x if isinstance(x, bytes) else str(x).encode()).decode("latin-1")
                for x in a.reshape(-1)
            ]
            kind, plain = "string", json.dumps(texts).encode()
        else:
            kind, plain = a.dtype.name, np.ascontiguousarray(a).tobytes()
        if plain not in self._places:
            self._places[plain] = self._at
            self._data.append(plain)
            self._at += len(plain)
        return [kind, list(a.shape), self._places[plain], len(plain)]

    def argument(self, value):
        from draw import Held, Quantized, Type

        if isinstance(value, Type):
            return {"type": str(value)}
        if isinstance(value, Quantized):
            return {"quantized": value.dtype, "array": self.array(value.value)}
        if isinstance(value, Held):
            return {"held": self.array(value.value)}
        if isinstance(value, (np.ndarray, np.generic)):
            return {"array": self.array(value)}
        if isinstance(value, bytes):
            return {"bytes": value.decode("latin-1")}
        if isinstance(value, (list, tuple)):
            return [self.argument(v) for v in value]
        return value

    def results(self, results):
        return [
            None if r is None else [r[0], r[1] if r[0] == "none" else self.array(r[1])]
            for r in results
        ]

    def save(self, index):
        np.savez_compressed(
            GOLDEN,
            index=np.frombuffer(json.dumps(index).encode(), np.uint8),
            data=np.frombuffer(b"".join(self._data), np.uint8),
        )


class Reader:
    def __init__(self):
        with np.load(GOLDEN) as file:
            self.index = json.loads(bytes(file["index"]))
            self._data = bytes(file["data"])

    def array(self, spec):
        from draw import numpy_type

        kind, shape, at, size = spec
        plain = self._data[at : at + size]
        if kind == "string":
            flat = np.empty(int(np.prod(shape)), object)
            flat[:] = [text.encode("latin-1") for text in json.loads(plain)]
            return flat.reshape(shape)
        return np.frombuffer(plain, numpy_type(kind)).reshape(shape)

    def argument(self, value):
        from draw import Held, Quantized, Type

        if isinstance(value, list):
            return [self.argument(v) for v in value]
        if not isinstance(value, dict):
            return value
        if "type" in value:
            return Type(value["type"])
        if "quantized" in value:
            return Quantized(self.array(value["array"]), value["quantized"])
        if "held" in value:
            return Held(self.array(value["held"]))
        if "bytes" in value:
            return value["bytes"].encode("latin-1")
        return self.array(value["array"])

    def results(self, results):
        return [
            None if r is None else (r[0], r[1] if r[0] == "none" else self.array(r[1]))
            for r in results
        ]

    def calls(self, op):
        """[(keyword arguments, results)] of the op."""
        return [
            (
                {k: self.argument(v) for k, v in call[0].items()},
                self.results(call[1]),
            )
            for call in self.index["calls"][op]
        ]

    def program(self, name):
        return self.results(self.index["programs"][name])

    def row(self, name):
        """The arrays that a row of a table with RECORDED values gives."""
        results = self.results(self.index["rows"][name])
        return [None if r is None else r[1] for r in results]


@functools.cache
def golden():
    return Reader()


# --- Which ops have rows.


def table_rows():
    """Rows of the op tables that tests run (driver.cases)."""
    import driver  # of headrace alone

    list(driver.table_modules())
    return driver.RUN


def ops_with_rows():
    """The ops of which some row has expected values."""
    found = {r.op for r in table_rows() if r.want is not None and r.error is None}
    found.update(golden().index["calls"])
    for name, function in programs().items():
        if name in golden().index["programs"]:
            found.update(function.ops)
    for function in programs(FORMULAS).values():
        found.update(function.ops)
    return found


def without_row(names):
    """Those of the names that have neither a row nor an excuse."""
    public = {name for name in names if name[0] != "_"}
    return sorted(public - ops_with_rows() - set(EXCUSED))
