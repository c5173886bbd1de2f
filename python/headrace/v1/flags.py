"""tf.compat.v1.flags: options of programs, given on the command line."""

import functools
import sys

from headrace.context.properties import read_only
from headrace.framework.support import signatures


class Error(Exception):
    """What goes wrong with flags."""


class DuplicateFlagError(Error):
    """A name that is defined twice."""


class IllegalFlagValueError(Error):
    """A value that a flag does not take."""


class UnrecognizedFlagError(Error):
    """An argument whose flag is not defined."""


class UnparsedFlagAccessError(Error):
    """A flag that is read before the command line was."""


class ValidationError(Error):
    """A value that a validator refuses."""


class Flag:
    """One option: its name, value and how texts become values."""

    def __init__(self, parse, name, default, help, boolean=False, multiple=False):
        self.parse, self.name, self.help = parse, name, help
        self.boolean, self.multiple = boolean, multiple
        self.default = self.value = self._converted(default)
        self.present = 0

    def _converted(self, value):
        if value is None:
            return None
        if self.multiple and isinstance(value, (list, tuple)):
            return [self._one(v) for v in value]
        return [self._one(value)] if self.multiple else self._one(value)

    def _one(self, value):
        try:
            return self.parse(value)
        except (ValueError, TypeError) as error:
            raise IllegalFlagValueError(
                f"flag --{self.name}={value}: {error}"
            ) from None

    def take(self, text):
        """Takes a value of the command line; several add up where that is meant."""
        if self.multiple and self.present:
            self.value = [*self.value, self._one(text)]
        else:
            self.value = self._converted(text)
        self.present += 1


class FlagHolder:
    """What DEFINE_… gives: the flag's value, default and name."""

    def __init__(self, values, flag):
        self._values, self._flag = values, flag

    name = read_only("_flag.name", "The flag's name, without dashes.")
    default = read_only("_flag.default", "Its value where the command line has none.")

    @property
    def present(self):
        """Whether the command line, or an assignment, set the flag."""
        return bool(self._flag.present)

    @property
    def value(self):
        """Its value; UnparsedFlagAccessError before the command line was read."""
        return getattr(self._values, self._flag.name)


class FlagValues:
    """All flags; their values as attributes, once the command line was read."""

    def __init__(self):
        self.__dict__.update(_flags={}, _parsed=False, _validators=[])

    def __getitem__(self, name):
        return self._flags[name]

    def __contains__(self, name):
        return name in self._flags

    def __iter__(self):
        return iter(self._flags)

    def __len__(self):
        return len(self._flags)

    def __dir__(self):
        return [*super().__dir__(), *self._flags]

    def __getattr__(self, name):
        if name.startswith("__") or name not in self._flags:
            raise AttributeError(name)
        if not self._parsed:
            if sys.argv:
                self(sys.argv, known_only=True)  # as upstream's wrapper does
            else:
                raise UnparsedFlagAccessError(
                    f"Trying to access flag --{name} before flags were parsed."
                )
        return self._flags[name].value

    def __setattr__(self, name, value):
        if name not in self._flags:
            raise AttributeError(name)
        self._flags[name].value = value
        self._validate(name)

    def __delattr__(self, name):
        if name not in self._flags:
            raise AttributeError(name)
        del self._flags[name]

    def is_parsed(self):
        """Whether the command line was read."""
        return self._parsed

    def mark_as_parsed(self):
        """Makes values readable without a command line."""
        self.__dict__["_parsed"] = True

    def unparse_flags(self):
        """Back to the state before the command line was read."""
        for flag in self._flags.values():
            flag.value, flag.present = flag.default, 0
        self.__dict__["_parsed"] = False

    def flag_values_dict(self):
        """Values by name."""
        return {name: flag.value for name, flag in self._flags.items()}

    def define(self, flag):
        """Adds a flag."""
        if flag.name in self._flags:
            raise DuplicateFlagError(f"The flag '{flag.name}' is defined twice.")
        self._flags[flag.name] = flag
        return FlagHolder(self, flag)

    def __call__(self, argv, known_only=False):
        """Reads a command line; gives it without the flags."""
        rest, unknown = [argv[0]], []
        args = iter(argv[1:])
        for arg in args:
            if arg == "--":
                rest += list(args)
            elif not arg.startswith("-") or arg == "-":
                rest.append(arg)
            elif not self._take(arg, args):
                unknown.append(arg)
        if unknown and not known_only:
            names = [a.lstrip("-").partition("=")[0] for a in unknown]
            raise UnrecognizedFlagError(
                "\n".join(f"Unknown command line flag '{n}'" for n in names)
            )
        self.mark_as_parsed()
        for name in self._flags:
            self._validate(name)
        return rest + unknown

    def _take(self, arg, args):
        name, equals, value = arg.lstrip("-").partition("=")
        flag = self._flags.get(name)
        if flag is None:
            flag = self._flags.get(name[2:]) if name.startswith("no") else None
            if flag is None or not flag.boolean or equals:
                return False
            flag.take(False)
            return True
        if not equals:
            if flag.boolean:
                value = True
            else:
                value = next(args, None)
                if value is None:
                    raise Error(f"Missing value for flag --{name}")
        flag.take(value)
        return True

    def _validate(self, name):
        for names, check, message in self._validators:
            if name in names and not check(self._flags):
                raise IllegalFlagValueError(f"flag --{name}: {message}")

    def get_help(self):
        """All flags with their defaults."""
        lines = []
        for name, flag in sorted(self._flags.items()):
            shown = f"--[no]{name}" if flag.boolean else f"--{name}"
            lines.append(f"  {shown}: {flag.help}\n    (default: {flag.default!r})")
        return "\n".join(lines)


FLAGS = FlagValues()


def _boolean(value):
    if isinstance(value, str):
        if value.lower() in ("true", "t", "1"):
            return True
        if value.lower() in ("false", "f", "0"):
            return False
    elif value in (0, 1):
        return bool(value)
    raise ValueError(f"Non-boolean argument to boolean flag: {value!r}")


def _bounded(kind, lower_bound, upper_bound):
    lower, upper = lower_bound, upper_bound

    def parse(value):
        if isinstance(value, bool):
            raise TypeError(
                f"Expect argument to be a string or int, found {type(value)}"
            )
        found = kind(value)
        if kind is int and isinstance(value, float) and found != value:
            raise TypeError(f"{value} is not an integer")
        low = lower is not None and found < lower
        if low or (upper is not None and found > upper):
            raise ValueError(f"{found} is not in the range [{lower}, {upper}]")
        return found

    return parse


def _words(separator):
    def parse(value):
        if isinstance(value, (list, tuple)):
            return list(value)
        parts = value.split(separator)
        return [p.strip() for p in parts] if value.strip() else []

    return parse


def _one_of(enum_values, case_sensitive):
    values = list(enum_values)

    def parse(value):
        for v in values:
            if value == v or (not case_sensitive and value.lower() == v.lower()):
                return v
        raise ValueError(f"value should be one of <{'|'.join(values)}>")

    return parse


def _define(parse, name, default, help, flag_values, required, **kinds):
    flag_values = FLAGS if flag_values is None else flag_values
    if required and default is not None:
        raise ValueError(
            f"Required flag --{name} cannot have a non-None default ({default!r})"
        )
    holder = flag_values.define(Flag(parse, name, default, help, **kinds))
    if required:
        mark_flag_as_required(name, flag_values)
    return holder


def _definer(own_name, doc, text, parser, **kinds):
    """A function of the parameters in a text that defines flags whose values
    parser(parameters of its own) makes."""

    def define(name, default, help, flag_values, required, **given):
        parse = parser(**given)
        return _define(parse, name, default, help, flag_values, required, **kinds)

    like = signatures.named(own_name, doc, __name__)
    return signatures.function_of(like, signatures.from_text(text), define)


def _plain(own_name, doc, parse, **kinds):
    """A function that defines flags whose values `parse` makes."""
    text = "name, default, help, flag_values=None, required=False"
    return _definer(own_name, doc, text, lambda: parse, **kinds)


def _numeric(own_name, doc, kind, **kinds):
    """A function that defines flags for numbers, which may have bounds."""
    text = (
        "name, default, help, lower_bound=None, upper_bound=None, flag_values=None, "
        "required=False"
    )
    return _definer(own_name, doc, text, functools.partial(_bounded, kind), **kinds)


_EACH = "each time it is given."
DEFINE_string = _plain("DEFINE_string", "A text, any that --name=text has.", str)
DEFINE_boolean = DEFINE_bool = _plain(
    "DEFINE_boolean", "--name, --noname or --name=true.", _boolean, boolean=True
)
DEFINE_list = _plain("DEFINE_list", "Texts with commas between them.", _words(","))
DEFINE_spaceseplist = _plain(
    "DEFINE_spaceseplist", "Texts with spaces between them.", _words(None)
)
DEFINE_multi_string = _plain(
    "DEFINE_multi_string", f"A text {_EACH}", str, multiple=True
)
DEFINE_integer = _numeric("DEFINE_integer", "A whole number.", int)
DEFINE_float = _numeric("DEFINE_float", "A number, as float() reads it.", float)
DEFINE_multi_integer = _numeric(
    "DEFINE_multi_integer", f"A whole number {_EACH}", int, multiple=True
)
DEFINE_multi_float = _numeric(
    "DEFINE_multi_float", f"A number {_EACH}", float, multiple=True
)


DEFINE_enum = _definer(
    "DEFINE_enum",
    "One of several texts.",
    "name, default, enum_values, help, flag_values=None, required=False, "
    "case_sensitive=True",
    _one_of,
)


def _check(names, check, message, flag_values):
    values = FLAGS if flag_values is None else flag_values
    values._validators.append((names, check, message))
    if values.is_parsed():
        for name in names:
            values._validate(name)


def register_validator(
    flag_name, checker, message="Flag validation failed", flag_values=None
):
    """Refuses values for which checker(value) does not hold."""
    _check([flag_name], lambda f: checker(f[flag_name].value), message, flag_values)


def validator(flag_name, message="Flag validation failed", flag_values=None):
    """register_validator as a decorator."""

    def decorated(function):
        register_validator(flag_name, function, message, flag_values)
        return function

    return decorated


def mark_flag_as_required(flag_name, flag_values=None):
    """Refuses command lines without the flag."""
    name = getattr(flag_name, "name", flag_name)
    text = f"Flag --{name} must have a value other than None."
    register_validator(name, lambda value: value is not None, text, flag_values)


def mark_flags_as_required(flag_names, flag_values=None):
    """mark_flag_as_required of each."""
    for name in flag_names:
        mark_flag_as_required(name, flag_values)


def mark_flags_as_mutual_exclusive(flag_names, required=False, flag_values=None):
    """At most one of the flags (or exactly one) is given."""
    names = [getattr(n, "name", n) for n in flag_names]

    def check(flags):
        given = sum(flags[n].value is not None for n in names)
        return given == 1 if required else given <= 1

    kind = "Exactly" if required else "At most"
    text = f"{kind} one of ({', '.join(names)}) must have a value other than None."
    _check(names, check, text, flag_values)


def set_default(flag_holder, value):
    """Another default of a flag."""
    flag = flag_holder._flag
    flag.default = flag._converted(value)
    if not flag.present:
        flag.value = flag.default


def override_value(flag_holder, value):
    """Another value of a flag, as if given on the command line."""
    flag = flag_holder._flag
    flag.value = flag._converted(value)
    flag.present += 1
