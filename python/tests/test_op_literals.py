"""tools/check_layers.py refuses the names of ops in the engine's rooms."""

import pathlib

import pytest

from headrace._load import _headrace

ROOT = pathlib.Path(__file__).parents[2]
_FAMILIES = """
#define HR_HAND(Name, text) \\
  HR_OP(Name).Input("x: T"); \\
  HR_OP(Ref##Name).Input("x: Ref(T)")
#define HR_TWICE(Name) HR_HAND(Name, #Name)
HR_TWICE(Exit)
HR_OP(Cast).Attr("DstT: type");
OpBuilder TableOp(const char* name) { OpBuilder b(name); return b; }
const OpRegistrar table = TableOp<true>("HashTableV2");
"""
_PARTS = """
void Register(const std::string& scale) {
  const std::string name = "SparseSegment" + scale;
  OpBuilder op(name.c_str());
  op.type_attr("SrcT");
}
const bool done = [] { for (auto s : {"Sum", "SqrtN"}) Register(s); }();
"""
_OPS = {"ops/families.cc": _FAMILIES, "ops/parts.cc": _PARTS}


@pytest.fixture
def op_names(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import op_names

    return op_names


@pytest.fixture
def check(op_names, tmp_path):
    """A function: what the check says of these files beside some ops' files."""

    def check(files):
        for name, text in {**_OPS, **files}.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return op_names.check(str(tmp_path))

    return check


def test_the_sources_say_what_is_registered(op_names):
    sources = dict(op_names.sources(str(ROOT / "src")))
    registered = op_names.Registered(sources)
    ops = _headrace.op_names()
    assert [name for name in ops if name not in registered] == []
    assert set().union(*registered.of_file.values()) <= set(ops)
    words = ("DstT", "Tout", "Tin", "GradientDescent2", "Headrace", "SparseSum")
    assert [word for word in words if word in registered] == []


@pytest.mark.parametrize(
    "name",
    [
        "Exit",
        "RefExit",
        "Cast",
        "HashTableV2",
        "SparseSegmentSum",
        "SparseSegmentSqrtNV2",
    ],
)
@pytest.mark.parametrize(
    "path, text",
    [
        ("graph/a.cc", 'if (op.name() == "{}") return;'),
        ("op/a.h", 'static const auto* all = new Set{{"{}"}};'),
        ("eager/a.cc", 'return n->name() == "{}" ? s("Cast") : x;'),
        ("bind/a.cc", 'Row rows[] = {{{{"{}", "x"}}}};'),
        ("autodiff/a.cc", 's(x, "{}");'),
        ("graph/import.cc", 'LookUpOp("{}");'),
    ],
)
def test_names_that_ask_are_refused(check, path, text, name):
    _, faults = check({path: "\n" + text.format(name)})
    assert faults == [f'src/{path}:2: names the op "{name}"']


@pytest.mark.parametrize(
    "text",
    [
        'x = n->def().name.find("Sav") > 0;',
        'return absl::StartsWith(call.op->name(),\n"Sav");',
        'if (op.name().ends_with("Sav")) {}',
    ],
)
def test_parts_of_names_are_refused(check, text):
    line = text.count("\n") + 1
    said = f'src/graph/a.cc:{line}: asks an op\'s name for "Sav"'
    assert check({"graph/a.cc": text}) == (0, [said])


@pytest.mark.parametrize(
    "path, text, emitted",
    [
        ("autodiff/a.cc", 's("Cast", {x}); g.All("Exit", {x}); (*this)("Cast");', 3),
        ("autodiff/a.cc", 'g.All(f == "x" ? "Exit" : "RefExit", in);', 2),
        ("graph/builder.cc", 'LookUpOp(a(b, c) ? "Cast"\n : "Exit");', 2),
        ("bind/call/operators.cc", 'Op x{"Cast", "c"}, y[] = {{"Exit", "e"}};', 2),
        ("graph/a.cc", '// "Cast"\n/* "Exit" */ f(", \\"Cast\\""); g("DstT");', 0),
        ("graph/a_test.cc", 'FindOp("Cast");', 0),
        ("ops/a.cc", 's("Cast");', 0),
        ("runtime/own.cc", 'HR_OP(Merge).Doc("m"); f("Merge");', 0),
    ],
)
def test_names_where_ops_are_emitted_or_defined_are_free(check, path, text, emitted):
    assert check({path: text}) == (emitted, [])
