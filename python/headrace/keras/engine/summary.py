"""The table that Model.summary prints."""

import itertools
import math
import re

from headrace import _api as tf
from headrace.framework.support import markup
from headrace.keras.base.keras_tensor import call_of, history
from headrace.keras.base.tracking import unique
from headrace.keras.engine import functional
from headrace.keras.engine.input_layer import InputLayer


def _size(count):
    """(value, unit) of so many bytes, as 132.00 Byte."""
    units = ["Byte", "KB", "MB", "GB", "TB", "PB"]
    power = 0 if not count else min(int(math.log(count, 1024)), len(units) - 1)
    return f"{count / 1024**power:.2f} {units[power]}"


def _shape_text(layer):
    """What is shown as a layer's output shape."""
    if layer.inbound_nodes:
        outputs = layer.inbound_nodes[0].outputs
        if isinstance(layer, InputLayer):
            outputs = tf.nest.flatten(outputs)
        shapes = tf.nest.map_structure(lambda x: tuple(x.shape.as_list()), outputs)
        return str(shapes)
    try:
        shape = layer.output_shape
        several = isinstance(shape, (list, dict)) and tf.nest.flatten(shape) != shape
        return str(shape if several else tuple(shape))
    except AttributeError:
        return "multiple" if layer.built else "?"


class _Table:
    """Rows of cells in columns that end at `positions`; `depth` says in how many models
    a layer lies, each of which has a frame."""

    def __init__(self, positions, out):
        self._positions, self._out = positions, out

    def _pieces(self, cell, column, depth):
        """A cell's lines: text that is too long goes on below, and so do the parts of
        lists, tuples and dicts."""
        last = column == len(self._positions) - 1
        start = self._positions[column - 1] if column else depth
        # Two blanks end a column, and one begins the row or the next column.
        room = max(self._positions[column] - start - (0 if last else 3), 1)
        text, out = str(cell), []
        while text:
            end = _END_OF_PART.search(text[:room])
            size = end.end() if end else room
            out.append(text[:size])
            text = text[size:]
        return out

    def row(self, cells, depth=0):
        columns = [self._pieces(c, i, depth) for i, c in enumerate(cells)]
        for lines in itertools.zip_longest(*columns, fillvalue=""):
            text = "|" * depth + " "
            for end, piece in zip(self._positions, lines):
                text = (text + piece).ljust(end)
            self._out(_framed(text, depth))

    def line(self, what, depth):
        width = self._positions[-1]
        self._out("|" * depth + what * (width - 2 * depth) + "|" * depth)

    def gap(self, depth=0):
        self._out(_framed("|" * depth + " " * (self._positions[-1] - depth), depth))


_END_OF_PART = re.compile(r"[)}\]'],")


def _framed(text, depth):
    return text[: len(text) - depth] + "|" * depth


def between(model, names):
    """The layers from one to another, whose names two patterns fit at their begin;
    ValueError where one fits none."""
    fits = [
        [i for i, layer in enumerate(model.layers) if re.match(name, layer.name)]
        for name in names
    ]
    if not all(fits):
        raise ValueError(
            "Passed layer_names do not match the layer names in the model. Received: "
            f"{names}"
        )
    return model.layers[min(fits[0] + fits[1]) : max(fits[0] + fits[1]) + 1]


def _shown(model, layer_range):
    if layer_range is None:
        return model.layers
    if len(layer_range) != 2:
        raise ValueError(
            "layer_range must be a list or tuple of length 2. Received: layer_range = "
            f"{layer_range} of length {len(layer_range)}"
        )
    if not all(isinstance(name, str) for name in layer_range):
        raise ValueError(
            f"layer_range should contain string type only. Received: {layer_range}"
        )
    return between(model, layer_range)


def show(
    model, line_length, positions, out, expand_nested, show_trainable, layer_range=None
):
    """Prints the layers, their outputs' shapes and numbers of weights."""
    layers = _shown(model, layer_range)
    out = out or print
    connected = not _is_sequential_like(model)
    if line_length is None:
        line_length = 98 if connected else 65
    shares = positions or ((0.3, 0.6, 0.7, 1.0) if connected else (0.45, 0.85, 1.0))
    columns = [int(line_length * p) if p <= 1 else int(p) for p in shares]
    heads = ["Layer (type)", "Output Shape", "Param #"]
    if connected:
        heads.append("Connected to")
    if show_trainable:
        line_length += 11
        columns.append(line_length)
        heads.append("Trainable")
    out(f'Model: "{model.name}"')
    out("_" * line_length)
    table = _Table(columns, out)
    table.row(heads)
    out("=" * line_length)
    model_of = model if connected else None
    for layer in layers:
        _layer(layer, table, model_of, show_trainable)
        if expand_nested and getattr(layer, "layers", None):
            _inner(layer, table, model_of, show_trainable, 1)
        else:
            table.gap()
    out("=" * line_length)
    _totals(model, out)
    out("_" * line_length)


def _inner(model, table, connected_in, show_trainable, depth):
    """The layers of a model within the one that is shown, in a frame."""
    table.line("¯", depth)
    for i, layer in enumerate(model.layers):
        _layer(layer, table, connected_in, show_trainable, depth)
        if getattr(layer, "layers", None):
            _inner(layer, table, connected_in, show_trainable, depth + 1)
        elif i + 1 < len(model.layers):
            table.gap(depth)
    table.line("¯", depth - 1)


def _layer(layer, table, connected_in, show_trainable, depth=0):
    """A layer's row; with what it is connected to in a model, unless that is None."""
    cells = [
        f"{layer.name} ({type(layer).__name__})",
        _shape_text(layer),
        _count(layer),
    ]
    if connected_in is not None:
        cells.append("[]" if depth else _inbound(layer, connected_in))
    if show_trainable:
        cells.append("Y" if layer.trainable else "N")
    table.row(cells, depth)


def _count(layer):
    if not layer.built:
        return "0 (unused)"
    return layer.count_params()


def _inbound(layer, model):
    """The tensors that a layer is called with, as ['name[0][0]']."""
    inside = {id(n) for n in model._layer_graph.nodes}
    found = []
    for node in layer.inbound_nodes:
        if id(node) in inside:
            found.extend(
                f"{history(x)[0].name}[{history(x)[1]}][{history(x)[2]}]"
                for x in node.parents
            )
    return str(found)


def _is_sequential_like(model):
    """True for models whose layers follow each other, or are not connected."""
    if isinstance(model, tf.keras.Sequential) or not isinstance(
        model, functional.Functional
    ):
        return True
    return _single_chain(model._layer_graph)


def _single_chain(network):
    parents = [len({id(call_of(x)) for x in n.parents}) for n in network.nodes]
    layers = [id(n.layer) for n in network.nodes]
    users = {}
    for node in network.nodes:
        for x in node.parents:
            users.setdefault(id(call_of(x)), set()).add(id(node))
    return (
        all(n <= 1 for n in parents)
        and len(set(layers)) == len(layers)
        and all(len(u) <= 1 for u in users.values())
        and len(network.flat_inputs) == 1
    )


def _counts(model):
    """(what, how many numbers, how many bytes) of the weights, by kind."""
    trainable = unique(model.trainable_weights)
    frozen = unique(model.non_trainable_weights)
    for name, weights in (
        ("Total params", trainable + frozen),
        ("Trainable params", trainable),
        ("Non-trainable params", frozen),
    ):
        count = sum(w.shape.num_elements() for w in weights)
        yield name, count, sum(w.shape.num_elements() * w.dtype.size for w in weights)


def _totals(model, out):
    for name, count, size in _counts(model):
        out(f"{name}: {count} ({_size(size)})")


def as_html(model):
    """The table for notebooks."""
    title = f"{type(model).__name__} {model.name}"
    if not model.built:
        return markup.table(title, (), (), "not built yet")
    rows = [(x.name, type(x).__name__, _shape_text(x), _count(x)) for x in model.layers]
    heads = ("layer", "type", "output shape", "params")
    note = ", ".join(f"{name}: {count}" for name, count, _ in _counts(model))
    return markup.table(title, heads, rows, note)
