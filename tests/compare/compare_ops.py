"""Compares ops with real TensorFlow over seeded random calls.

Usage: HEADRACE_TENSORFLOW_PYTHON=PYTHON python tests/compare/compare_ops.py
           [--calls 20] [--seed 1] [--show 3] [--broken | --traced] [OP...]
Draws calls of each op of the recipes (recipes_*.py), runs each here and by PYTHON,
an interpreter that has TensorFlow, with its gradient, and lists what differs in
value, dtype, shape or class of error. Differences that docs/differences.md
decides are in known.txt. Ends with 1 where anything else differs. --broken changes a
tensor of each call, so that errors are what is compared. --traced compares, instead,
eager calls here with calls of traced functions that know no shape of an argument.
"""

import argparse
import collections
import fnmatch
import importlib
import os
import pickle
import re
import subprocess
import sys
import tempfile
import zlib

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
PARTS = (
    *("math", "array", "nn", "image", "linalg", "string", "state", "sparse"),
    *("quantized", "variable", "program"),
)
_TOLERANCE = {
    "float16": 1.6e-2,
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
    from draw import Draw, Program

    for number in range(count):
        seeds = [seed, zlib.crc32(op.encode()), number]
        if recipe.__module__ == "recipes_program":
            yield number, Program(recipe.__module__, op, seeds)
            continue
        draw = Draw(seeds)
        kwargs = recipe(draw, op)
        yield number, broken_call(draw, kwargs) if broken else kwargs


def broken_call(draw, kwargs):
    """The call with one tensor changed, most often so that it is an error."""
    if not isinstance(kwargs, dict):
        return kwargs
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


def tensors_of(tf, kwargs, watched, held):
    """The call's arguments; adds the tensors that have gradients, and the variables."""
    from draw import Held, Quantized, Type

    def convert(value):
        if isinstance(value, Type):
            return tf.as_dtype(str(value))
        if isinstance(value, Quantized):
            return tf.bitcast(tf.constant(value.value), tf.as_dtype(value.dtype))
        if isinstance(value, Held):
            held.append(tf.Variable(value.value))
            return held[-1].handle
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


def plain(tf, value):
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
    array = np.asarray(value.numpy(), object if name == "string" else None)
    if name in ("bfloat16", "float16"):
        array = array.astype(np.float32)
    return (name, array)


def _error(e):
    return ("error", type(e).__name__, str(e)[:300])


def _traced(tf, call, arguments):
    """call(**arguments) by a function that is traced with tensors of any shape."""
    leaves = tf.nest.flatten(arguments)
    at = [i for i, x in enumerate(leaves) if tf.is_tensor(x) and x.dtype != tf.resource]

    def body(*tensors):
        inside = list(leaves)
        for i, tensor in zip(at, tensors, strict=True):
            inside[i] = tensor
        outputs = call(**tf.nest.pack_sequence_as(arguments, inside))
        return () if outputs is None or hasattr(outputs, "node_def") else outputs

    specs = [tf.TensorSpec(None, leaves[i].dtype) for i in at]
    run = tf.function(body, input_signature=specs, autograph=False)
    return run(*(leaves[i] for i in at))


def _call(tf, op, kwargs, tape, watched, traced):
    """The results of a call, under a tape that watches its tensors, if any does."""
    from draw import Draw, Program

    if isinstance(kwargs, Program):

        def given(array):
            tensor = tf.constant(array)
            tape.watch(tensor)
            watched.append(tensor)
            return tensor

        program = importlib.import_module(kwargs.module).RECIPES[kwargs.name]
        return tf.nest.flatten(program(tf, Draw(kwargs.seed), given))
    held = []
    arguments = tensors_of(tf, kwargs, watched, held)
    if tape is not None:
        for tensor in watched:
            tape.watch(tensor)
    call = getattr(tf.raw_ops, op)
    outputs = _traced(tf, call, arguments) if traced else call(**arguments)
    outputs = [x for x in tf.nest.flatten(outputs) if x is not None]
    return outputs + [variable.read_value() for variable in held]


def run(tf, op, kwargs, traced=False):
    """(results, gradients): lists, or an error each."""
    watched = []
    try:
        if traced:  # a call under a tape needs the gradients of all that it runs
            leaves = _call(tf, op, kwargs, None, [], traced)
            results = [plain(tf, x) for x in leaves]
    except Exception as e:  # what is compared
        return _error(e), None
    try:
        with tf.GradientTape() as tape:
            leaves = _call(tf, op, kwargs, tape, watched, traced)
        if not traced:
            results = [plain(tf, x) for x in leaves]
    except Exception as e:
        return (results, _error(e)) if traced else (_error(e), None)
    flows = [
        x
        for x in leaves
        if tf.is_tensor(x) and (x.dtype.is_floating or x.dtype.is_complex)
    ]
    if not watched or not flows:
        return results, None
    try:
        size = [int(np.prod(x.shape)) for x in flows]
        down = [
            tf.cast(tf.reshape(tf.cos(tf.range(n, dtype=tf.float64)), x.shape), x.dtype)
            for n, x in zip(size, flows, strict=True)
        ]
        slopes = tape.gradient(flows, watched, output_gradients=down)
        return results, [plain(tf, s) for s in slopes]
    except Exception as e:
        return results, _error(e)


def serve(side, path, begin):
    """Runs the calls in `path` from `begin` on; each result is appended. `side` is a
    module, and " traced" behind it where calls are traced."""
    module, _, traced = side.partition(" ")
    tf = importlib.import_module(module)
    with open(path, "rb") as file:
        calls = pickle.load(file)
    with open(path + "." + side, "ab") as out:
        for op, number, kwargs in calls[begin:]:
            pickle.dump((op, number, run(tf, op, kwargs, bool(traced))), out)
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
    environment["PYTHONPATH"] = package if module.startswith("headrace") else ""
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
            "data type is not supported",
            "Crash",
        )
    )


def difference(theirs, ours, unset=(), single=False):
    """What differs between two results (lists of values, or errors), or None. `unset`
    are results that upstream leaves without a value; `single`: doubles, too, are made
    with float32 numbers."""
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
        text = None if i in unset else _value_difference(t, o, single)
        if text:
            return f"result {i}: {text}"
    return None


def _value_difference(t, o, single):
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
    tolerance = _TOLERANCE["float32" if single and t[0] == "float64" else t[0]]
    with np.errstate(all="ignore"):
        finite = np.abs(t[1])[np.isfinite(t[1])]
        # What cancels to nothing leaves the last places of what it was made of.
        scale = max(float(finite.max()) if finite.size else 0.0, 1e-3)
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
    """Rows of known.txt: (op, what of it, a pattern of the difference)."""
    rows = []
    with open(os.path.join(HERE, "known.txt"), encoding="utf-8") as file:
        for line in file:
            row = line.partition("#")[0].split(None, 2)
            if row:
                rows.append((*row[:2], "".join(row[2:]).strip()))
    return rows


def is_known(rows, op, kind, text, broken):
    """Whether a row decides this difference; those of changed calls say "broken"."""
    kinds = (kind, "broken") if broken else (kind,)
    return any(
        fnmatch.fnmatchcase(op, r[0]) and r[1] in kinds and re.match(r[2], text, re.S)
        for r in rows
    )


def describe(kwargs):
    from draw import Held, Program, Quantized

    def text(value):
        if isinstance(value, Held):
            return f"variable {text(value.value)}"
        if isinstance(value, Quantized):
            return f"{value.dtype} {text(value.value)}"
        if isinstance(value, np.ndarray):
            few = f"={value.tolist()}" if value.size <= 8 else ""
            return f"{value.dtype}{list(value.shape)}{few}"
        if isinstance(value, list):
            return "[" + ", ".join(text(v) for v in value) + "]"
        return repr(value)

    if isinstance(kwargs, Program):
        return f"program of seeds {kwargs.seed}"
    return ", ".join(f"{k}={text(v)}" for k, v in kwargs.items())


def compare(python, ops, count, seed, broken=False, traced=False):
    """(op, kind, number, kwargs, text) of what differs, and how many calls of each op
    gave values on both sides."""
    table = recipes()
    if traced:
        table = {k: r for k, r in table.items() if r.__module__ != "recipes_program"}
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
        if traced:
            theirs, ours = (
                ours,
                run_side(sys.executable, "headrace traced", path, calls),
            )
        else:
            theirs = run_side(python, "tensorflow", path, calls)
    found, ran = [], collections.Counter()
    unset = {r[0]: [int(i) for i in r[2].split()] for r in known() if r[1] == "unset"}
    single = {r[0] for r in known() if r[1] == "single"}
    for (op, number, kwargs), t, o in zip(calls, theirs, ours, strict=True):
        ran_both = isinstance(t[0], list) and isinstance(o[0], list)
        ran[op] += ran_both
        for kind, a, b in (("value", t[0], o[0]), ("gradient", t[1], o[1])):
            if kind == "gradient" and not ran_both:
                continue
            if traced and isinstance(a, tuple):
                continue
            left = unset.get(op, ()) if kind == "value" else ()
            text = difference(a, b, left, op in single)
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
    parser.add_argument("--traced", action="store_true")
    parser.add_argument("ops", nargs="*")
    options = parser.parse_args()
    python = os.environ.get("HEADRACE_TENSORFLOW_PYTHON", "")
    found, ran = compare(
        python,
        options.ops,
        options.calls,
        options.seed,
        options.broken,
        options.traced,
    )
    decided = known()
    shown = collections.Counter()
    for op, kind, number, kwargs, text in found:
        if not options.traced and is_known(decided, op, kind, text, options.broken):
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
