"""Values that TensorFlow gave, kept in tests/golden/ops, and what compares them.

A file of cases, `x_cases.py`, has functions `case_NAME(tf)` that return tensors
(nested as they like). `python recorded.py ops/x_cases.py`, run by a Python with
TensorFlow, writes tests/golden/ops/x.npz; `check` runs a case and compares.
"""

import importlib
import json
import pathlib
import sys

import numpy as np

FOLDER = pathlib.Path(__file__).parents[2] / "tests" / "golden" / "ops"


def names(module):
    return [n[5:] for n in vars(module) if n.startswith("case_")]


def _leaves(value):
    if isinstance(value, (list, tuple)):
        return [leaf for v in value for leaf in _leaves(v)]
    if isinstance(value, dict):
        return [leaf for k in sorted(value) for leaf in _leaves(value[k])]
    return [np.asarray(value.numpy() if hasattr(value, "numpy") else value)]


def _outcome(module, name, tf):
    """The leaves, or the class of the error."""
    try:
        return _leaves(getattr(module, "case_" + name)(tf))
    except Exception as error:
        return type(error).__name__


def _plain(leaf):
    """(dtype, bytes): strings as JSON, all else as it lies in memory."""
    if leaf.dtype != object:
        kind = leaf.dtype.str if leaf.dtype.kind != "V" else leaf.dtype.name
        return kind, np.ascontiguousarray(leaf).tobytes()
    rows = [b.decode("latin-1") for b in leaf.reshape(-1)]
    return "string", json.dumps(rows).encode()


def _path(module):
    return FOLDER / (module.__name__.removesuffix("_cases") + ".npz")


def write(module, tf):
    """Two arrays of bytes: what all cases gave, and JSON that says where it lies."""
    index, data = {}, []
    at = 0
    for name in names(module):
        leaves = _outcome(module, name, tf)
        if isinstance(leaves, str):
            index[name] = leaves
            continue
        index[name] = rows = []
        for leaf in leaves:
            kind, plain = _plain(leaf)
            rows.append([kind, leaf.shape, at, at + len(plain)])
            data.append(plain)
            at += len(plain)
    FOLDER.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(
        _path(module),
        index=np.frombuffer(json.dumps(index).encode(), np.uint8),
        data=np.frombuffer(b"".join(data), np.uint8),
    )


def check(module, name, tf, rtol=1e-5, atol=1e-6):
    with np.load(_path(module)) as file:
        want = json.loads(bytes(file["index"]))[name]
        data = bytes(file["data"])
    found = _outcome(module, name, tf)
    if isinstance(want, str):
        assert found == want, f"wanted {want}"
        return
    if isinstance(found, str):
        getattr(module, "case_" + name)(tf)  # the error itself
    assert len(found) == len(want)
    for leaf, (kind, shape, begin, end) in zip(found, want, strict=True):
        got, plain = _plain(leaf)
        assert (got, list(leaf.shape)) == (kind, shape)
        if leaf.dtype.kind not in "fc":
            assert plain == data[begin:end]
            continue
        value = np.frombuffer(data[begin:end], leaf.dtype).reshape(shape)
        np.testing.assert_allclose(leaf, value, rtol=rtol, atol=atol)


def main(paths):
    for path in map(pathlib.Path, paths):
        sys.path.append(str(path.parent))
        module = importlib.import_module(path.stem)  # it may say what TensorFlow reads
        write(module, importlib.import_module("tensorflow"))


if __name__ == "__main__":
    main(sys.argv[1:])
