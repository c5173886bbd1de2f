"""What dtypes become together in each mode: tests/golden/numpy/promotion.txt.

`python promotion_table.py`, run by a Python with TensorFlow, writes the file: a process
for each mode, for modes cannot be taken back. In it a line "# mode prefer_float32" stands
above one for each pair of operands and what their sum is: a dtype, with a * where it is
weak, or the class of the error.
"""

import itertools
import pathlib
import subprocess
import sys

import numpy as np

FILE = pathlib.Path(__file__).parents[3] / "tests/golden/numpy/promotion.txt"
RUNS = [("all", 0), ("safe", 0), ("legacy", 0), ("legacy", 1), ("off", 0)]
_DTYPES = "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 bfloat16 float16 "
_DTYPES += "float32 float64 complex64 complex128"
_WEAK = "int32 int64 float32 float64 complex128"


def _operands(tf, mode):
    found = {}
    for name in _DTYPES.split():
        found[name] = tf.constant(np.ones([])).astype(getattr(tf, name))
    found |= {"1": 1, "1.5": 1.5, "1j": 1j}
    if mode in ("all", "safe"):
        weak = next(
            c for c in type(tf.constant(1)).__mro__ if c.__name__ == "WeakTensor"
        )
        for name in _WEAK.split():
            found[name + "*"] = weak.from_tensor(found[name])
    return found


def _sum(x, y):
    try:
        made = x + y
    except Exception as error:  # noqa: BLE001 (its class is the answer)
        return type(error).__name__
    if not hasattr(made, "dtype"):
        return type(made).__name__
    return made.dtype.name + ("*" if "weak=True" in repr(made) else "")


def lines(tf, mode, prefer_float32):
    """The lines of one mode, which the process stays in."""
    tf.experimental.numpy.experimental_enable_numpy_behavior(
        prefer_float32=bool(prefer_float32), dtype_conversion_mode=mode
    )
    operands = _operands(tf, mode)
    for (a, x), (b, y) in itertools.product(operands.items(), repeat=2):
        if a == b == "bool" or not (hasattr(x, "dtype") or hasattr(y, "dtype")):
            continue  # booleans have no sum, numbers are Python's
        yield f"{a} {b} {_sum(x, y)}"


def recorded(mode, prefer_float32):
    """The lines of one mode in the file."""
    text = FILE.read_text()
    return text.partition(f"# {mode} {prefer_float32}\n")[2].split("#")[0].splitlines()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        module, mode, prefer = sys.argv[1:]
        print(f"# {mode} {prefer}")
        print(*lines(__import__(module), mode, int(prefer)), sep="\n")
    else:
        texts = []
        for run in RUNS:
            command = [sys.executable, __file__, "tensorflow", *map(str, run)]
            texts.append(subprocess.check_output(command, text=True))
        FILE.parent.mkdir(exist_ok=True)
        FILE.write_text("".join(texts))
