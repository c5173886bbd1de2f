"""Compares ops with real TensorFlow over seeded random calls.

Usage: HEADRACE_TENSORFLOW_PYTHON=PYTHON python tests/compare/compare_ops.py
           [--calls 20] [--seed 1] [--show 3] [--broken] [OP...]
Draws calls of each op of the recipes (recipes_*.py), runs each here and by PYTHON,
an interpreter that has TensorFlow, with its gradient, and lists what differs in
value, dtype, shape or class of error. Differences that docs/differences.md
decides are in known.txt. Ends with 1 where anything else differs. --broken changes a
tensor of each call, so that errors are what is compared.
"""

import argparse
import collections
import importlib
import os
import pickle
import subprocess
import sys
import tempfile
import zlib

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
PARTS = ("math", "array", "nn", "image", "linalg", "string", "state", "sparse")
_TOLERANCE = {
    "float16": 8e-3,
    "bfloat16": 6e-2,
    "float32": 2e-4,
    "complex64": 2e-4,
    "float64": 1e-7,
    "complex128": 1e-7,
}


def recipes():
    """Every op's recipe by name."""
    found = {}
    for part in PARTS:
        found.update(importlib.import_module(f"recipes_{part}").RECIPES)
    return found


def cases(op, recipe, count, seed, broken=False):
    from draw import Draw

    for number in range(count):
        draw = Draw([seed, zlib.crc32(op.encode()), number])
        kwargs = recipe(draw, op)
        yield number, broken_call(draw, kwargs) if broken else kwargs


def broken_call(draw, kwargs):
    """The call with one tensor changed, most often so that it is an error."""
    names = [k for k, v in kwargs.items() if isinstance(v, np.ndarray)]
    if not names:
        return kwargs
    name = draw.pick(*names)
    x = kwargs[name]
    how = draw.integer(0, 3)
    if how == 0:
        x = x[np.newaxis]
    elif how == 1 and x.ndim:
        x = x[..., 0] if x.shape[-1] else x.reshape(x.shape[:-1] + (0, 1))
    elif how == 2 and x.ndim:
        x = np.concatenate([x, x[:1]])
    elif x.dtype.kind in "iu" and x.size:
        x = x.copy()
        x.reshape(-1)[draw.integer(0, x.size - 1)] = draw.pick(99, 100)
        if x.dtype.kind == "i" and draw.maybe():
            x.reshape(-1)[0] = draw.pick(-1, -7)
    return {**kwargs, name: x}


# --- A side: runs pickled calls.


def _tensor(tf, value):
    return tf.constant(value.tolist() if value.dtype == object else value)


def _arguments(tf, kwargs, watched):
    """The call's arguments, and the tensors that have gradients."""
    from draw import Type

    def convert(value):
        if isinstance(value, Type):
            return tf.as_dtype(str(value))
        if isinstance(value, np.ndarray):
            if value.dtype == object:
                return tf.constant(value.reshape(-1).tolist(), tf.string, value.shape)
            tensor = tf.constant(value)
            if tensor.dtype.is_floating or tensor.dtype.is_complex:
                watched.append(tensor)
            return tensor
        if isinstance(value, list):
            return [convert(v) for v in value]
        return value

    return {name: convert(value) for name, value in kwargs.items()}


def _plain(tf, value):
    """A result as (dtype, array)."""
    if value is None:
        return None
    if not hasattr(value, "dtype"):
        return ("none", str(value))
    if value.dtype in (tf.variant, tf.resource):
        return (value.dtype.name, np.zeros(value.shape))
    value = tf.convert_to_tensor(value)
    name = value.dtype.name
    if name[0] == "q":
        value = tf.bitcast(value, name.removeprefix("q"))
    array = np.asarray(value.numpy())
    if name in ("bfloat16", "float16"):
        array = array.astype(np.float32)
    return (name, array)


def _error(e):
    return ("error", type(e).__name__, str(e)[:300])


def run(tf, op, kwargs):
    """(results, gradients): lists, or an error each."""
    watched, outputs = [], None
    try:
        arguments = _arguments(tf, kwargs, watched)
        with tf.GradientTape() as tape:
            for tensor in watched:
                tape.watch(tensor)
            outputs = getattr(tf.raw_ops, op)(**arguments)
        leaves = tf.nest.flatten(outputs)
        results = [_plain(tf, x) for x in leaves]
    except Exception as e:  # what is compared
        return _error(e), None
    flows = [x for x in leaves if x.dtype.is_floating or x.dtype.is_complex]
    if not watched or not flows:
        return results, None
    try:
        size = [int(np.prod(x.shape)) for x in flows]
        down = [
            tf.cast(tf.reshape(tf.cos(tf.range(n, dtype=tf.float64)), x.shape), x.dtype)
            for n, x in zip(size, flows, strict=True)
        ]
        slopes = tape.gradient(flows, watched, output_gradients=down)
        return results, [_plain(tf, s) for s in slopes]
    except Exception as e:
        return results, _error(e)


def serve(module, path, begin):
    """Runs the calls in `path` from `begin` on; each result is appended."""
    tf = importlib.import_module(module)
    with open(path, "rb") as file:
        calls = pickle.load(file)
    with open(path + "." + module, "ab") as out:
        for op, number, kwargs in calls[begin:]:
            pickle.dump((op, number, run(tf, op, kwargs)), out)
            out.flush()


# --- Both sides.


def _results(path, count, module):
    """As many results as there are; a crash counts as the result of its call."""
    found = []
    try:
        with open(path + "." + module, "rb") as file:
            while True:
                found.append(pickle.load(file)[2])
    except (EOFError, FileNotFoundError, pickle.UnpicklingError):
        return found[:count]


def run_side(python, module, path, calls):
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    environment["TF_ENABLE_ONEDNN_OPTS"] = "0"
    package = os.path.join(HERE, "..", "..", "python")
    environment["PYTHONPATH"] = package if module == "headrace" else ""
    done = []
    while len(done) < len(calls):
        child = subprocess.run(
            [
                python,
                os.path.abspath(__file__),
                "--serve",
                module,
                path,
                str(len(done)),
            ],
            check=False,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        found = _results(path, len(calls), module)
        if child.returncode and len(found) < len(calls):
            if len(found) == len(done) and not found:
                sys.exit(f"{module} does not run: {child.stderr[-1500:]}")
            with open(path + "." + module, "ab") as out:
                op, number, _ = calls[len(found)]
                crash = (("error", "Crash", str(child.returncode)), None)
                pickle.dump((op, number, crash), out)
            found = _results(path, len(calls), module)
        done = found
    return done


def _no_kernel(result):
    """TensorFlow has no kernel for the dtype (more kernels are no fault), or ended."""
    return any(
        words in result[1] + result[2]
        for words in (
            "Could not find device",
            "No OpKernel",
            "Could not find valid device",
            "kernel not registered",
            "is not in the list of allowed values",
            "No WhereOp available",
            "Crash",
        )
    )


def difference(theirs, ours, unset=()):
    """What differs between two results (lists of values, or errors), or None. `unset`
    are results that upstream leaves without a value."""
    if theirs is None or ours is None:
        return None if theirs is ours else f"{theirs is not None} {ours is not None}"
    if isinstance(theirs, tuple) or isinstance(ours, tuple):
        if isinstance(theirs, tuple) and _no_kernel(theirs):
            return None
        if isinstance(theirs, tuple) and isinstance(ours, tuple):
            same = theirs[1] == ours[1]
            return None if same else f"error {theirs[1:]} / {ours[1:]}"
        if isinstance(theirs, tuple):
            return f"error {theirs[1:]} / a value"
        return f"a value / error {ours[1:]}"
    if len(theirs) != len(ours):
        return f"{len(theirs)} results / {len(ours)}"
    for i, (t, o) in enumerate(zip(theirs, ours, strict=True)):
        text = None if i in unset else _value_difference(t, o)
        if text:
            return f"result {i}: {text}"
    return None


def _value_difference(t, o):
    if t is None or o is None:
        return None if t is o else f"{t} / {o}"
    if t[0] != o[0]:
        return f"dtype {t[0]} / {o[0]}"
    if t[0] == "none":
        return None
    if t[1].shape != o[1].shape:
        return f"shape {t[1].shape} / {o[1].shape}"
    if t[0] not in _TOLERANCE:
        return None if np.array_equal(t[1], o[1]) else f"value {_show(t[1], o[1])}"
    tolerance = _TOLERANCE[t[0]]
    with np.errstate(all="ignore"):
        finite = np.abs(t[1])[np.isfinite(t[1])]
        scale = float(finite.max()) if finite.size else 0.0
        if t[0] in ("float16", "bfloat16"):  # slopes are sums of what cancels
            scale = max(scale, 0.2)
        close = np.isclose(
            t[1], o[1], rtol=tolerance, atol=tolerance * min(scale, 1e3), equal_nan=True
        )
    return None if close.all() else f"value {_show(t[1], o[1])}"


def _show(t, o):
    wrong = t != o
    if t.dtype.kind in "fc":
        with np.errstate(all="ignore"):
            wrong = ~np.isclose(t, o, rtol=1e-5, equal_nan=True)
    at = np.argwhere(wrong)[:3]
    return ", ".join(
        f"{tuple(p.tolist())}: {t[tuple(p)]!r} / {o[tuple(p)]!r}" for p in at
    )


def known():
    """Rows of known.txt: {(op, what of it): places}, where "what" is "value", "gradient"
    or "unset", and the places are those of results that are not compared."""
    with open(os.path.join(HERE, "known.txt"), encoding="utf-8") as file:
        rows = [line.split("#")[0].split() for line in file]
    return {(r[0], r[1]): [int(i) for i in r[2:]] for r in rows if r}


def describe(kwargs):
    def text(value):
        if isinstance(value, np.ndarray):
            few = f"={value.tolist()}" if value.size <= 8 else ""
            return f"{value.dtype}{list(value.shape)}{few}"
        if isinstance(value, list):
            return "[" + ", ".join(text(v) for v in value) + "]"
        return repr(value)

    return ", ".join(f"{k}={text(v)}" for k, v in kwargs.items())


def compare(python, ops, count, seed, broken=False):
    """(op, kind, number, kwargs, text) of what differs, and how many calls of each op
    gave values on both sides."""
    table = recipes()
    calls = [
        (op, number, kwargs)
        for op in ops or sorted(table)
        for number, kwargs in cases(op, table[op], count, seed, broken)
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "calls")
        with open(path, "wb") as file:
            pickle.dump(calls, file)
        ours = run_side(sys.executable, "headrace", path, calls)
        theirs = run_side(python, "tensorflow", path, calls)
    found, ran, decided = [], collections.Counter(), known()
    for (op, number, kwargs), t, o in zip(calls, theirs, ours, strict=True):
        ran[op] += isinstance(t[0], list) and isinstance(o[0], list)
        for kind, a, b in (("value", t[0], o[0]), ("gradient", t[1], o[1])):
            if kind == "gradient" and not isinstance(t[0], list):
                continue
            unset = decided.get((op, "unset"), ()) if kind == "value" else ()
            text = difference(a, b, unset)
            if text:
                found.append((op, kind, number, kwargs, text))
    return found, ran


def main():
    if sys.argv[1:2] == ["--serve"]:
        return serve(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=3)
    parser.add_argument("--broken", action="store_true")
    parser.add_argument("ops", nargs="*")
    options = parser.parse_args()
    python = os.environ.get("HEADRACE_TENSORFLOW_PYTHON", "")
    found, ran = compare(
        python, options.ops, options.calls, options.seed, options.broken
    )
    decided = known()
    shown = collections.Counter()
    for op, kind, number, kwargs, text in found:
        if (op, kind) in decided and not options.ops:
            continue
        shown[op, kind] += 1
        if shown[op, kind] <= options.show:
            print(f"{op} {kind} {number}: {text}\n    {describe(kwargs)[:600]}")
    idle = sorted(op for op in ran if ran[op] == 0)
    print(f"{len(ran)} ops, {sum(ran.values())} calls with values on both sides")
    print(
        f"{len(shown)} differ: "
        + " ".join(f"{o}:{k}:{n}" for (o, k), n in shown.items())
    )
    if idle:
        print("no call gave a value: " + " ".join(idle))
    return 1 if shown else 0


if __name__ == "__main__":
    sys.exit(main())
