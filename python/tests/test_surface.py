"""What a version promised holds (docs/compatibility.md)."""

import os
import sys

import headrace as tf
import pytest

ROOT = os.path.join(os.path.dirname(__file__), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tools"))
import surface  # noqa: E402


def numbers(version):
    return tuple(int(part) for part in version.split("."))


def newest():
    """(version, lines) of the newest list."""
    found = [name.removesuffix(".txt") for name in os.listdir(surface.FOLDER)]
    version = max(found, key=numbers)
    with open(os.path.join(surface.FOLDER, version + ".txt"), encoding="utf-8") as f:
        return numbers(version), f.read().splitlines()


def promised(lines):
    return [x for x in lines if not x.startswith("name tf.experimental.")]


@pytest.fixture(scope="module")
def lines():
    return surface.surface()


def test_what_was_promised_holds(lines):
    (major, _, _), before = newest()
    if numbers(tf.version.HEADRACE_VERSION)[0] > major:
        return
    gone = surface.broken(promised(before), set(lines))
    assert not gone, "only a new MAJOR may remove or change:\n" + "\n".join(gone[:20])


def test_what_is_new_has_a_minor_of_its_own(lines):
    version, before = newest()
    if numbers(tf.version.HEADRACE_VERSION)[:2] > version[:2]:
        return
    new = sorted(set(promised(lines)) - set(before))
    assert not new, "only a new MINOR may add:\n" + "\n".join(new[:20])


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
