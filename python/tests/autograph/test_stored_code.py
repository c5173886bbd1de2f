"""Converted code on disk: found by the next process, and never wrong."""

import importlib.util
import linecache
import os
import pathlib
import random
import subprocess
import sys
import threading
import traceback
import zipfile

import headrace as tf
import pytest

from headrace.autograph.conversion import converter, stored

SOURCE = '''\
import headrace as tf

factor = 3.0


def scaled(x):
    """Scales."""
    def inner(y):
        if y > 10.0:
            return y
        return y * factor
    return inner(x)


def main(x):
    pick = lambda v: v if v > 0.0 else -v
    total = 0.0
    for i in tf.range(3):
        total += pick(scaled(x)) + tf.cast(i, tf.float32)
    return total


class Box:
    def __init__(self):
        self.__held = 2.0

    def times(self, x):
        while x < 50.0:
            x = x * self.__held
        return x
'''


class Module:
    """A source file, loaded as a fresh process would: nothing is remembered."""

    def __init__(self, path, text=SOURCE):
        self.path = path
        self.text = text

    @property
    def text(self):
        return self.path.read_text()

    @text.setter
    def text(self, text):
        self.path.write_text(text)

    @property
    def kept(self):
        """The file of converted code."""
        tag = sys.implementation.cache_tag
        folder = self.path.parent / "__pycache__"
        return folder / f"{self.path.stem}.{tag}.autograph"

    def load(self):
        linecache.clearcache()
        stored._sources.clear()
        names = {"__name__": "users", "__file__": str(self.path)}
        exec(compile(self.text, str(self.path), "exec"), names)
        return names


def run(names):
    """What the functions of SOURCE give."""
    values = tf.function(names["main"])(tf.constant(-2.0))
    return float(values), float(tf.function(names["Box"]().times)(tf.constant(3.0)))


EXPECTED = (21.0, 96.0)


@pytest.fixture
def conversions(monkeypatch):
    """The names of the functions that are converted, not found."""
    made, compiled = [], converter._compiled

    def counted(function, options, find):
        made.append(function.__name__)
        return compiled(function, options, find)

    monkeypatch.setattr(converter, "_compiled", counted)
    return made


@pytest.fixture
def module(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    return Module(tmp_path / "users.py")


def test_the_second_process_converts_nothing(module, conversions):
    assert run(module.load()) == EXPECTED
    assert sorted(conversions) == ["main", "scaled", "times"]
    conversions.clear()
    assert run(module.load()) == EXPECTED
    assert conversions == []
    assert module.kept.stat().st_mode & 0o777 == 0o600
    assert len(list(module.kept.parent.iterdir())) == 1


def test_what_is_found_is_what_would_be_made(module):
    def codes(names):
        run(names)
        functions = names["main"], names["scaled"], names["Box"].times
        return [tf.autograph.to_graph(f).__code__ for f in functions]

    # Code objects are equal when all is: names, lines, columns, constants.
    made = codes(module.load())
    found = codes(module.load())
    assert found == made
    assert all(f is not m for f, m in zip(found, made))
    assert [c.co_filename for c in found] == [str(module.path)] * 3
    assert [list(c.co_positions()) for c in found] == [
        list(c.co_positions()) for c in made
    ]


def test_errors_show_the_lines_of_the_user(module, conversions):
    module.text = """\
def main(x):
    if x > 0.0:
        x = x + {}["no"]
    return x
"""

    def error():
        with pytest.raises(KeyError) as caught:
            tf.function(module.load()["main"])(tf.constant(1.0))
        return str(caught.value), [
            (f.name, f.lineno, f.line)
            for f in traceback.extract_tb(caught.value.__traceback__)
            if f.filename == str(module.path)
        ]

    made = error()
    assert made == error()
    assert conversions == ["main"]
    assert ("tf__main", 3, 'x = x + {}["no"]') in made[1]


@pytest.mark.parametrize(
    "change, expected",
    [
        (("y * factor", "y / factor"), -2.0 / 3.0),  # as long as before
        (("factor = 3.0\n", "factor = 3.0\n\n\n"), -6.0),  # other lines
    ],
)
def test_a_changed_source_is_converted_anew(module, conversions, change, expected):
    assert run(module.load()) == EXPECTED
    module.text = module.text.replace(*change)
    for made in (["scaled"], []):
        conversions.clear()
        got = tf.function(module.load()["scaled"])(tf.constant(-2.0))
        assert float(got) == pytest.approx(expected)
        assert conversions == made


def test_another_converter_does_not_find_it(module, conversions, monkeypatch):
    run(module.load())
    conversions.clear()
    monkeypatch.setattr(stored, "_maker", lambda: b"another")
    assert run(module.load()) == EXPECTED
    assert "main" in conversions


def test_the_converter_is_known_by_its_text(monkeypatch, tmp_path):
    before = stored._maker.__wrapped__()
    folder = pathlib.Path(stored.__file__).parent
    for file in folder.glob("*.py"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    monkeypatch.setattr(stored, "__file__", str(tmp_path / "stored.py"))
    assert stored._maker.__wrapped__() == before
    with open(tmp_path / "names.py", "a") as file:
        file.write("#")
    assert stored._maker.__wrapped__() != before
    monkeypatch.setattr(stored, "VERSION", "0")
    assert stored._maker.__wrapped__() != before


def test_nothing_is_kept_by_a_converter_without_source(module, monkeypatch, tmp_path):
    monkeypatch.setattr(stored, "__file__", str(tmp_path / "none" / "stored.pyc"))
    monkeypatch.setattr(stored, "_maker", stored._maker.__wrapped__)
    assert run(module.load()) == EXPECTED
    assert not module.kept.parent.exists()


def test_each_set_of_options_has_its_own(module, conversions):
    module.text = "def main(x):\n    assert x > 0.0, 'low'\n    return x\n"
    feature = tf.autograph.experimental.Feature.ASSERT_STATEMENTS
    for _ in range(2):
        main = module.load()["main"]
        with pytest.raises(tf.errors.OperatorNotAllowedInGraphError):
            tf.function(main)(tf.constant(1.0))
        checked = tf.function(main, experimental_autograph_options=feature)
        with pytest.raises(tf.errors.InvalidArgumentError, match="low"):
            checked(tf.constant(-1.0))
    assert conversions == ["main", "main"]


def test_what_names_mean_is_asked_again(module, conversions):
    module.text = """\
import headrace as tf

if {directive}:
    set_loop_options = tf.autograph.experimental.set_loop_options
else:
    def set_loop_options(maximum_iterations):
        seen.append(maximum_iterations)

seen = []

def main(x):
    while x < 100.0:
        set_loop_options(maximum_iterations=2)
        x = x * 2.0
    return x
"""
    text = module.text

    def value(directive):
        # Both texts are kept as one: only what the name means differs.
        names = module.load()
        if not directive:
            names["set_loop_options"] = lambda maximum_iterations: None
        return float(tf.function(names["main"])(tf.constant(1.0)))

    module.text = text.format(directive=True)
    assert value(True) == 4.0 and value(True) == 4.0
    assert conversions == ["main"]
    assert value(False) == 128.0
    assert value(True) == 4.0
    assert conversions.count("main") == 3


def test_closures_keep_their_cells(module, conversions):
    module.text = """\
def maker(scale):
    def main(x):
        if x > 0.0:
            x = x * scale
        return x
    return main
"""
    for scale in (2.0, 5.0):
        main = module.load()["maker"](scale)
        assert float(tf.function(main)(tf.constant(3.0))) == 3.0 * scale
    assert conversions == ["main"]


def cuts(whole):
    """Some cuts: all are in framework/support/test_sealed_files.py."""
    return [0, 1, 9, 41, 42, 43, 73, 74, 75, len(whole) // 2, len(whole) - 1]


def test_damaged_files_are_made_anew(module, conversions):
    run(module.load())
    whole = module.kept.read_bytes()
    for n in cuts(whole):
        module.kept.write_bytes(whole[:n])
        conversions.clear()
        assert run(module.load()) == EXPECTED
        assert "main" in conversions
        conversions.clear()
        assert run(module.load()) == EXPECTED and conversions == []


def test_another_sources_file_is_not_taken(module, tmp_path):
    other = Module(tmp_path / "other.py", SOURCE.replace("y * factor", "y - factor"))
    assert run(other.load()) != EXPECTED
    run(module.load())
    module.kept.write_bytes(other.kept.read_bytes())
    assert run(module.load()) == EXPECTED


def test_processes_add_to_each_other(module):
    def source():
        return stored._Source(str(module.path), module.text.splitlines())

    first, second = source(), source()  # both find nothing
    first.keep("f", "made by the first")
    first.write()
    second.keep("g", "made by the second")
    second.write()
    third = source()
    assert third.find("f") == "made by the first"
    assert third.find("g") == "made by the second"


def test_nothing_is_written_where_python_writes_nothing(module, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert run(module.load()) == EXPECTED
    assert not module.kept.parent.exists()


def test_the_folder_of_caches_is_pythons(module, monkeypatch, conversions, tmp_path):
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "prefix"))
    run(module.load())
    assert not module.kept.parent.exists()
    assert len(list((tmp_path / "prefix").rglob("*.autograph"))) == 1
    conversions.clear()
    assert run(module.load()) == EXPECTED and conversions == []


def test_nothing_is_kept_where_nothing_can_be_written(module):
    module.kept.parent.write_text("a file in the folder's place")
    for _ in range(2):
        assert run(module.load()) == EXPECTED
    assert module.kept.parent.read_text() == "a file in the folder's place"


def test_a_python_that_keeps_no_code(module, monkeypatch):
    def no_place(path):
        raise NotImplementedError("sys.implementation.cache_tag is None")

    monkeypatch.setattr(importlib.util, "cache_from_source", no_place)
    assert run(module.load()) == EXPECTED
    assert not module.kept.parent.exists()


def test_sources_without_a_file_are_not_kept(module, tmp_path):
    names = {"__name__": "cell"}
    lines = SOURCE.splitlines(keepends=True)
    for filename in ("<cell 1>", str(tmp_path / "cell_1.py")):
        linecache.cache[filename] = len(SOURCE), None, lines, filename
        exec(compile(SOURCE, filename, "exec"), names)
        assert run(names) == EXPECTED
        assert stored._sources[filename] is None
    assert not module.kept.parent.exists()


def test_modules_in_archives_are_not_kept(module, tmp_path, monkeypatch):
    archive = tmp_path / "users.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("zipped_users.py", SOURCE)
    monkeypatch.syspath_prepend(str(archive))
    names = vars(importlib.import_module("zipped_users"))
    assert run(names) == EXPECTED
    assert sorted(p.name for p in tmp_path.iterdir()) == ["users.py", "users.zip"]


def test_files_are_bounded(module, monkeypatch, conversions):
    monkeypatch.setattr(stored, "_MOST", 500)
    for _ in range(2):
        assert run(module.load()) == EXPECTED
    assert not module.kept.exists() and conversions.count("main") == 2


def test_threads_convert_and_write(module):
    results = []

    def work():
        results.append(run(names))

    for _ in range(3):
        names = module.load()
        threads = [threading.Thread(target=work) for _ in range(4)]
        [t.start() for t in threads]
        [t.join() for t in threads]
    assert results == [EXPECTED] * 12


def test_a_script_is_kept_and_found(module):
    module.text += """

if __name__ == "__main__":
    import sys
    from headrace.autograph.conversion import rewriting
    if "found" in sys.argv:
        rewriting.in_scope = None
    print(float(tf.function(main)(tf.constant(-2.0))))
"""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    for argument in ("make", "found"):
        done = subprocess.run(
            [sys.executable, str(module.path), argument],
            capture_output=True,
            text=True,
            env=environment,
        )
        assert done.stdout == "21.0\n" and "AutoGraph" not in done.stderr


def damaged(rng, data):
    """The data with one of several kinds of damage, or two."""
    data = bytearray(data)
    for _ in range(rng.randint(1, 2)):
        at = rng.randrange(len(data) + 1)
        to = min(len(data), at + rng.choice([1, 2, 8, 100, 1000]))
        kind = rng.randrange(5)
        if kind == 0:
            data[at:to] = rng.randbytes(to - at)
        elif kind == 1:
            data[at:at] = rng.randbytes(rng.choice([1, 4, 64]))
        elif kind == 2:
            del data[at:to]
        elif kind == 3:
            del data[at:]
        else:
            data[at:at] = data[rng.randrange(len(data) + 1) :][: to - at]
    return bytes(data)


def test_damage_of_all_kinds_at_random(module, conversions):
    """STORED_CODE_ROUNDS asks for more of it, STORED_CODE_SEED for another."""
    run(module.load())
    whole = module.kept.read_bytes()
    seed = int(os.environ.get("STORED_CODE_SEED", "1"))
    rng = random.Random(seed)
    for i in range(int(os.environ.get("STORED_CODE_ROUNDS", "20"))):
        data = damaged(rng, whole)
        if data == whole:
            continue
        module.kept.write_bytes(data)
        conversions.clear()
        assert run(module.load()) == EXPECTED, (seed, i)
        assert "main" in conversions, (seed, i)
