"""tf.keras.utils.model_to_dot and plot_model: pictures of models."""

import os
import re
import shutil
import subprocess

from headrace import _api as tf
from headrace.framework.settings import logging
from headrace.keras.base.keras_tensor import call_of
from headrace.keras.engine import summary
from headrace.keras.engine.layout import Box, Picture
from headrace.keras.engine.sequential import Sequential

_NOT_BUILT = (
    "This model has not yet been built. Build the model first by calling `build()` or by "
    "calling the model on a batch of data."
)
_RANKDIRS = ("TB", "LR", "BT", "RL")


def _shapes(tensors):
    """Shapes as text: one, or a list of several."""
    shapes = [tuple(x.shape.as_list()) for x in tf.nest.flatten(tensors)]
    return str(shapes[0] if len(shapes) == 1 else shapes)


class _Collector:
    """The boxes of layers, the lines between them, and where a model begins and ends."""

    def __init__(self, how):
        self._how = how
        self.boxes, self.lines = [], []

    def add(self, model, group=(), prefix=""):
        """Draws a model's layers; ([key of each input's box], [of each output's])."""
        network = getattr(model, "_layer_graph", None)
        if network is None:
            return self._chain(model, group, prefix)
        ends = {}  # {id of a node: its box's key, or those of a model that is drawn}
        for node in network.nodes:
            ends[id(node)] = self._layer(node, ends, group, prefix)
        first = [ends[id(call_of(x))][0][0] for x in network.flat_inputs]
        last = [
            ends[id(call_of(x))][1][0]
            for x in network.flat_outputs
            if ends[id(call_of(x))][1]
        ]
        return [k for k in first if k], last

    def _chain(self, model, group, prefix):
        """The layers of a Sequential that knows no shapes, each after the other."""
        keys = []
        for layer in model.layers:
            keys.append(prefix + layer.name)
            self.boxes.append(Box(keys[-1], self._text(layer), group))
        self.lines += list(zip(keys, keys[1:]))
        return keys[:1], keys[-1:]

    def _layer(self, node, ends, group, prefix):
        layer = node.layer
        parents = [end for x in node.parents for end in ends[id(call_of(x))][1]]
        chosen = self._how["chosen"]
        if chosen is not None and not group and layer not in chosen:
            return [None], []
        if self._how["expand_nested"] and getattr(layer, "_layer_graph", None):
            first, last = self.add(
                layer, (*group, layer.name), f"{prefix}{layer.name}/"
            )
            self.lines += (
                list(zip(parents, first))
                if len(first) == len(parents)
                else [(parent, key) for parent in parents for key in first]
            )
            return first, last
        key = prefix + layer.name
        if all(box.key != key for box in self.boxes):
            self.boxes.append(Box(key, self._text(layer, node), group))
        self.lines += [(parent, key) for parent in parents]
        return [key], [key]

    def _text(self, layer, node=None):
        how, kind = self._how, type(layer).__name__
        inner = getattr(layer, "layer", None)
        if inner is not None and isinstance(inner, tf.keras.layers.Layer):
            kind += f"({type(inner).__name__})"
        lines = [f"{layer.name}: {kind}" if how["show_layer_names"] else kind]
        activation = getattr(layer, "activation", None)
        if how["show_layer_activations"] and activation is not None:
            lines.append(f"activation: {getattr(activation, '__name__', activation)}")
        if how["show_dtype"]:
            lines.append(f"dtype: {layer.dtype or '?'}")
        if how["show_shapes"]:
            given = [x for x in node.parents] if node is not None else []
            out = _shapes(node.outputs) if node is not None else "?"
            lines.append(f"input: {_shapes(given) if given else out}")
            lines.append(f"output: {out}")
        if how["show_trainable"] and layer.weights:
            lines.append("trainable" if layer.trainable else "not trainable")
        return lines


def _chosen(model, layer_range):
    """The layers between two whose names patterns fit, or None for all."""
    if not layer_range:
        return None
    if len(layer_range) != 2 or not all(isinstance(p, str) for p in layer_range):
        raise ValueError(
            "layer_range must be of shape (2,) with two strings. Received: "
            f"layer_range={layer_range}"
        )
    return summary.between(model, layer_range)


class Dot:
    """A model's graph: as text of the language of Graphviz, and as a picture.

    In notebooks it shows itself; `create_svg` and `write` draw without Graphviz, but for
    formats other than "dot" and "svg", which take its program `dot`.
    """

    def __init__(self, name, boxes, lines, rankdir, dpi, subgraph):
        self.name, self._boxes, self._lines = name, boxes, lines
        self._rankdir, self._dpi, self._subgraph = rankdir, dpi, subgraph

    def to_string(self):
        """The graph in the language of Graphviz."""
        kind = "subgraph" if self._subgraph else "digraph"
        name = f"cluster_{self.name}" if self._subgraph else "G"
        out = [
            f"{kind} {_quoted(name)} {{",
            f"rankdir={self._rankdir};",
            "concentrate=True;",
            f"dpi={self._dpi};",
            "node [shape=record];",
        ]
        if self._subgraph:
            out.insert(1, f"label={_quoted(self.name)};")
        out += _dot_boxes(self._boxes, ())
        out += [f"{_quoted(a)} -> {_quoted(b)};" for a, b in dict.fromkeys(self._lines)]
        return "\n".join([*out, "}", ""])

    def create_svg(self):
        """The picture as an SVG document, bytes."""
        across, backward = self._rankdir in ("LR", "RL"), self._rankdir in ("BT", "RL")
        made = Picture(self._boxes, self._lines, across, backward)
        return made.svg(self._dpi).encode()

    def _repr_svg_(self):
        return self.create_svg().decode()

    def write(self, path, format="svg"):  # noqa: A002  (the field's name of it)
        """Writes a file: "dot", "svg", or what Graphviz' program can; True. OSError
        where that is not there."""
        data = self.create_svg() if format == "svg" else self.to_string().encode()
        if format not in ("svg", "dot"):
            program = shutil.which("dot")
            if program is None:
                raise OSError(f"a picture of format {format!r} wants Graphviz' dot")
            done = subprocess.run(
                [program, f"-T{format}"], input=data, capture_output=True, check=True
            )
            data = done.stdout
        with open(path, "wb") as file:
            file.write(data)
        return True


def _quoted(text):
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _dot_boxes(boxes, group):
    """Nodes of a group, and its groups as clusters."""
    inner = dict.fromkeys(
        box.group[: len(group) + 1]
        for box in boxes
        if len(box.group) > len(group) and box.group[: len(group)] == group
    )
    for box in boxes:
        if box.group == group:
            text = re.sub(r"([{}|<>\"\\])", r"\\\1", "\n".join(box.lines))
            label = "{" + text.replace("\n", "|") + "}"
            yield f'{_quoted(box.key)} [label="{label}"];'
    for name in inner:
        yield f"subgraph {_quoted('cluster_' + '/'.join(name))} {{"
        yield f"label={_quoted(name[-1])};"
        yield from _dot_boxes(boxes, name)
        yield "}"


def model_to_dot(
    model,
    show_shapes=False,
    show_dtype=False,
    show_layer_names=True,
    rankdir="TB",
    expand_nested=False,
    dpi=96,
    subgraph=False,
    layer_range=None,
    show_layer_activations=False,
    show_trainable=False,
):
    """A model's layers and how they are connected: an object whose to_string() is text
    for Graphviz and whose create_svg() is a picture.

    `rankdir`: "TB" from top to bottom, "LR" from left to right, "BT" and "RL" the other
    way; `expand_nested` draws the layers of models within the model, `subgraph` gives
    text for a part of another graph; `layer_range`: patterns of the names of the first
    and the last layer to draw. ValueError for a model that is not built and for names
    that no layer has.
    """
    if not model.built:
        raise ValueError(_NOT_BUILT)
    if rankdir not in _RANKDIRS:
        raise ValueError(f"rankdir is one of {_RANKDIRS}, got {rankdir!r}")
    how = {
        "show_shapes": show_shapes,
        "show_dtype": show_dtype,
        "show_layer_names": show_layer_names,
        "expand_nested": expand_nested,
        "show_layer_activations": show_layer_activations,
        "show_trainable": show_trainable,
        "chosen": _chosen(model, layer_range),
    }
    made = _Collector(how)
    if getattr(model, "_layer_graph", None) is None and not isinstance(
        model, Sequential
    ):
        made.boxes.append(Box(model.name, [f"{model.name}: {type(model).__name__}"]))
    else:
        made.add(model)
    return Dot(model.name, made.boxes, made.lines, rankdir, dpi, subgraph)


def plot_model(
    model,
    to_file="model.png",
    show_shapes=False,
    show_dtype=False,
    show_layer_names=True,
    rankdir="TB",
    expand_nested=False,
    dpi=96,
    layer_range=None,
    show_layer_activations=False,
    show_trainable=False,
):
    """Writes a picture of a model; what a notebook shows is returned.

    `to_file`: a path, whose end names the format. "svg" and "dot" need nothing else;
    others want Graphviz' program `dot`: where that is not there, a file that ends in
    "svg" is written instead, and a warning says so. The other parameters are
    model_to_dot's.
    """
    dot = model_to_dot(
        model,
        show_shapes=show_shapes,
        show_dtype=show_dtype,
        show_layer_names=show_layer_names,
        rankdir=rankdir,
        expand_nested=expand_nested,
        dpi=dpi,
        layer_range=layer_range,
        show_layer_activations=show_layer_activations,
        show_trainable=show_trainable,
    )
    path, end = os.path.splitext(os.fspath(to_file))
    kind = end.removeprefix(".").lower() or "png"
    if kind not in ("svg", "dot") and shutil.which("dot") is None:
        logging.warn(
            "plot_model: there is no Graphviz to draw %s; %s.svg is written",
            to_file,
            path,
        )
        end, kind = ".svg", "svg"
    dot.write(path + (end or f".{kind}"), kind)
    return dot
