"""tf.print."""

import sys

from headrace import _names
from headrace._load import _headrace, raw
from headrace.context import stack
from headrace.framework import nest

_STREAMS = ("stdout", "stderr", "log(info)", "log(warning)", "log(error)")


def _stream(output_stream):
    if output_stream is sys.stdout:
        return "stdout"
    if output_stream is sys.stderr or output_stream is None:
        return "stderr"
    if isinstance(output_stream, str):
        if output_stream.startswith("file://"):
            return output_stream
        if output_stream in _STREAMS:
            return output_stream
    names = {"sys.stdout": "stdout", "sys.stderr": "stderr"}
    if output_stream in names:
        return names[output_stream]
    raise ValueError(
        "Unsupported output stream, logging level, or file."
        f"{output_stream}. Supported streams are sys.stdout, sys.stderr, "
        "tf.logging.info, tf.logging.warning, tf.logging.error. "
        "File needs to be in the form of 'file://<filepath>'."
    )


_PLACEHOLDER = "\x01{}\x01"


class _Template:
    """Text with placeholders, and the tensors that they stand for."""

    def __init__(self):
        self.text, self.tensors = [], []

    def add(self, value, nested):
        if isinstance(value, _headrace.VariableBase):
            value = value._read()
        components = getattr(value, "_print_parts", None)
        if isinstance(value, _headrace.Tensor) or _is_ragged(value):
            self.text.append(_PLACEHOLDER)
            self.tensors.append(value)
        elif components is not None:
            for part in components():
                self.add(part, nested=True) if not isinstance(
                    part, str
                ) else self.text.append(part)
        elif nest.is_nested(value):
            self._add_structure(value)
        elif isinstance(value, str) and not nested:
            self.text.append(value)
        else:
            self.text.append(repr(value))

    def _add_structure(self, value):
        if nest._is_dict(value):
            self.text.append("{")
            for i, key in enumerate(nest.sorted_keys(value)):
                self.text.append(("" if i == 0 else ", ") + f"{key!r}: ")
                self.add(value[key], nested=True)
            self.text.append("}")
            return
        names = getattr(value, "_fields", None)
        opening, closing = ("[", "]") if isinstance(value, list) else ("(", ")")
        if names:
            opening = type(value).__name__ + "("
        self.text.append(opening)
        for i, item in enumerate(value):
            if i:
                self.text.append(", ")
            if names:
                self.text.append(f"{names[i]}=")
            self.add(item, nested=True)
        if isinstance(value, tuple) and not names and len(value) == 1:
            self.text.append(",")
        self.text.append(closing)


def _usual(text):
    """The text with the usual placeholder, unless it has such characters itself."""
    parts = text.split(_PLACEHOLDER)
    if any("{}" in part for part in parts):
        return text, _PLACEHOLDER
    return "{}".join(parts), "{}"


def _is_ragged(value):
    return getattr(type(value), "_is_ragged", False)


def _format(inputs, template, placeholder, summarize, name):
    if any(_is_ragged(x) for x in inputs):
        return _names.public("strings.format")(
            template, inputs, placeholder, summarize, name
        )
    return _headrace.raw_op("StringFormat")(
        inputs=inputs,
        template=template,
        placeholder=placeholder,
        summarize=summarize,
        name=name,
    )


def print_v2(*inputs, **kwargs):
    """Prints values and tensors, when the op runs."""
    output_stream = kwargs.pop("output_stream", sys.stderr)
    name = kwargs.pop("name", None)
    summarize = kwargs.pop("summarize", 3)
    sep = kwargs.pop("sep", " ")
    end = kwargs.pop("end", "\n")
    if kwargs:
        raise ValueError(f"Unrecognized keyword arguments for tf.print: {kwargs}")
    template = _Template()
    for i, value in enumerate(inputs):
        if i:
            template.text.append(sep)
        template.add(value, nested=False)
    text = "".join(template.text)
    stream = _stream(output_stream)
    # One string tensor alone is printed as it is, not as an element.
    single = len(inputs) == 1 and isinstance(inputs[0], _headrace.Tensor)
    if single and inputs[0].dtype.name == "string" and inputs[0].shape.rank == 0:
        formatted = inputs[0]
    elif template.tensors:
        formatted = _format(
            template.tensors,
            *_usual(text),
            summarize=summarize,
            name=None if name is None else f"{name}_format",
        )
    else:
        formatted = _headrace.to_tensor(text)
    if stream in ("stdout", "stderr"):
        getattr(sys, stream).flush()
    raw.PrintV2(formatted, output_stream=stream, end=end, name=name)
    graph = stack.current()
    return None if graph is None else graph._last_operation()
