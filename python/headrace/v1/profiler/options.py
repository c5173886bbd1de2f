"""Options of profiles, as dicts and as the views read them."""

import copy
import operator
import re

from headrace.context.errors import InvalidArgumentError

# What an option is where a dict leaves it out.
_DEFAULTS = {
    "max_depth": 10,
    "min_bytes": 0,
    "min_peak_bytes": 0,
    "min_residual_bytes": 0,
    "min_output_bytes": 0,
    "min_micros": 0,
    "min_accelerator_micros": 0,
    "min_cpu_micros": 0,
    "min_params": 0,
    "min_float_ops": 0,
    "min_occurrence": 0,
    "step": -1,
    "order_by": "name",
    "account_type_regexes": (),
    "start_name_regexes": (),
    "trim_name_regexes": (),
    "show_name_regexes": (),
    "hide_name_regexes": (),
    "account_displayed_op_only": False,
    "select": (),
    "output": "stdout",
}
_LISTED = ("max_depth", "min_bytes", "min_micros", "min_params", "min_float_ops")


def _dict(**own):
    """A whole dict of options, the order as programs print it."""
    made = {name: 0 for name in (*_LISTED, "min_occurrence")}
    return made | {
        "order_by": "name",
        "account_type_regexes": [".*"],
        "start_name_regexes": [".*"],
        "trim_name_regexes": [],
        "show_name_regexes": [".*"],
        "hide_name_regexes": [],
        "account_displayed_op_only": True,
        "select": [],
        "step": -1,
        "output": "stdout",
        **own,
    }


class ProfileOptionBuilder:
    """Puts options of profiles together: each method sets some and gives the builder,
    `build` the dict. Begins with a copy of `options`, or with all at their least."""

    def __init__(self, options=None):
        if options is not None:
            self._options = copy.deepcopy(options)
            return
        self._options = _dict(
            max_depth=100, select=["micros"], account_displayed_op_only=False
        )

    @staticmethod
    def trainable_variables_parameter():
        """Options that show the trainable variables' parameters, by scope."""
        types = ["_trainable_variables"]
        return _dict(max_depth=10000, account_type_regexes=types, select=["params"])

    @staticmethod
    def float_operation():
        """Options that show operations with floating-point operations."""
        return _dict(
            max_depth=10000, min_float_ops=1, order_by="float_ops", select=["float_ops"]
        )

    @staticmethod
    def time_and_memory(
        min_micros=1,
        min_bytes=1,
        min_accelerator_micros=0,
        min_cpu_micros=0,
        min_peak_bytes=0,
        min_residual_bytes=0,
        min_output_bytes=0,
    ):
        """Options that show operations with at least that time and memory."""
        least = {
            "max_depth": 10000,
            "min_bytes": min_bytes,
            "min_peak_bytes": min_peak_bytes,
            "min_residual_bytes": min_residual_bytes,
            "min_output_bytes": min_output_bytes,
            "min_micros": min_micros,
            "min_accelerator_micros": min_accelerator_micros,
            "min_cpu_micros": min_cpu_micros,
        }
        return least | _dict(**least, order_by="micros", select=["micros", "bytes"])

    def build(self):
        """A dict of all options."""
        return copy.deepcopy(self._options)

    def _with(self, **options):
        self._options.update(options)
        return self

    def with_max_depth(self, max_depth):
        """Shows nodes at most so deep in the tree of a view."""
        return self._with(max_depth=max_depth)

    def with_min_memory(
        self,
        min_bytes=0,
        min_peak_bytes=0,
        min_residual_bytes=0,
        min_output_bytes=0,
    ):
        """Shows nodes that asked for, held at most, kept and gave so many bytes."""
        return self._with(
            min_bytes=min_bytes,
            min_peak_bytes=min_peak_bytes,
            min_residual_bytes=min_residual_bytes,
            min_output_bytes=min_output_bytes,
        )

    def with_min_execution_time(
        self, min_micros=0, min_accelerator_micros=0, min_cpu_micros=0
    ):
        """Shows nodes that took so many microseconds, in all and on each kind."""
        return self._with(
            min_micros=min_micros,
            min_accelerator_micros=min_accelerator_micros,
            min_cpu_micros=min_cpu_micros,
        )

    def with_min_parameters(self, min_params):
        """Shows nodes with so many parameters."""
        return self._with(min_params=min_params)

    def with_min_occurrence(self, min_occurrence):
        """Shows what occurs so often."""
        return self._with(min_occurrence=min_occurrence)

    def with_min_float_operations(self, min_float_ops):
        """Shows nodes with so many floating-point operations."""
        return self._with(min_float_ops=min_float_ops)

    def with_accounted_types(self, account_type_regexes):
        """Counts nodes one of whose types (op, device, names of an OpLogProto) one of
        these expressions fits."""
        return self._with(account_type_regexes=copy.copy(account_type_regexes))

    def with_node_names(
        self,
        start_name_regexes=None,
        show_name_regexes=None,
        hide_name_regexes=None,
        trim_name_regexes=None,
    ):
        """Where trees begin, which nodes are shown, hidden, and what ends there."""
        given = {
            "start_name_regexes": start_name_regexes,
            "show_name_regexes": show_name_regexes,
            "hide_name_regexes": hide_name_regexes,
            "trim_name_regexes": trim_name_regexes,
        }
        return self._with(
            **{k: copy.copy(v) for k, v in given.items() if v is not None}
        )

    def account_displayed_op_only(self, is_true):
        """Whether totals are those of what is shown alone."""
        return self._with(account_displayed_op_only=is_true)

    def with_empty_output(self):
        """Writes nothing: profiles are protos only."""
        return self._with(output="none")

    def with_stdout_output(self):
        """Prints profiles."""
        return self._with(output="stdout")

    def with_file_output(self, outfile):
        """Writes profiles to a file."""
        return self._with(output=f"file:outfile={outfile}")

    def with_timeline_output(self, timeline_file):
        """Writes a trace for chrome://tracing of one step: see with_step."""
        return self._with(output=f"timeline:outfile={timeline_file}")

    def with_pprof_output(self, pprof_file):
        """Writes a file for the program pprof, of the view of lines."""
        return self._with(output=f"pprof:outfile={pprof_file}")

    def order_by(self, attribute):
        """Sorts by name, depth, bytes, micros, params, float_ops, occurrence, ..."""
        return self._with(order_by=attribute)

    def select(self, attributes):
        """What is shown: a list of "micros", "bytes", "params", "float_ops", ..."""
        return self._with(select=copy.copy(attributes))

    def with_step(self, step):
        """The step that is shown; -1: the mean of all."""
        return self._with(step=step)


def _integer(name, value):
    """The option's value; TypeError for what is no integer."""
    kind = bool if isinstance(_DEFAULTS[name], bool) else int
    try:
        return kind(operator.index(value))
    except TypeError as e:
        raise TypeError(f"{name}: {e}") from None


class Options:
    """The options of a dict, with which names and types are compared."""

    def __init__(self, given):
        values = {name: given.get(name, default) for name, default in _DEFAULTS.items()}
        for name, value in values.items():
            if isinstance(_DEFAULTS[name], int):
                value = _integer(name, value)
            setattr(self, name, value)
        self.output, _, rest = str(self.output).partition(":")
        pairs = [pair.partition("=") for pair in rest.split(",") if pair]
        self.output_options = {key: value for key, _, value in pairs}
        self.output_is_pairs = all(equals for _, equals, _ in pairs)

    def fits(self, name, kind):
        """Whether one of the expressions of that kind is all of the name."""
        try:
            return any(re.fullmatch(e, name) for e in getattr(self, f"{kind}_regexes"))
        except re.error as e:
            raise InvalidArgumentError._of(
                f"{kind}_regexes: {e.pattern}: {e}"
            ) from None

    def lines(self):
        """The table of options above printed profiles."""
        for name in _DEFAULTS:
            value = getattr(self, name)
            if name == "output":
                more = ",".join(f"{k}={v}" for k, v in self.output_options.items())
                value = f"{value}:{more}"
            elif isinstance(value, bool):
                value = str(value).lower()
            elif not isinstance(value, (int, str)):
                value = ",".join(sorted(value) if name == "select" else value)
            yield f"-{name:<27}{value}"
