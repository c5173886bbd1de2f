"""tools/check_layers.py refuses what Python's floors forbid."""

import pathlib

import pytest

TOOLS = pathlib.Path(__file__).parents[2] / "tools"
TABLE = """
python _names 1
python _api 3
python low 2
python middle 2
python high 4
door json  read seldom
"""


@pytest.fixture
def faults(tmp_path, monkeypatch):
    """A function: what the check says of a package of these files."""
    monkeypatch.syspath_prepend(str(TOOLS))
    import check_layers

    def check(files, table=TABLE):
        root = tmp_path / "headrace"
        names = "a.low low.ops:f\nhigh.g high.ops:g\ncompat.v1.@ same.txt\n"
        files = {
            "__init__.py": "from headrace import high\n",
            "api_names.txt": f"# names\n{names}",
            "same.txt": "a.low\n",
            "low/__init__.py": "",
            "low/ops.py": "f = 1\n",
            "high/__init__.py": "",
            "high/ops.py": "from headrace.low import ops\n",
            **files,
        }
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        (tmp_path / "layers.txt").write_text(table)
        return check_layers.python_faults(str(root), str(tmp_path / "layers.txt"))[1]

    return check


_USES_DOOR = {"high/reader.py": "def f():\n    import json\n    return json\n"}


def test_lower_floors_the_own_package_and_doors_are_free(faults):
    more = {"high/more.py": "from headrace.high import ops\nimport headrace.low.ops\n"}
    assert faults({**_USES_DOOR, **more}) == []


@pytest.mark.parametrize(
    "file, text, said",
    [
        ("low/bad.py", "from headrace.high import ops\n", "low.bad:1 imports high.ops"),
        ("low/bad.py", "import headrace.high.ops\n", "low.bad:1 imports high.ops"),
        ("low/bad.py", "from ..high.ops import g\n", "low.bad:1 imports high.ops"),
        ("low/bad.py", "from headrace import high\n", "low.bad:1 imports high"),
        ("low/bad.py", "import headrace as tf\n", "low.bad:1 imports the facade"),
        ("middle/bad.py", "from headrace.low import ops\n", "imports low.ops, which"),
        (
            "low/bad.py",
            "from headrace import _names\n_names.public('high.g')\n",
            "high",
        ),
        (
            "low/bad.py",
            "from importlib import import_module\nx = import_module('headrace.high.ops')",
            "low.bad:2 imports high.ops",
        ),
        (
            "low/bad.py",
            "import importlib\nimportlib.import_module(x)\n",
            "cannot be told",
        ),
        (
            "high/bad.py",
            "def f():\n    from headrace.low import ops\n    return ops\n",
            "high.bad:2 imports low.ops inside a function",
        ),
        (
            "high/bad.py",
            "class C:\n    f = lambda: __import__('headrace.low.ops')\n",
            "high.bad:2 imports low.ops inside a function",
        ),
        (
            "low/bad.py",
            "async def f():\n    import csv\n",
            "low.bad:2 imports csv inside a function",
        ),
        ("other/new.py", "", "other is not a room of Python"),
    ],
)
def test_a_forged_import_is_refused(faults, file, text, said):
    found = faults({**_USES_DOOR, file: text})
    assert any(said in fault for fault in found), found


@pytest.mark.parametrize(
    "use, said",
    [
        ("tf.a.low", None),
        ("tf.compat.v1.a.low.attribute", None),
        ("tf.high.g(tf.a.low)", "imports high.ops, which is not below it"),
        ("tf.a", "tf.a is no name with a row"),
        ("tf.a.later", "tf.a.later is no name with a row"),
        ("getattr(tf, 'high')", "which names of tf are used cannot be told"),
    ],
)
def test_public_names_lead_to_their_modules(faults, use, said):
    table = TABLE + "python above 4\n"
    text = f"from headrace import _api as tf\n\n\ndef f():\n    return {use}\n"
    found = faults({**_USES_DOOR, "above/user.py": text, "_api.py": ""}, table)
    assert (found == []) if said is None else [said in x for x in found] == [True]


def test_what_is_left_may_only_become_less(faults):
    bad = {**_USES_DOOR, "low/bad.py": "from headrace.high import ops\n"}
    table = TABLE + "left cycle high low 1\nleft upward low high "
    assert faults(bad, table + "1\n") == []
    more = faults(bad, table + "2\n")
    assert more == ["left upward low high: 1, not the 2 of the table"]
    bad["low/worse.py"] = bad["low/bad.py"]
    found = faults(bad, table + "1\n")
    assert len(found) == 3 and "2, not the 1" in found[-1]


def test_folders_of_a_package_import_each_other_one_way(faults):
    ring = {
        **_USES_DOOR,
        "high/a/__init__.py": "from headrace.high.b.x import y\n",
        "high/b/x.py": "from headrace.high import ops\ny = 1\n",
        "high/ops.py": "from headrace.high import a\n",
    }
    (found,) = faults(ring)
    assert found == "folders import each other: high high.a high.b"
    ring["high/ops.py"] = ""
    assert faults(ring) == []


def test_doors_have_a_use_and_a_reason(faults):
    assert faults({}) == ["door json is used by nobody"]
    table = TABLE + "door csv\n"
    bad = {**_USES_DOOR, "low/use.py": "def f():\n    import csv\n"}
    assert faults(bad, table) == ["door csv has no reason"]


@pytest.mark.parametrize(
    "more, said",
    [
        ({}, []),
        ({"src/a/x.h": ["a/in/y.h"]}, ["folders include each other: a a/in"]),
        ({"src/b/x.h": ["a/in/y.h"]}, ["folders include each other: a a/in b"]),
        ({"include/headrace/x.h": ["headrace/layer/y.h"]}, ["headrace headrace/layer"]),
    ],
)
def test_folders_of_sources_do_not_include_each_other(monkeypatch, more, said):
    monkeypatch.syspath_prepend(str(TOOLS))
    import check_layers

    sources = {
        "src/a/z.h": ["vector", "b/z.h"],
        "src/a/in/y.h": ["a/z.h", "a/in/w.h"],
        "src/b/z.h": ["b/w.h"],
        "include/headrace/headrace.h": ["headrace/layer/y.h"],
        "include/headrace/layer/y.h": ["headrace/x.h"],
    }
    found = list(check_layers.folder_faults({**sources, **more}))
    assert len(found) == len(said)
    assert all(text in fault for text, fault in zip(said, found))
