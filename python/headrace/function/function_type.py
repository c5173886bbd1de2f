"""The signature of a function: its parameters, their types, the results'."""

import inspect

from headrace.framework.type_spec import TensorSpec
from headrace.function import trace_types

P = inspect.Parameter


class FreelyNamed(P):
    """A parameter whose name need not be one of Python's: files have others too."""

    __slots__ = ("_free_name",)

    def __init__(self, name, kind, default=P.empty):
        super().__init__("x", kind, default=default)
        self._free_name = name

    name = property(lambda self: self._free_name)


_KINDS = {
    P.POSITIONAL_ONLY: 0,
    P.POSITIONAL_OR_KEYWORD: 1,
    P.VAR_POSITIONAL: 2,
    P.KEYWORD_ONLY: 3,
    P.VAR_KEYWORD: 4,
}


class Parameters:
    """What a Python function takes, as the native call sees it."""

    def __init__(self, python_function):
        try:
            found = list(inspect.signature(python_function).parameters.values())
        except (TypeError, ValueError):
            found = [P("args", P.VAR_POSITIONAL), P("kwargs", P.VAR_KEYWORD)]
        self.parameters = found
        self.signature = inspect.Signature(self.parameters)

    @classmethod
    def of(cls, parameters):
        """Of these inspect.Parameters."""
        made = cls.__new__(cls)
        made.parameters = parameters
        made.signature = inspect.Signature(parameters)
        return made

    def native_rows(self):
        return [
            (p.name, _KINDS[p.kind], None if p.default is P.empty else (p.default,))
            for p in self.parameters
        ]

    def slots(self, args, kwargs):
        """One value a parameter; TypeError as inspect words it."""
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return tuple(bound.arguments[p.name] for p in self.parameters)

    def as_called(self, slots):
        """(args, kwargs) of one value a parameter."""
        args, kwargs = [], {}
        for p, value in zip(self.parameters, slots):
            if p.kind == P.VAR_POSITIONAL:
                args.extend(value)
            elif p.kind == P.VAR_KEYWORD:
                kwargs.update(value)
            elif p.kind == P.KEYWORD_ONLY:
                kwargs[p.name] = value
            else:
                args.append(value)
        return tuple(args), kwargs

    def call(self, function, slots):
        """function(...) with one value a parameter."""
        args, kwargs = self.as_called(slots)
        return function(*args, **kwargs)

    def text(self, types=None):
        """ "(x, y: ...)": parameters, with types where a signature gives them."""
        parts, star = [], False
        for i, p in enumerate(self.parameters):
            t = types[i] if types and i < len(types) else None
            if p.kind == P.VAR_POSITIONAL:
                parts.append(f"*{p.name}")
                star = True
                continue
            if p.kind == P.VAR_KEYWORD:
                parts.append(f"**{p.name}")
                continue
            if p.kind == P.KEYWORD_ONLY and not star:
                parts.append("*")
                star = True
            shown = p.name
            if t is not None:
                shown += f": {t!r}"
            if p.default is not P.empty and t is None:
                shown += "=<captured_default_value>"
            parts.append(shown)
        return f"({', '.join(parts)})"


class Entry:
    """A parameter of a concrete function."""

    def __init__(self, name, kind, type_):
        self.name, self.kind, self.type = name, kind, type_


class FunctionType:
    """The types that a concrete function was traced with."""

    def __init__(self, parameters, types, output=None):
        self._parameters = parameters
        self.types = types  # one a parameter
        self.output = output
        self.entries = self._entries()

    def _entries(self):
        rows = []
        # What stands before *args can be given by position alone.
        extra = any(p.kind == P.VAR_POSITIONAL for p in self._parameters.parameters)
        for p, t in zip(self._parameters.parameters, self.types):
            if p.kind == P.VAR_POSITIONAL:
                for i, item in enumerate(t.items):
                    rows.append(Entry(f"{p.name}_{i}", P.POSITIONAL_ONLY, item))
            elif p.kind == P.VAR_KEYWORD:
                for key, item in zip(t.keys, t.items):
                    rows.append(Entry(key, P.KEYWORD_ONLY, item))
            else:
                kind = p.kind
                if extra and kind == P.POSITIONAL_OR_KEYWORD:
                    kind = P.POSITIONAL_ONLY
                rows.append(Entry(p.name, kind, t))
        return rows

    def signature(self):
        """An inspect.Signature in which literals have defaults."""
        rows, optional = [], False
        for e in self.entries:
            default = P.empty
            if trace_types.is_literal(e.type):
                default = trace_types.literal_value(e.type)
                optional = optional or e.kind != P.KEYWORD_ONLY
            elif optional and e.kind != P.KEYWORD_ONLY:
                default = _MISSING
            rows.append(FreelyNamed(e.name, e.kind, default=default))
        return inspect.Signature(rows)

    def structured(self):
        """(args, kwargs): what the parameters take, as trees of TensorSpecs and values."""
        args, kwargs = [], {}
        for e in self.entries:
            shown = trace_types.structured(e.type, e.name)
            if e.kind == P.KEYWORD_ONLY:
                kwargs[e.name] = shown
            else:
                args.append(shown)
        return tuple(args), kwargs

    def __repr__(self):
        parts, star = [], False
        positional_only = [e for e in self.entries if e.kind == P.POSITIONAL_ONLY]
        for e in self.entries:
            if e.kind == P.KEYWORD_ONLY and not star:
                parts.append("*")
                star = True
            parts.append(f"{e.name}: {e.type!r}")
            if positional_only and e is positional_only[-1]:
                parts.append("/")
        return f"({', '.join(parts)}) -> {self.output!r}"

    def is_plain(self):
        """Whether plain() says all of it."""
        kinds = TensorSpec, trace_types.Literal
        return (
            all(
                e.kind == P.POSITIONAL_OR_KEYWORD and type(e.type) in kinds
                for e in self.entries
            )
            and type(self.output) in kinds
        )

    def plain(self, name):
        """The guide's form: "name(x, y=2)", then the tensors of both ways."""

        def tensor(spec):
            return f"{spec.dtype.name} Tensor, shape={spec.shape}"

        parts, tensors = [], []
        for e in self.entries:
            if isinstance(e.type, trace_types.Literal):
                parts.append(f"{e.name}={e.type.value!r}")
            else:
                parts.append(e.name)
                tensors.append(f"    {e.name}: {tensor(e.type)}")
        lines = [f"{name}({', '.join(parts)})"]
        if tensors:
            lines += ["  Args:", *tensors]
        gives = self.output
        gives = "None" if isinstance(gives, trace_types.Literal) else tensor(gives)
        return "\n".join([*lines, "  Returns:", f"    {gives}"])

    def pretty(self, captures):
        """Parameters, output and captures, a line each."""
        lines = ["Input Parameters:"]
        lines += [f"  {e.name} ({e.kind.name}): {e.type!r}" for e in self.entries] or [
            "  None"
        ]
        lines += ["Output Type:", f"  {self.output!r}", "Captures:"]
        lines += [f"  {id(c)}: {_spec_text(c)}" for c in captures] or ["  None"]
        return "\n".join(lines)


_MISSING = object()


def _spec_text(tensor):
    return (
        f"TensorSpec(shape={tensor.shape}, dtype={tensor.dtype!r}, name=None)".replace(
            "<dtype: '", "tf."
        ).replace("'>", "")
    )


def is_missing(value):
    return value is _MISSING
