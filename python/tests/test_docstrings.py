"""help() says something of every public name, and dir() lists these alone."""

import inspect
import os
import pydoc
import re
import subprocess
import sys
import types

import headrace as tf
import pytest
from headrace import _names

ROOT = os.path.join(os.path.dirname(__file__), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tools"))
import stubs

# What stands where a docstring is yet to be written.
STUB = re.compile(r"todo|fixme|xxx|see base class|no docstring", re.IGNORECASE)


@pytest.fixture(scope="module")
def callables():
    """{public name: function or class}, each once, without those of tf.raw_ops."""
    home, kept = stubs.homes(stubs.namespaces(tf))
    named = {".".join(filter(None, home[id(value)])): value for value in kept}
    return {
        name: value
        for name, value in named.items()
        if (
            inspect.isclass(value)
            or inspect.isroutine(value)
            or hasattr(value, "__name__")
        )
        and callable(value)
        and "raw_ops." not in name
    }


def says_something(value):
    text = value.__doc__ or ""
    return len(text.strip()) > 11 and not STUB.match(text.strip())


def test_every_public_name_has_a_docstring(callables):
    assert len(callables) > 1500
    # (A union of types is no function or class.)
    assert [n for n, v in callables.items() if not says_something(v)] == [
        "types.experimental.TensorLike"
    ]


def test_methods_of_public_classes_have_docstrings(callables):
    missing = []
    for name, value in callables.items():
        for member, held in vars(value).items() if inspect.isclass(value) else ():
            held = getattr(held, "__func__", held)
            shown = inspect.isfunction(held) or isinstance(held, property)
            if (
                shown
                and member[:1] != "_"
                and not inspect.getdoc(getattr(value, member))
            ):
                missing.append(f"{name}.{member}")
    assert missing == []


def test_help_writes_a_page_of_every_public_name(callables):
    for name, value in callables.items():
        assert pydoc.render_doc(value, renderer=pydoc.plaintext), name


def test_help_of_a_message_has_its_fields():
    page = pydoc.render_doc(tf.train.Example, renderer=pydoc.plaintext)
    assert "The proto message tensorflow.Example" in page
    assert "    tensorflow.Features features = 1" in tf.train.Example.__doc__
    assert "repeated bytes value = 1" in tf.train.BytesList.__doc__


@pytest.mark.parametrize("name", ["math", "compat.v1.train", "data", "keras.losses"])
def test_help_of_a_namespace_has_its_functions(name):
    space = _names.public(name)
    page = pydoc.render_doc(space, renderer=pydoc.plaintext)
    assert f"headrace.{name} - Public names of tf.{name}." in page
    for function in stubs.names_of(space):
        assert re.search(rf"\b{function}\b", page), function


def test_dir_has_public_names_alone():
    rows = tf._root
    for path, space in stubs.namespaces(tf).items():
        found = [n for n in dir(space) if n not in ("__internal__", "__operators__")]
        # (But for what describes the module, as tf.__version__ does.)
        assert [n for n in found if n[:1] == "_" and n[-2:] != "__"] == [], path
        # (compat.v1.test.mock is the standard library's, as there.)
        strays = [
            n
            for n in found
            if (path, n) != ("compat.v1.test", "mock")
            and isinstance(stubs.get(space, n), types.ModuleType)
            and not isinstance(stubs.get(space, n), (_names.Namespace, type(tf)))
        ]
        assert strays == [], path
    assert set(dir(tf)) == set(rows)


def test_dir_has_what_a_program_puts_there(monkeypatch):
    monkeypatch.setattr(tf, "of_my_own", 1, raising=False)
    assert "of_my_own" in dir(tf)


IMPORTS = """
import sys
import headrace as tf
sys.path.insert(0, {tools!r})
import stubs
for path, space in stubs.namespaces(tf).items():
    given = {{}}
    exec(f"from headrace{{'.' + path if path else ''}} import *", given)
    for name in stubs.names_of(space):
        # (tf.io.gfile is a module of the package with these very names.)
        wanted = getattr(space, name)
        wanted = sys.modules[wanted.__name__] if path == "io" and name == "gfile" else wanted
        assert given[name] is wanted, (path, name)
"""


def test_all_names_are_imported_by_a_star():
    program = IMPORTS.format(tools=os.path.join(ROOT, "tools"))
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_star_imports_what_was_not_used_yet():
    program = "from headrace.keras.layers import *\nassert Dense(3).units == 3"
    subprocess.run([sys.executable, "-c", program], check=True)
