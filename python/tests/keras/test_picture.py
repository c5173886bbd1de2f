"""tf.keras.utils.model_to_dot and plot_model: pictures that need no Graphviz."""

import os
import re
import shutil
import xml.etree.ElementTree as ET

import headrace as tf
import pytest

keras, layers = tf.keras, tf.keras.layers
SVG = "{http://www.w3.org/2000/svg}"


def branching():
    a, b = keras.Input([4], name="a"), keras.Input([3], name="b")
    x = layers.Dense(3, activation="relu", name="d")(a)
    y = layers.Concatenate(name="cat")([x, b])
    inner = keras.Sequential(
        [layers.Dense(5, input_shape=(6,), name="one"), layers.Dense(6, name="two")],
        name="inner",
    )
    z = layers.Add(name="add")([inner(y), y])
    w = layers.TimeDistributed(layers.Dense(1), name="td")(
        layers.Reshape((6, 1), name="rs")(z)
    )
    return keras.Model([a, b], [w, x], name="big")


def edges(dot):
    return set(re.findall(r'"([^"]+)" -> "([^"]+)";', dot.to_string()))


def drawn(svg):
    """(texts, [left, top, right, bottom] of each box by its first text, paths)."""
    root = ET.fromstring(svg)
    texts = [t.text for t in root.iter(f"{SVG}text")]
    boxes = {}
    current = None
    for item in root:
        if item.tag == f"{SVG}rect" and item.get("fill") == "white":
            x, y, w, h = (float(item.get(k)) for k in ("x", "y", "width", "height"))
            current = (x, y, x + w, y + h)
        elif item.tag == f"{SVG}text" and current:
            boxes.setdefault(item.text, current)
            current = None
    return texts, boxes, [p.get("d") for p in root.findall(f"{SVG}path")]


def test_layers_are_boxes():
    dot = keras.utils.model_to_dot(branching())
    assert edges(dot) == {
        ("a", "d"),
        ("d", "cat"),
        ("b", "cat"),
        ("cat", "inner"),
        ("inner", "add"),
        ("cat", "add"),
        ("add", "rs"),
        ("rs", "td"),
    }
    assert '"td" [label="{td: TimeDistributed(Dense)}"];' in dot.to_string()
    texts, boxes, paths = drawn(dot.create_svg())
    assert "inner: Sequential" in texts and len(paths) == 8
    # What comes later lies lower; no two boxes overlap.
    assert (
        boxes["a: InputLayer"][3] < boxes["d: Dense"][1] < boxes["cat: Concatenate"][1]
    )
    placed = list(boxes.values())
    for i, p in enumerate(placed):
        for q in placed[i + 1 :]:
            assert p[2] <= q[0] or q[2] <= p[0] or p[3] <= q[1] or q[3] <= p[1]
    assert dot._repr_svg_() == dot.create_svg().decode()


def test_details():
    model = branching()
    model.get_layer("d").trainable = False
    dot = keras.utils.model_to_dot(
        model,
        show_shapes=True,
        show_dtype=True,
        show_layer_activations=True,
        show_trainable=True,
    )
    label = "d: Dense|activation: relu|dtype: float32|input: (None, 4)|"
    label += "output: (None, 3)|not trainable"
    assert label in dot.to_string()
    assert "cat: Concatenate|dtype: float32|input: [(None, 3), (None, 3)]|output" in (
        dot.to_string()
    )
    plain = keras.utils.model_to_dot(model, show_layer_names=False).to_string()
    assert '"d" [label="{Dense}"];' in plain


def test_models_within_models():
    dot = keras.utils.model_to_dot(branching(), expand_nested=True)
    assert {
        ("cat", "inner/one_input"),
        ("inner/one_input", "inner/one"),
        ("inner/one", "inner/two"),
        ("inner/two", "add"),
    } <= edges(dot)
    assert 'subgraph "cluster_inner" {' in dot.to_string()
    assert "inner" in drawn(dot.create_svg())[0]
    part = keras.utils.model_to_dot(branching(), subgraph=True)
    assert part.to_string().startswith('subgraph "cluster_big" {')


@pytest.mark.parametrize(
    "rankdir, place, first",
    [("TB", 1, True), ("BT", 1, False), ("LR", 0, True), ("RL", 0, False)],
)
def test_directions(rankdir, place, first):
    model = keras.Sequential(
        [layers.Dense(2, input_shape=(3,), name="x"), layers.Dense(1, name="y")]
    )
    dot = keras.utils.model_to_dot(model, rankdir=rankdir)
    assert f"rankdir={rankdir};" in dot.to_string()
    _, boxes, _ = drawn(dot.create_svg())
    assert (boxes["x: Dense"][place] < boxes["y: Dense"][place]) == first


def test_some_layers_alone():
    dot = keras.utils.model_to_dot(branching(), layer_range=["d", "inner"])
    assert edges(dot) == {("d", "cat"), ("cat", "inner"), ("b", "cat")}
    with pytest.raises(ValueError, match="do not match the layer names in the model"):
        keras.utils.model_to_dot(branching(), layer_range=["d", "nope"])
    with pytest.raises(ValueError, match="must be of shape"):
        keras.utils.model_to_dot(branching(), layer_range=["d"])


def test_files(tmp_path, caplog, monkeypatch):
    model = branching()
    shown = keras.utils.plot_model(model, tmp_path / "a.svg", show_shapes=True)
    assert "<svg" in shown._repr_svg_()
    assert ET.parse(tmp_path / "a.svg").getroot().tag == f"{SVG}svg"
    keras.utils.plot_model(model, str(tmp_path / "a.dot"))
    assert (tmp_path / "a.dot").read_text().startswith('digraph "G" {')
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(tf.get_logger(), "propagate", True)
    keras.utils.plot_model(model, str(tmp_path / "b.png"))
    assert os.listdir(tmp_path).count("b.svg") == 1
    assert "there is no Graphviz to draw" in caplog.text
    with pytest.raises(OSError, match="wants Graphviz' dot"):
        shown.write(tmp_path / "c.pdf", "pdf")
    wide = keras.utils.model_to_dot(model, dpi=192).create_svg()
    narrow = keras.utils.model_to_dot(model, dpi=96).create_svg()
    widths = [int(ET.fromstring(svg).get("width")) for svg in (wide, narrow)]
    assert widths[0] == pytest.approx(2 * widths[1], abs=1)


def test_other_models():
    with pytest.raises(ValueError, match="This model has not yet been built"):
        keras.utils.model_to_dot(keras.Sequential([layers.Dense(1)]))

    class Own(keras.Model):
        def call(self, x):
            return x

    own = Own(name="own")
    own.build((None, 2))
    assert '"own" [label="{own: Own}"];' in keras.utils.model_to_dot(own).to_string()
    late = keras.Sequential([layers.Dense(1, name="p"), layers.Dense(1, name="<q>")])
    late.build((None, 2))
    assert "&lt;q&gt;: Dense" in keras.utils.model_to_dot(late)._repr_svg_()
    with pytest.raises(ValueError, match="rankdir is one of"):
        keras.utils.model_to_dot(late, rankdir="XX")


def test_notebooks_show_tables():
    model = branching()
    shown = model._repr_html_()
    assert "Functional big" in shown or "Model big" in shown
    for text in ("td", "TimeDistributed", "(None, 6, 1)", "Total params: "):
        assert text in shown
    assert str(model.count_params()) in shown
    assert "not built yet" in keras.Sequential([layers.Dense(1)])._repr_html_()
