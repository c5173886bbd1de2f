"""Ops that open files say so (tools/check_reach.py)."""

import pathlib

import pytest

TOOLS = pathlib.Path(__file__).parents[2] / "tools"


@pytest.fixture
def check_reach(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    import check_reach

    return check_reach


def test_the_sources_say_what_their_ops_touch(check_reach, capsys):
    assert check_reach.main() == 0, capsys.readouterr().out


def test_files_that_say_nothing_are_found(check_reach):
    opens = '#include "base/files/files.h"\n'
    assert check_reach.silent(opens + "HR_OP(Peek).Stateful()")
    assert not check_reach.silent(opens + "HR_OP(Peek).Traits({kReadsFiles})")
    assert not check_reach.silent(opens + "int Help();")
    assert not check_reach.silent("HR_OP(Add)")
