"""MultiWorkerMirroredStrategy by RING, with TensorFlow's messages, of which some workers may
be TensorFlow's.

HEADRACE_TENSORFLOW_PYTHON names a Python that has TensorFlow 2.21; without it only the
groups of Headrace alone are tested.
"""

import json
import os
import subprocess

import processes
import pytest

_PROGRAM = os.path.join(os.path.dirname(__file__), "ring_program.py")
_OURS, _THEIRS = "headrace", "tensorflow"
GROUPS = [
    [_OURS, _OURS],
    [_THEIRS, _OURS],
    [_OURS, _THEIRS],
    [_THEIRS, _OURS, _OURS],
]


def run(what, modules, program=_PROGRAM):
    """What each worker told, by name."""
    if _THEIRS in modules and not processes.PYTHONS[_THEIRS]:
        pytest.skip("HEADRACE_TENSORFLOW_PYTHON is not set")
    cluster = processes.Cluster(worker=len(modules))
    spec = json.dumps(cluster.spec)
    tasks = [
        subprocess.Popen(
            [processes.PYTHONS[module], program, module, what, "worker", str(i), spec],
            env={**os.environ, "HEADRACE_TENSORFLOW_PEERS": "1"},
            stdout=subprocess.PIPE,
            text=True,
        )
        for i, module in enumerate(modules)
    ]
    try:
        said = [task.communicate(timeout=300)[0].splitlines() for task in tasks]
    finally:
        for task in tasks:
            task.kill()
            task.wait()
    found = [dict(json.loads(x) for x in lines if x[:2] == '["') for lines in said]
    return found, [task.returncode for task in tasks]


@pytest.mark.slow
@pytest.mark.parametrize("modules", GROUPS)
def test_ops(modules):
    found, codes = run("ops", modules)
    count, total = len(modules), sum(range(len(modules)))
    assert codes == [0] * count and all(other == found[0] for other in found)
    got = found[0]
    for dtype in ("float32", "float64", "int32", "float16"):
        for size in (0, 1, 15, 16, 33, 1000):
            wanted = [[float(count * i + total) for i in range(size)]]
            if dtype == "float16":
                assert size == 1000 or got[f"{dtype} {size}"] == wanted
            else:
                assert got[f"{dtype} {size}"] == wanted
    whole = count * sum(i % 97 for i in range(3000001)) + total * 3000001
    assert got["many"] == [[float(count * i + total) for i in range(3)], float(whole)]
    assert got["div"] == [[1 + total / count, 2.0]]
    assert got["max"] == [[[float(count), 2.0]]]
    last = count - 1
    assert got["gather 1"] == [[count], 0, last, last]
    assert got["gather 500000"] == [[count * 500000], 0, *[499999 + last] * 2]
    for source in range(count):
        for size in (3, 1000000):
            wanted = [float(source), float(size - 1 + source)]
            assert got[f"broadcast {source} {size}"] == wanted
    assert got["all to all"] == [float(sum(200 * i + 1 for i in range(count)))]


@pytest.mark.slow
@pytest.mark.parametrize("modules", GROUPS)
def test_training(modules):
    found, codes = run("train", modules)
    assert codes == [0] * len(modules) and all(other == found[0] for other in found)
    if len(modules) > 2:
        return
    got = found[0]  # what two of TensorFlow's get
    assert got["variables"] == [[1.0, 2.0], [[1.0, 1.0]] * 3, [True, False]]
    losses = [54.0, -5.76, -29.6856]
    assert got["losses"] == pytest.approx(losses, rel=1e-5)
    assert got["trained"][2] == 8.0
    assert got["rows"] == [6.0, 22.0, 38.0]
    for name in ("slices", "traced slices"):
        rows = [[3.0] * 3, [0.0] * 3, [3.0] * 3, [0.0] * 3]
        assert got[f"{name} alike"][:3] == [[23.0], rows, [[4.0, 6.0]]]
        rows[1] = [2.0] * 3
        assert got[f"{name} other"][:3] == [[23.0], rows, [[4.0, 6.0]]]
        assert got[f"{name} other"][3:] in ([], got[f"{name} other"][:3])
    assert got["mean"] == [[1.5, 2.0]]
    assert got["reduced"] == [pytest.approx([1.6, 1.6])]
    assert got["count"] == [[6]]
    assert got["gather"] == [[[[1.0] * 3, [2.0] * 3, [2.0] * 3]] * 2]
    assert got["all gather"] == [[[1.0] * 2, [2.0] * 2, [2.0] * 2]]


@pytest.mark.slow
@pytest.mark.parametrize("modules", GROUPS)
def test_walks_within_functions(modules):
    found, codes = run("walk", modules)
    count = len(modules)
    assert codes == [0] * count and all(other == found[0] for other in found)
    got, total = found[0], float(sum(range(22)))
    assert got["even whole"] == [total, 6, total, 6]
    assert got["even some"] == [28.0, total - 28.0, 4]
    assert got["even optional"] == [total]
    each = [float(sum(range(min(4 * (2 + 2 * i), 22)))) for i in range(count)]
    turns = min(2 * count, 6)
    assert got["uneven whole"] == [sum(each), turns, sum(each), turns]
    first = count * 28.0
    assert got["uneven some"] == [first, sum(each) - first, turns - 2]
    assert got["uneven optional"] == [sum(each)]
    assert got["calls"] == [*[4.0 * sum(range(count + 1))] * 2, 3.0 * count]
    factor = 1 + 0.5 * count
    rows = [[1.0, 2.0]] * 2
    assert got["train"] == [
        [[x * factor**times for x in row] for row in rows] for times in (3, 4)
    ]


@pytest.mark.slow
def test_what_only_tensorflow_can_name_is_refused():
    found, codes = run("refused", [_OURS, _OURS])
    assert codes == [0, 0]
    for got in found:
        assert got["nested"] == ["a collective in the loop while within another loop"]
        assert got["called"] == ["a collective in the loop while of a function"]
        assert got["scatter"] == ["CollectiveRegistry::Lookup did not find collective"]


@pytest.mark.slow
@pytest.mark.parametrize("modules", GROUPS)
def test_a_worker_that_dies(modules):
    found, codes = run("death", modules)
    assert codes == [0] * (len(modules) - 1) + [9]
    for got in found[:-1]:
        assert got["first"] == got["again"] == ["unavailable"]
