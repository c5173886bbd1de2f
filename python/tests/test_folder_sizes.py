"""tools/check_sizes.py refuses folders with many units and no rooms."""

import pathlib

import pytest

TOOLS = pathlib.Path(__file__).parents[2] / "tools"


@pytest.fixture
def crowded(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    import check_sizes

    return lambda paths: list(check_sizes.crowded_folders(paths))


def _units(folder, count, kind=".cc"):
    return [f"{folder}/unit{i}{kind}" for i in range(count)]


@pytest.mark.parametrize(
    "folder, kind",
    [("src/op", ".cc"), ("include/headrace", ".h"), ("python/headrace/ops", ".py")],
)
def test_folders_of_more_than_25_units_need_rooms(crowded, folder, kind):
    assert crowded(_units(folder, 25, kind)) == []
    (text,) = crowded(_units(folder, 26, kind))
    assert text == f"{folder}: 26 units and no rooms, over 25"
    assert crowded([*_units(folder, 26, kind), f"{folder}/room/x{kind}"]) == []


def test_what_belongs_to_a_unit_counts_once(crowded):
    units = _units("src/op", 25)
    parts = [".h", "_loops.h", "_loops.cc", "_test.cc", "_fuzz.cc"]
    more = [path.replace(".cc", part) for path in units for part in parts]
    assert crowded([*units, *more, "src/op/whole_test.cc"]) == []


def test_only_the_product_is_looked_at(crowded):
    packages = [f"python/headrace/data/{name}" for name in ("__init__.py", "a.txt")]
    assert crowded([*packages, *_units("python/headrace/data", 25, ".py")]) == []
    assert crowded(_units("python/tests/ops", 60, ".py")) == []
