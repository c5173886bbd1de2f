"""Every row of api_names.txt stands for something; raw ops are callable."""

import collections
import importlib
import inspect
import pathlib
import pickle
import subprocess
import sys
import types

import pytest

import headrace as tf
from headrace import _moved, _names


def _rows():
    path = pathlib.Path(tf.__file__).with_name("api_names.txt")
    for line in path.read_text().splitlines():
        if line and line[0] != "#":
            yield line.split()[0]


def test_every_name_is_found():
    missing = []
    for name in _rows():
        value = tf
        try:
            for part in name.split("."):
                if part not in "*@":
                    value = getattr(value, part)
        except Exception as e:  # noqa: BLE001
            missing.append((name, repr(e)))
    assert not missing


def test_every_name_has_one_row():
    names = collections.Counter(_rows())
    assert [n for n, count in names.items() if count > 1] == []


def test_raw_ops_have_signatures():
    for name in dir(tf.raw_ops):
        function = getattr(tf.raw_ops, name)
        assert "name" in inspect.signature(function).parameters
        assert function.__doc__


def test_raw_ops_take_keywords_only():
    with pytest.raises(TypeError, match="only takes keyword args"):
        tf.raw_ops.AddV2(1, 2)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'y'"):
        tf.raw_ops.AddV2(x=1)
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        tf.raw_ops.AddV2(x=1, y=2, z=3)


def test_a_module_may_be_named_like_a_namespace(tmp_path, monkeypatch):
    (tmp_path / "sizes.py").write_text("def square(x):\n    return x * x\n")
    monkeypatch.setattr(_names, "_HERE", str(tmp_path))
    monkeypatch.setattr(tf, "__path__", [*tf.__path__, str(tmp_path)])
    rows = {"sizes": {"square": "sizes:square"}}
    holder = types.ModuleType("headrace")
    _names.open_namespaces("headrace", rows)
    try:
        assert _names.resolve(holder, rows, "sizes").square(3) == 9
        assert sys.modules["headrace.sizes"].__file__ == str(tmp_path / "sizes.py")
    finally:
        sys.modules.pop("headrace.sizes", None)
        tf.__dict__.pop("sizes", None)


@pytest.mark.parametrize(
    "line",
    [
        "from headrace.math import add",
        "from headrace.data import Dataset",
        "from headrace.train import Checkpoint",
        "from headrace.keras.layers import Dense",
        "from headrace.compat import v1; assert v1.train.Saver",
        "import headrace.io as x; assert x.read_file",
    ],
)
def test_namespaces_can_be_imported_from(line):
    subprocess.run([sys.executable, "-c", line], check=True)


def test_import_is_light():
    code = (
        "import sys, headrace;"
        "heavy = {'google.protobuf', 'headrace.ops.nn.nn_ops', 'ml_dtypes'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout.strip() == b"[]"


def test_version_1_shares_names():
    from headrace.compat import v1, v2

    assert v2 is tf and v2.compat.v2 is tf
    assert v1.zeros is tf.zeros and v1.math.abs is tf.math.abs
    assert v1.placeholder is not None and not hasattr(tf, "placeholder")
    # What version 1 has in a form of its own is not taken from tf.
    assert v1.train.Saver is not None
    assert {"zeros", "math", "Session"} <= set(dir(v1))


def test_facts_of_the_build():
    for space in (tf, tf.compat.v1, tf.compat.v2):
        assert space.__version__ == tf.version.VERSION
        assert space.__git_version__ == tf.version.GIT_VERSION
        assert space.__compiler_version__ == tf.version.COMPILER_VERSION
        assert space.__cxx11_abi_flag__ == tf.sysconfig.CXX11_ABI_FLAG
        assert space.__cxx_version__ == tf.sysconfig.CXX_VERSION
        assert space.__monolithic_build__ == tf.sysconfig.MONOLITHIC_BUILD


def test_modules_of_version_1_are_importable():
    code = """
import headrace.compat.v1 as tf
import headrace.compat.v2 as tf2
assert tf.zeros([2]).shape == [2] and tf2.zeros is tf.zeros
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_names_that_are_nearly_right_are_told():
    program = "import headrace as tf; tf.math.reduce_summ"
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True
    )
    assert "Did you mean: 'reduce_sum'?" in result.stderr


def test_modules_are_found_by_the_names_they_had():
    for old, new in _moved._moved().items():
        found = importlib.import_module(f"headrace.{old}")
        real = importlib.import_module(f"headrace.{new}")
        for name, value in vars(real).items():
            if callable(value) and name[:2] != "__":
                assert getattr(found, name) is value
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("headrace.training.nothing")
    assert not hasattr(found, "nothing")


def test_pickles_with_names_of_moved_modules_are_read():
    # Both names have as many letters, which is what a pickle says of them.
    new, old = (
        b"headrace.v1.train.session_run_hook",
        b"headrace.training.session_run_hook",
    )
    written = pickle.dumps(tf.compat.v1.train.SessionRunArgs("x"))
    assert len(new) == len(old) and new in written
    found = pickle.loads(written.replace(new, old))
    assert found == tf.compat.v1.train.SessionRunArgs("x")
    # A function is its row of api_names.txt, also where dispatchers look for it.
    written = pickle.dumps(tf.nn.moments, 0)
    older = written.replace(b"ops.nn.nn_ops", b"ops.nn_ops")
    assert older != written and pickle.loads(older) is tf.nn.moments
    columns = [tf.feature_column.numeric_column("a")]
    layer = pickle.loads(pickle.dumps(tf.keras.layers.DenseFeatures(columns)))
    assert layer({"a": [[1.0]]}).numpy().tolist() == [[1.0]]


def test_programs_imported_as_compat_v1_find_compat_v1():
    """`import headrace.compat.v1 as tf`, then tf.compat.v1.Session."""
    v1 = tf.compat.v1
    assert v1.compat.v1 is v1
    assert v1.compat.v2 is tf
    module = importlib.import_module("headrace.compat.v1.compat.v1")
    assert module.train.AdamOptimizer is v1.train.AdamOptimizer
    assert {"v1", "v2"} <= set(dir(v1.compat))
