"""Compares public functions with real TensorFlow over arguments of all kinds.

Usage: HEADRACE_TENSORFLOW_PYTHON=PYTHON python tests/compare/compare_calls.py
           [--modules a,b] [--traced] [--errors]
Calls every function of the modules with ragged, sparse and dense tensors, lists of
these, Python numbers and text, here and by PYTHON, an interpreter that has TensorFlow.
Lists, a line a function with one example, what TensorFlow answers and we refuse (FAILS)
or answer otherwise (DIFFERS); with --errors also what only we answer (ACCEPTS) and
errors of another class (ERROR). --traced calls, both here and there, through traced
functions that know no shape. A list for a person to read, without a verdict:
docs/differences.md says what is decided. compare_ops.py compares ops more closely.
"""

import argparse
import collections
import inspect
import json
import os
import signal
import subprocess
import sys
import tempfile
import warnings

import numpy as np

MODULES = "math strings ragged sparse nn linalg image signal bitwise sets audio ."
SECONDS = 3  # a call
# What writes, reads or ends things, changes how the process behaves, or draws numbers.
_LEFT_OUT = ("set_", "write", "reset", "initialize", "import", "run", "app", "delete")
_NEVER = {
    *("print", "function", "py_function", "numpy_function", "while_loop", "group"),
    *("load_library", "load_op_library", "matching_files", "no_op", "Assert"),
}
_RAGGED = {
    "float": [[1.5, -2.0], [], [0.25]],
    "int": [[1, 2], [], [3]],
    "text": [["ab", "C d"], [], ["1.5"]],
    "bool": [[True, False], [], [True]],
    "deep": [[[1.0, 2.0], [3.0]], [], [[4.0]]],
    "complex": [[1 + 2j], [3j, 1.0]],
}
_SPARSE = {
    "float": [1.5, -2.0],
    "int": [1, 2],
    "text": ["ab", "1.5"],
    "bool": [True, False],
}
_DENSE = {
    "float": np.float32([[1.5, -2.0, 0.5], [0.25, 3.0, 1.0]]),
    "int": np.int32([[1, 2, 3], [4, 5, 6]]),
    "text": np.array([["ab", "C d"], ["1", "x"]], object),
    "bool": np.array([[True, False, True], [False, False, True]]),
    "vector": np.float32([1.0, 2.0, 3.0]),
    "places": np.int32([0, 1, 2]),
    "scalar": np.float32(2.0),
    "one": np.int32(1),
    "square": np.float32([[2.0, 1.0], [1.0, 3.0]]),
    "image": (np.arange(48, dtype=np.float32) / 48).reshape(1, 4, 4, 3),
    "complex": np.array([[1 + 2j, 3j], [1.0, 2.0]]),
    "half": np.float16([[1.5, -2.0]]),
    "double": np.array([[1.5, -2.0]]),
    "empty": np.zeros([0, 3], np.float32),
    "bytes": np.uint8([[1, 200]]),
}
_KINDS = {"ragged": _RAGGED, "sparse": _SPARSE, "dense": _DENSE}
_PLAIN = (0, 1, -1, 2.5, "ab", None, [1, 0])


def templates():
    """Argument lists: (kind, name) for tensors, ("list", items), ("plain", value)."""
    plain = [("plain", value) for value in _PLAIN]
    for kind, values in _KINDS.items():
        for x in ((kind, name) for name in values):
            yield (x,)
            yield from ((x, p) for p in plain)
            yield (x, x)
            yield (x, x, x)
            both = ("list", (x, x))
            yield (both,)
            yield from ((both, ("plain", axis)) for axis in (0, 1))
    for x in (("ragged", name) for name in _RAGGED):
        for name in ("scalar", "one", "float", "places"):
            yield (x, ("dense", name))
            yield (("dense", name), x)
    for x in (("sparse", name) for name in _SPARSE):
        yield (x, ("dense", "float"))
        yield (("dense", "float"), x)
    for names in ("float int", "float places", "vector places", "float one"):
        yield tuple(("dense", name) for name in names.split())
    yield (("dense", "float"), ("plain", 0), ("plain", 1))
    yield (("dense", "text"), ("plain", "a"), ("plain", "b"))
    yield (("dense", "image"), ("plain", 2), ("plain", 2))


def _made(tf, item):
    kind, value = item
    if kind == "plain":
        return value
    if kind == "list":
        return [_made(tf, x) for x in value]
    if kind == "ragged":
        return tf.ragged.constant(_RAGGED[value])
    if kind == "sparse":
        return tf.sparse.SparseTensor([[0, 0], [1, 2]], _SPARSE[value], [2, 3])
    x = _DENSE[value]
    return tf.constant(x.tolist() if x.dtype == object else x)


def _told(tf, x, depth=0):
    """A result as JSON: what kinds its parts are of, their dtypes, shapes, values."""
    if isinstance(x, tf.RaggedTensor):
        return [
            "ragged",
            x.dtype.name,
            json.loads(json.dumps(x.to_list(), default=str)),
        ]
    if isinstance(x, tf.sparse.SparseTensor):
        return ["sparse", _told(tf, x.indices), _told(tf, x.values)]
    if isinstance(x, tf.Tensor):
        if x.dtype.name in ("variant", "resource"):
            return ["tensor", x.dtype.name]
        values = np.asarray(x.numpy()).ravel()
        if values.dtype.kind in "fV":  # V: bfloat16 and its like
            values = [float(v) for v in values]
        else:
            values = [str(v) for v in values.tolist()]
        return ["tensor", x.dtype.name, list(x.shape), values]
    if isinstance(x, (list, tuple)) and depth < 4:
        return ["parts", *(_told(tf, v, depth + 1) for v in x)]
    if isinstance(x, (int, float, str, bool, type(None))):
        return x
    return type(x).__name__


def _traced(tf, function, arguments):
    """function(*arguments), traced for tensors of any shape."""
    spots = [i for i, x in enumerate(arguments) if tf.is_tensor(x)]

    def spec(x):
        if isinstance(x, tf.RaggedTensor):
            sizes = [None] * x.shape.rank
            return tf.RaggedTensorSpec(sizes, x.dtype, ragged_rank=x.ragged_rank)
        if isinstance(x, tf.sparse.SparseTensor):
            return tf.SparseTensorSpec(None, x.dtype)
        return tf.TensorSpec(None, x.dtype)

    def body(*tensors):
        given = list(arguments)
        for spot, tensor in zip(spots, tensors):
            given[spot] = tensor
        return function(*given)

    signature = [spec(arguments[i]) for i in spots]
    call = tf.function(body, input_signature=signature, autograph=False)
    return call(*(arguments[i] for i in spots))


def _functions(tf, module):
    home = tf
    for part in module.split("."):
        home = getattr(home, part) if part else home
    for name in sorted(dir(home)):
        hidden = name.startswith(("_", *_LEFT_OUT)) or name in _NEVER
        if hidden or any(word in name for word in ("enable", "disable", "random")):
            continue
        try:
            function = getattr(home, name)
        except Exception:  # a name that comes later says so
            continue
        if callable(function) and not inspect.isclass(function):
            yield name, function


def side(module_name, modules, traced, out):
    """Runs all calls of one side; `out` gets {call: [how, what]}."""
    tf = __import__(module_name)
    warnings.simplefilter("ignore")
    results = {}

    def late(*_):
        raise TimeoutError

    signal.signal(signal.SIGALRM, late)
    for module in modules:
        for name, function in _functions(tf, module.strip(".")):
            for template in templates():
                signal.setitimer(signal.ITIMER_REAL, SECONDS)
                try:
                    arguments = [_made(tf, item) for item in template]
                    if traced:
                        made = _traced(tf, function, arguments)
                    else:
                        made = function(*arguments)
                    answer = ["ok", _told(tf, made)]
                except Exception as error:
                    answer = ["error", type(error).__name__]
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
                results[f"{module} {name} {json.dumps(template)}"] = answer
    with open(out, "w", encoding="utf-8") as file:
        json.dump(results, file, default=str)


def _close(a, b):
    if isinstance(a, float) and isinstance(b, float):
        return a == b or a != a and b != b or abs(a - b) <= 2e-3 * max(abs(a), 1e-3)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_close, a, b))
    try:  # complex numbers are text
        return a == b or abs(complex(a) - complex(b)) <= 2e-3 * max(abs(complex(a)), 1)
    except (TypeError, ValueError):
        return False


def compare(theirs, ours, errors):
    """Lines that tell what differs, one a function and kind of difference."""
    found = collections.defaultdict(list)
    for call, (how, what) in theirs.items():
        our_how, our_what = ours.get(call, ["error", "missing"])
        function = " ".join(call.split(" ")[:2])
        if how == "ok" and our_how != "ok":
            found["FAILS", function, our_what].append(call)
        elif how == "ok" and not _close(what, our_what):
            found["DIFFERS", function, ""].append(f"{call}: {what} / {our_what}")
        elif errors and our_how == "ok" and how != "ok":
            found["ACCEPTS", function, what].append(call)
        elif errors and how != "ok" and what != our_what:
            found["ERROR", function, f"{what} / {our_what}"].append(call)
    for (kind, function, detail), calls in sorted(found.items()):
        yield f"{kind} {function} {detail} ({len(calls)} calls): {calls[0][:300]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--modules", default=MODULES.replace(" ", ","))
    parser.add_argument("--traced", action="store_true")
    parser.add_argument("--errors", action="store_true")
    parser.add_argument("--side", nargs=2, metavar=("MODULE", "FILE"))
    options = parser.parse_args()
    modules = options.modules.split(",")
    if options.side:
        return side(options.side[0], modules, options.traced, options.side[1])
    python = os.environ.get("HEADRACE_TENSORFLOW_PYTHON")
    if not python:
        sys.exit("HEADRACE_TENSORFLOW_PYTHON names no interpreter with TensorFlow")
    answers = []
    with tempfile.TemporaryDirectory() as folder:
        for who, module in ((python, "tensorflow"), (sys.executable, "headrace")):
            out = os.path.join(folder, module)
            command = [who, os.path.abspath(__file__), "--modules", options.modules]
            command += ["--traced"] * options.traced + ["--side", module, out]
            quiet = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
            subprocess.run(command, check=True, env=quiet, stdout=subprocess.DEVNULL)
            with open(out, encoding="utf-8") as file:
                answers.append(json.load(file))
    for line in compare(*answers, options.errors):
        print(line)
    print(f"calls: {len(answers[0])}")


if __name__ == "__main__":
    main()
