"""Writes tests/golden/ops/rows.npz: what TensorFlow gives for the rows of ops.

Usage: HEADRACE_TENSORFLOW_PYTHON=PYTHON python tests/compare/record_rows.py [NAME...]
The calls are drawn by the recipes here, two of each op; the programs are those of
python/tests/ops/rows_of_*.py, the wanted values those of its tables' rows with
`want=RECORDED`. NAME...: only these programs are run again, the rest stays.
"""

import os
import pickle
import subprocess
import sys
import tempfile
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.join(HERE, "..", "..", "python", "tests")
sys.path += [HERE, TESTS, os.path.join(TESTS, "ops")]
import compare_ops

SEED, CALLS, DRAWN, LARGEST = 5, 2, 12, 4000


def _size(kwargs, results):
    return len(pickle.dumps((kwargs, results)))


def _unset(results, places):
    """Results without those that TensorFlow leaves unset."""
    return [None if i in places else r for i, r in enumerate(results)]


def drawn_calls(python, path):
    """{op: [(keyword arguments, results)]}: the smallest that say something."""
    import rows

    table = compare_ops.recipes()
    calls = [
        (op, number, kwargs)
        for op in sorted(table)
        if table[op].__module__ != "recipes_program"
        for number, kwargs in compare_ops.cases(op, table[op], DRAWN, SEED)
    ]
    with open(path, "wb") as file:
        pickle.dump(calls, file)
    found = {}
    for (op, _, kwargs), (results, _) in zip(
        calls, compare_ops.run_side(python, "tensorflow", path, calls), strict=True
    ):
        if isinstance(results, list) and rows.says_something(results):
            found.setdefault(op, []).append((kwargs, results))
    for op, all_calls in found.items():
        fit = [c for c in all_calls if _size(*c) < LARGEST]
        found[op] = fit[:CALLS] or [min(all_calls, key=lambda c: _size(*c))]
    return found


def table_calls(python, path):
    """{name: results} of the rows of tables whose values are recorded."""
    import driver
    import rows

    calls = []
    for row in rows.table_rows():
        for dtype in row.dtypes if row.want is driver.RECORDED else ():
            tensors = driver.arrays(row, dtype)
            calls.append((row.op, f"{row}-{dtype}", {**tensors, **row.attrs}))
    names = [name for _, name, _ in calls]
    assert len(names) == len(set(names)), "rows that look alike"
    with open(path, "wb") as file:
        pickle.dump(calls, file)
    found = compare_ops.run_side(python, "tensorflow", path, calls)
    wide = [
        _wide(call) if isinstance(results, tuple) else call
        for call, (results, _) in zip(calls, found, strict=True)
    ]
    with open(path + ".wide", "wb") as file:
        pickle.dump(wide, file)
    found = compare_ops.run_side(python, "tensorflow", path + ".wide", wide)
    return {
        name: results
        if isinstance(results, tuple)
        else _unset(results, _places_unset(op))
        for (op, name, _), (results, _) in zip(calls, found, strict=True)
    }


def _wide(call):
    """The call in float64, where TensorFlow has no kernel for narrow floats."""
    op, name, kwargs = call
    kwargs = dict(kwargs)
    for k, v in kwargs.items():
        if hasattr(v, "dtype") and v.dtype.name in ("float16", "bfloat16"):
            kwargs[k] = v.astype("float64")
    return op, name, kwargs


def _places_unset(op):
    rows = [r for r in compare_ops.known() if r[:2] == (op, "unset")]
    return [int(i) for r in rows for i in r[2].split()]


def run_programs(path, names):
    """In a Python that has TensorFlow: the results, or an error's text."""
    import rows
    import tensorflow as tf

    found = {}
    for name, function in rows.programs().items():
        if names and name not in names:
            continue
        try:
            found[name] = rows.run_program(tf, function)
        except Exception as e:
            at = traceback.extract_tb(e.__traceback__)
            line = next(f.line for f in reversed(at) if "rows_of" in f.filename)
            found[name] = f"{type(e).__name__}: {e}\n   {line}"
    with open(path, "wb") as file:
        pickle.dump(found, file)


def main():
    if sys.argv[1:2] == ["--programs"]:
        return run_programs(sys.argv[2], sys.argv[3:])
    import rows

    python, names = os.environ["HEADRACE_TENSORFLOW_PYTHON"], sys.argv[1:]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": ""}
    environment["TF_ENABLE_ONEDNN_OPTS"] = "0"
    out, failed = rows.Writer(), {}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "calls")
        if names:
            old = rows.golden()
            calls = {op: old.calls(op) for op in old.index["calls"]}
            tables = {k: old.results(v) for k, v in old.index["rows"].items()}
            kept = set(old.index["programs"]) & set(rows.programs()) - set(names)
            done = {name: old.program(name) for name in kept}
        else:
            calls, done = drawn_calls(python, path), {}
            tables = table_calls(python, path + ".tables")
        subprocess.run(
            [python, __file__, "--programs", path, *names], check=True, env=environment
        )
        with open(path, "rb") as file:
            found = pickle.load(file)
    for name, results in found.items():
        if isinstance(results, str):
            failed[name] = results
        elif not rows.says_something(results):
            failed[name] = "no value"
        else:
            done[name] = results
    for name, results in tables.items():
        if not isinstance(results, list):
            failed[name] = str(results)
    out.save(
        {
            "calls": {
                op: [
                    [
                        {k: out.argument(v) for k, v in kwargs.items()},
                        out.results(_unset(results, _places_unset(op))),
                    ]
                    for kwargs, results in made
                ]
                for op, made in calls.items()
            },
            "rows": {
                k: out.results(v) for k, v in tables.items() if isinstance(v, list)
            },
            "programs": {k: out.results(v) for k, v in sorted(done.items())},
        }
    )
    print(f"{len(calls)} ops by recipes, {len(done)} programs")
    for name, text in failed.items():
        print(f"{name}: {text[:600]}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
