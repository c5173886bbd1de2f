"""What a version promised holds (docs/compatibility.md)."""

import itertools
import os
import sys

import headrace as tf
import pytest

ROOT = os.path.join(os.path.dirname(__file__), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tools"))
import surface  # noqa: E402


def recorded():
    """[(version, lines)] of the lists, oldest first."""
    lists = []
    for name in os.listdir(surface.FOLDER):
        if not name.endswith(".txt"):  # a folder of TensorFlow's names
            continue
        with open(os.path.join(surface.FOLDER, name), encoding="utf-8") as f:
            version = surface.numbers(name.removesuffix(".txt"))
            lists.append((version, f.read().splitlines()))
    return sorted(lists)


@pytest.fixture(scope="module")
def lines():
    return surface.surface()


def told(breaches):
    return [f"{why}: {' | '.join(lines[:20])}" for why, lines in breaches.items()]


def test_each_version_does_what_it_may(lines):
    versions = [*recorded(), (surface.numbers(tf.version.HEADRACE_VERSION), lines)]
    for (old, before), (new, now) in itertools.pairwise(versions):
        assert not told(surface.breaches(old, before, new, now)), (old, new)


def test_this_tree_could_not_be_a_patch_of_the_newest_list(lines):
    # The check above bites, whatever version the tree has.
    (major, minor, patch), before = recorded()[-1]
    found = surface.breaches(
        (major, minor, patch),
        before,
        (major, minor, patch + 1),
        [*lines, "name tf.an_addition()"],
    )
    assert "name tf.an_addition()" in found["only a new MINOR may add"]


MADE_UP = ["name tf.f(x)", "op A(x: T) -> ()", "name tf.experimental.e()"]


@pytest.mark.parametrize(
    "new, now, wanted",
    [
        # (A version keeps its own promise, too, once its list is there.)
        ("1.2.3", MADE_UP, {}),
        ("1.2.3", [*MADE_UP, "op B() -> ()"], {"MINOR": ["op B() -> ()"]}),
        ("1.2.4", MADE_UP, {}),
        ("1.2.4", [*MADE_UP, "op B() -> ()"], {"MINOR": ["op B() -> ()"]}),
        ("1.2.4", MADE_UP[1:], {"MAJOR": MADE_UP[:1]}),
        (
            "1.2.4",
            ["name tf.f(x, y=1)", MADE_UP[1]],
            {"MINOR": ["name tf.f(x, y=1)"]},
        ),
        ("1.3.0", [*MADE_UP, "op B() -> ()"], {}),
        ("1.3.0", ["name tf.f(x, y=1)", MADE_UP[1]], {}),
        ("1.3.0", MADE_UP[:1], {"MAJOR": [MADE_UP[1]]}),
        ("1.3.0", ["name tf.f(y)", MADE_UP[1]], {"MAJOR": [MADE_UP[0]]}),
        ("2.0.0", ["op B() -> ()"], {}),
        ("1.2.4", [*MADE_UP[:2], "name tf.experimental.new()"], {}),
        # Versions between have lists that are missing; older ones follow nothing.
        ("1.2.5", MADE_UP, {"version": []}),
        ("1.4.0", MADE_UP, {"version": []}),
        ("1.3.1", MADE_UP, {"version": []}),
        ("3.0.0", MADE_UP, {"version": []}),
        ("1.1.9", [], {"version": [], "MAJOR": sorted(MADE_UP[:2])}),
    ],
)
def test_what_a_version_may_do(new, now, wanted):
    found = surface.breaches((1, 2, 3), MADE_UP, surface.numbers(new), now)
    assert len(found) == len(wanted)
    for word, lines in wanted.items():
        assert [v for sentence, v in found.items() if word in sentence] == [lines]


def test_c_functions_and_constants_are_listed():
    header = """
    // TF_CAPI_EXPORT int TF_NotThis(void);
    TF_CAPI_EXPORT extern const char* TF_Version(void);
    TF_CAPI_EXPORT void TF_Set(TF_Graph* graph, const int64_t* dims,
                               unsigned char on, size_t);
    typedef enum TF_Kind { TF_A = 1, TF_B, /* old */ TF_C = 7 } TF_Kind;
    """
    assert surface.c_lines(header) == [
        "symbol TF_Version: const char* (void)",
        "symbol TF_Set: void (TF_Graph*, const int64_t*, unsigned char, size_t)",
        "constant TF_A = 1",
        "constant TF_B = 2",
        "constant TF_C = 7",
    ]
    lines = surface.c_interface()
    assert "constant TF_FLOAT = 1" in lines
    assert any(line.startswith("symbol TF_SessionRun: ") for line in lines)
    named = {line.partition(":")[0] for line in lines if line.startswith("symbol ")}
    assert len(named) == len([x for x in lines if x.startswith("symbol ")])


def test_a_symbol_that_goes_or_changes_breaks_the_promise():
    old = "symbol TF_X: int (TF_Graph*)"
    assert surface.broken([old], {old, "symbol TF_Y: void ()"}) == []
    assert surface.broken([old], set()) == [old]
    assert surface.broken([old], {"symbol TF_X: int (TF_Graph*, int)"}) == [old]


def test_the_version_has_a_release_note():
    version = tf.version.HEADRACE_VERSION
    path = os.path.join(ROOT, "docs", "releases", version + ".md")
    with open(path, encoding="utf-8") as f:
        assert f.readline() == f"# Headrace {version}\n"


def test_parameters_may_be_added_behind_the_others():
    old = "name tf.f(x, y=(1, 2))"
    for now in (old, "name tf.f(x, y=(1, 2), z=3)", "name tf.f(x, y=(1, 2), *, z=[])"):
        assert ("z" in now and "*" in now) or not surface.broken([old], {now})
    for now in (
        "name tf.f(x, y=3)",
        "name tf.f(y=(1, 2), x)",
        "name tf.g(x, y=(1, 2))",
    ):
        assert surface.broken([old], {now}) == [old]
    assert surface.broken([old], {"name tf.f(x, y=(1, 2), z)"}) == [old]
    assert surface.broken(["op A(x: T) -> ()"], {"op A(x: T, y: T) -> ()"})
