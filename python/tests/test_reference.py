"""The reference (tools/reference.py) has an entry of every public name of Python and of
the C++ headers, and its links lead to one."""

import functools
import os
import re
import sys

import headrace as tf
import pytest

ROOT = os.path.join(os.path.dirname(__file__), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tools"))
import headers
import reference
import stubs

ANCHOR = re.compile(r'<a id="([^"]+)">')
FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("reference") / "pages"
    reference.write(tf, str(made))
    return made


@functools.cache
def text_of(path):
    return path.read_text(encoding="utf-8")


@functools.cache
def anchors(path):
    return ANCHOR.findall(text_of(path))


def entry(path, name):
    """What a page says under the heading of a name."""
    text = text_of(path).split(f'<a id="{name}"></a>', 1)[1]
    return re.split(r"^##", text, maxsplit=1, flags=re.MULTILINE)[0]


def test_every_public_name_has_an_entry(folder):
    spaces = stubs.namespaces(tf)
    assert len(list((folder / "python").iterdir())) == len(spaces)
    for path, space in spaces.items():
        wanted = [n for n in stubs.names_of(space) if stubs.get(space, n) is not None]
        found = anchors(folder / "python" / reference.page_of(path))
        assert [n for n in wanted if n not in found] == [], path


def test_names_stand_once_on_a_page(folder):
    for page in folder.rglob("*.md"):
        assert len(set(anchors(page))) == len(anchors(page)), page.name


def test_links_lead_somewhere(folder):
    count = 0
    for page in folder.rglob("*.md"):
        for target in re.findall(
            r"(?<!\\)\]\(([^)]+)\)", FENCED.sub("", text_of(page))
        ):
            file, _, name = target.partition("#")
            other = (page.parent / file).resolve()
            assert other.exists(), (page.name, target)
            assert not name or name in anchors(other), (page.name, target)
            count += 1
    assert count > 3500


def test_every_page_is_in_the_index(folder):
    linked = re.findall(r"\]\(([^)]+)\)", text_of(folder / "index.md"))
    pages = {p.relative_to(folder).as_posix() for p in folder.rglob("*.md")}
    assert sorted(linked) == sorted(pages - {"index.md"})


def test_functions_say_what_they_take_and_what_else_they_are_called(folder):
    told = entry(folder / "python/tf.md", "concat")
    assert "```python\ntf.concat(values, axis, name='concat')\n```" in told
    assert tf.concat.__doc__.split(".")[0] in told
    assert "\nAlso `tf.compat.v1.concat`.\n" in told
    alias = text_of(folder / "python/tf.math.md")
    assert '- <a id="add"></a>`add`: [tf.add](tf.md#add)\n' in alias


def test_classes_have_their_bases_and_methods(folder):
    page = folder / "python/tf.keras.layers.md"
    told = entry(page, "Dense")
    assert "class tf.keras.layers.Dense(units, activation=None," in told
    assert re.search(r"A \[tf\.keras\.layers\.Layer\]\(tf\.\S+\.md#Layer\)\.", told)
    data = folder / "python/tf.data.md"
    told = entry(data, "Dataset.map")
    assert "`Dataset.map(self, map_func, num_parallel_calls=None," in told
    assert len(told.splitlines()) > 2
    assert "#### " + '<a id="Dataset.element_spec"></a>' in text_of(data)


def test_values_and_namespaces(folder):
    root = text_of(folder / "python/tf.md")
    assert '- <a id="float32"></a>`float32` = `tf.float32`, a DType' in root
    assert '- <a id="math"></a>`math`: [tf.math](tf.math.md)' in root
    # tf.losses is another name of tf.keras.losses.
    assert re.search(r'<a id="losses"></a>`losses`: \[tf\.(keras\.)?losses\]', root)


def test_headers_have_what_leaves_the_library(folder):
    for path in reference.header_paths():
        with open(os.path.join(reference.INCLUDE, path), encoding="utf-8") as file:
            source = file.read()
        # (Members of classes stand further in.)
        names = re.findall(r"^(?:class|struct) HR_API (\w+) ", source, re.MULTILINE)
        names += re.findall(r"^HR_API [\w:<>&* ]*?(\w+)\(", source, re.MULTILINE)
        names += re.findall(r"\bTF_CAPI_EXPORT [\w* ]*?(\w+)\(", source)
        hidden = re.findall(
            r"^namespace internal {(.*?)^}  // namespace internal",
            source,
            re.DOTALL | re.M,
        )
        names = [n for n in names if not any(re.search(rf"\b{n}\b", h) for h in hidden)]
        found = anchors(folder / f"cc/{path}.md")
        assert [n for n in names if n not in found] == [], path


def test_a_header_s_page_has_its_comments(folder):
    page = folder / "cc/tape.h.md"
    assert "# headrace/tape.h\n\nGradients by recording: tf.GradientTape.\n" in text_of(
        page
    )
    told = entry(page, "GradientTape")
    assert "Records what is computed on this thread while it lives" in told
    assert "  void watch(const Tensor& t);\n" in told
    assert "private" not in told
    assert "State" not in told
    assert "std::string DTypeName(DType dtype);" in text_of(folder / "cc/tensor.h.md")


HEADER = """// What it is about.
//   Code();
#pragma once

namespace a {
namespace internal {
int Hidden(int x);
}
// Of both.
HR_API int F(int x = {1});
HR_API int F(float x);  // slower

// A class of T.
template <typename T>
class HR_API C : public B<T> {
 public:
  explicit C(int x) : B<T>(x), y_{x} {}  // NOLINT
  // In braces: "}".
  int Y() const { return y_ ? '}' : 0; }

 protected:
  virtual void V() = 0;

 private:
  int y_ = 0;
};

enum class E { kA, kB };
using Short = C<int>;
}  // namespace a
"""


def test_what_is_read_of_a_header():
    head, (f, c, e, short) = headers.read(HEADER)
    assert head == "What it is about.\n  Code();"
    assert f == (
        ["F", "F"], "F", "Of both.", "int F(int x = {1});\nint F(float x);  // slower"
    )  # fmt: skip
    assert c[:3] == (["C"], "class C", "A class of T.")
    assert c.code == (
        "template <typename T>\nclass C : public B<T> {\n public:\n  explicit C(int x);\n"
        '  // In braces: "}".\n  int Y() const;\n protected:\n  virtual void V() = 0;\n};'
    )
    assert e == (["E"], "enum E", "", "enum class E { kA, kB };")
    assert short == (["Short"], "Short", "", "using Short = C<int>;")


def test_text_is_no_markup():
    assert reference.escaped("a*b <T> `x*y` [1]") == r"a\*b \<T\> `x*y` \[1\]"
    assert reference.prose("Of x_y:\n\n    f(*x)\n\nAnd on.") == (
        "Of x\\_y:\n\n\n```\n    f(*x)\n```\n\nAnd on.\n"
    )
