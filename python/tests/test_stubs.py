"""Type stubs (tools/stubs.py) have every public name, with the parameters that calls are
checked against."""

import ast
import functools
import importlib.util
import inspect
import os
import subprocess
import sys

import headrace as tf
import pytest

ROOT = os.path.join(os.path.dirname(__file__), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tools"))
import stubs


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("stubs") / "headrace"
    stubs.Writer(tf).write(str(made))
    return made


@functools.cache
def names_in(path):
    """{name: node} of what a stub says."""
    found = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found[node.name] = node
        elif isinstance(node, ast.AnnAssign):
            found[node.target.id] = node
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= {alias.asname or alias.name: node for alias in node.names}
    return found


def test_every_public_name_is_there(folder):
    for path, space in stubs.namespaces(tf).items():
        found = names_in(
            folder.joinpath(*filter(None, path.split("."))) / "__init__.pyi"
        )
        names = [n for n in stubs.names_of(space) if stubs.get(space, n) is not None]
        assert [n for n in names if n not in found] == [], path


def test_functions_have_their_parameters(folder):
    checked = 0
    for path, space in stubs.namespaces(tf).items():
        stub = folder.joinpath(*filter(None, path.split("."))) / "__init__.pyi"
        for name, node in names_in(stub).items():
            if not isinstance(node, ast.FunctionDef):
                continue
            a = node.args
            given = [p.arg for p in (*a.posonlyargs, *a.args)]
            given += [a.vararg.arg] if a.vararg else []
            given += [p.arg for p in a.kwonlyargs] + ([a.kwarg.arg] if a.kwarg else [])
            try:
                wanted = list(inspect.signature(getattr(space, name)).parameters)
            except (TypeError, ValueError):
                continue
            assert given == wanted, f"{path}.{name}"
            checked += 1
    assert checked > 2000


def test_imports_of_aliases_end_at_something(folder):
    for stub in folder.rglob("__init__.pyi"):
        for name, node in names_in(stub).items():
            if isinstance(node, ast.ImportFrom) and node.module.startswith("headrace"):
                source = folder.joinpath(*node.module.split(".")[1:]) / "__init__.pyi"
                below = source.parent / node.names[0].name
                assert node.names[0].name in names_in(source) or below.is_dir(), (
                    stub,
                    name,
                )


PROGRAM = """
import headrace as tf
x = tf.constant([-1.0, 0.0])
v = tf.Variable(0.0)
tf.math.add(x, 1.0, name="sum") + x[0] * -v
model = tf.keras.Sequential([tf.keras.layers.Dense(3, activation="relu")])
model.compile(optimizer="sgd", loss="mse")
tf.data.Dataset.from_tensor_slices([1]).map(lambda x: x).batch(2)
tf.math.add(1)
tf.math.add(1, 2, nam="x")
tf.no_such_name
tf.keras.layers.Dense()
"""


@pytest.mark.skipif(
    not importlib.util.find_spec("mypy"), reason="mypy is not installed"
)
def test_a_type_checker_finds_wrong_calls_and_no_others(folder, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    told = subprocess.run(
        [sys.executable, "-m", "mypy", "--no-error-summary", "program.py"],
        check=False,
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(folder.parent)},
        capture_output=True,
        text=True,
    ).stdout
    lines = [x.split(":")[1] for x in told.splitlines() if x.startswith("program.py")]
    assert sorted(set(lines)) == ["10", "11", "12", "9"], told
