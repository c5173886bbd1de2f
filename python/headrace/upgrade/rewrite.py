"""Rewrites the text of one program of TensorFlow 1.x."""

import ast
import traceback
from dataclasses import dataclass, field

from headrace.upgrade import imports
from headrace.upgrade.rules import addons_notes, deprecated, new_name, rules
from headrace.upgrade.source import Source
from headrace.upgrade.special import SAID_HERE, SPECIAL

_SAVE = (
    "*.save requires manual check. (This warning is only applicable if the code saves a "
    "tf.Keras model) Keras model.save now saves to the Tensorflow SavedModel format by "
    "default, instead of HDF5. To continue saving to HDF5, add the argument "
    "save_format='h5' to the save() function."
)
_CANNOT = (
    "(Manual check required) upgrading tf.{} may require {} call arguments, but it was "
    "passed variable-length {}. The upgrade script cannot handle these automatically."
)
_EITHER = "*args or **kwargs"


@dataclass
class Rewritten:
    """`notes` are (line, column, level, text) in the order of the log; `failure` says
    why nothing was done."""

    text: str
    notes: list = field(default_factory=list)
    failure: str | None = None


def _dotted(node):
    """`a.b.c` of names and attributes; None of others."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return ".".join([node.id, *reversed(parts)])


def _name_in_tf(node):
    full = _dotted(node)
    return full[3:] if full is not None and full.startswith("tf.") else None


class Call:
    """A call of tf.`name` while it is rewritten."""

    def __init__(self, rewriter, node, name, arguments, close):
        self._rewriter = rewriter
        self._source = rewriter.source
        self._node = node
        self._close = close
        self._appended = []
        self._is_set = False
        self.name = name
        self.arguments = arguments
        self.has_stars = any(a.starred for a in arguments)

    def note(self, level, text):
        self._rewriter.note(self._node, level, text)

    def note_argument(self, argument):
        """What the table says of calls that give it."""
        for level, text in rules().notes.get((self.name, argument), ()):
            self.note(level, text)

    def positional(self):
        """Those without a keyword, up to *args."""
        found = []
        for a in self.arguments:
            if a.starred:
                break
            if a.keyword is None and not a.removed:
                found.append(a)
        return found

    def get(self, keyword):
        """The argument of that keyword, in the old call or the new."""
        for a in self.arguments:
            if keyword in (a.keyword, a.new_keyword) and not a.removed:
                return a
        return None

    @staticmethod
    def value(argument):
        return (argument.value_start, argument.value_end)

    def give_keyword(self, argument, keyword):
        argument.new_keyword = keyword
        self._source.insert(argument.start, keyword + "=")

    def rename_keyword(self, argument, keyword):
        at = argument.start
        self._source.replace(at, at + len(argument.keyword), keyword)
        argument.new_keyword = keyword

    def replace(self, argument, *pieces):
        self._source.replace(argument.start, argument.end, *pieces)

    def wrap(self, argument, before, after):
        self._source.insert(argument.value_start, before)
        self._source.insert(argument.value_end, after)

    def remove(self, argument):
        argument.removed = True

    def append(self, *pieces):
        self._appended.append(pieces)

    def set_arguments(self, pieces):
        """Puts `pieces` in place of all arguments."""
        self._is_set = True
        first = self.arguments[0].start if self.arguments else self._close
        last = self.arguments[-1].end if self.arguments else self._close
        self._source.replace(first, last, *pieces)

    def after(self, text):
        end = self._source.span(self._node)[1]
        self._source.insert(end, text)

    def rename(self, name, is_said=False):
        """Calls tf.`name` instead; `is_said`: the log tells of it as of other names."""
        self._rewriter.rename(self._node.func, self.name, name, is_said)

    def finish(self):
        """Removes and appends: which argument is the last is known only now."""
        if self._is_set:
            return
        kept_before = None
        arguments = self.arguments
        for i, a in enumerate(arguments):
            if not a.removed:
                kept_before = a
            elif kept_before is not None:
                self._source.replace(arguments[i - 1].end, a.end)
            elif i + 1 < len(arguments):
                self._source.replace(a.start, arguments[i + 1].start)
            else:
                self._source.replace(a.start, a.end)
        for pieces in self._appended:
            comma = ", " if kept_before is not None else ""
            kept_before = self
            at = self._close
            if arguments:
                end = arguments[-1].end
                text = self._source.old[end : self._close]
                # Behind a comma, or the end of a line, it would stand alone.
                if self._source.has_comma(end) or "\n" in text:
                    at = end
            self._source.replace(at, at, comma, *pieces)


class _Rewriter(ast.NodeVisitor):
    def __init__(self, source):
        self.source = source
        self.notes = []
        self._renamed = set()  # ids of attributes that calls have renamed
        self._silent = set()  # of those, which the log has already

    def note(self, node, level, text):
        self.notes.append((node.lineno, node.col_offset, level, text))

    def rename(self, node, old, new, is_said):
        start, end = self.source.span(node)
        if self.source.old[start:end].replace(" ", "").startswith("tf"):
            self.source.replace(start, end, "tf." + new)
        self._renamed.add(id(node))
        if is_said:
            self._say_renamed_later = (id(node), old, new)
            self._said.append(self._say_renamed_later)

    _said = ()

    def visit_Call(self, node):
        self._said = []
        name = _name_in_tf(node.func)
        if isinstance(node.func, ast.Attribute):
            if node.func.attr == "save":
                self.note(node, "WARNING", _SAVE)
            self._iterator(node)
        if name is not None:
            parts = self.source.call_parts(node)
            if parts is not None:
                self._rewrite_call(Call(self, node, name, *parts))
        self.generic_visit(node)

    def _iterator(self, node):
        name = node.func.attr
        full = _dotted(node.func)
        if name not in ("make_one_shot_iterator", "make_initializable_iterator"):
            return
        if full is not None and full.startswith("tf."):
            return
        self.note(
            node,
            "WARNING",
            f"Changing dataset.{name}() to tf.compat.v1.data.{name}(dataset). Please check "
            "this transformation.\n",
        )
        parts = self.source.call_parts(node)
        if parts is None:
            return
        start, end = self.source.span(node)
        first = [", ", (parts[0][0].start, parts[0][-1].end)] if parts[0] else []
        of = self.source.span(node.func.value)
        self.source.replace(start, end, f"tf.compat.v1.data.{name}(", of, *first, ")")

    def _rewrite_call(self, call):
        rule = rules().calls.get(call.name)
        if rule is not None:
            if call.name not in SAID_HERE:
                self._note_arguments(call, rule)
            self._give_keywords(call, rule)
            self._rename_keywords(call, rule)
        special = SPECIAL.get(call.name)
        if special is not None:
            if call.has_stars:
                call.note("WARNING", _CANNOT.format(call.name, "modifying", _EITHER))
            special(call)
        call.finish()

    def _note_arguments(self, call, rule):
        """Of arguments that are given, by keyword or by position."""
        given = {a.keyword for a in call.arguments}
        given |= set(rule.arguments[: len(call.positional())])
        for argument in rule.arguments:
            if argument in given:
                call.note_argument(argument)

    def _give_keywords(self, call, rule):
        if rule.first is None:
            return
        if any(
            a.starred and a.keyword is None and isinstance(a.node, ast.Starred)
            for a in call.arguments
        ):
            call.note(
                "WARNING",
                _CANNOT.format(call.name, "re-ordering the", "positional *args"),
            )
            return
        positional = call.positional()
        if len(positional) <= rule.first:
            return
        call.note("INFO", f"Added keywords to args of function 'tf.{call.name}'")
        for a, name in zip(
            positional[rule.first :], rule.arguments[rule.first :], strict=False
        ):
            a.keyword = name
            a.by_position = True

    def _rename_keywords(self, call, rule):
        if rule.renamed and any(
            a.starred and not isinstance(a.node, ast.Starred) for a in call.arguments
        ):
            call.note(
                "WARNING",
                _CANNOT.format(call.name, "renaming or removing", _EITHER),
            )
        for a in call.arguments:
            added = getattr(a, "by_position", False)
            new = rule.renamed.get(a.keyword) if a.keyword else None
            if new is None:
                if added:
                    call.give_keyword(a, a.keyword)
                continue
            line, column = (call._node.lineno, call._node.col_offset)
            if not added:
                line, column = a.position
            if not new:
                text = f"Removed argument {a.keyword} for function tf.{call.name}"
                call.remove(a)
            else:
                text = f"Renamed keyword argument for tf.{call.name} from {a.keyword} to {new}"
                (call.give_keyword if added else call.rename_keyword)(a, new)
            if a.keyword not in rule.silent:
                self.notes.append((line, column, "INFO", text))

    def visit_Attribute(self, node):
        for said, old, new in self._said:
            if said == id(node):
                self.note(node, "INFO", f"Renamed 'tf.{old}' to 'tf.{new}'")
        if id(node) in self._renamed:
            return
        name = _name_in_tf(node)
        if name is not None and self._rewrite_name(node, name):
            return
        self.generic_visit(node)

    def _rewrite_name(self, node, name):
        for level, text in rules().notes.get((name, "*"), ()):
            self.note(node, level, text)
        new = new_name(name)
        if new != name:
            self.note(node, "INFO", f"Renamed 'tf.{name}' to 'tf.{new}'")
            start, end = self.source.span(node)
            if self.source.old.startswith("tf", start):
                self.source.replace(start, end, "tf." + new)
            return True
        gone = deprecated(name, but=("app.flags",))
        for level, text in gone:
            self.note(node, level, text)
        return bool(gone)


class _Deprecated(ast.NodeVisitor):
    """Only says what is no more."""

    def __init__(self):
        self.notes = []

    def visit_Attribute(self, node):
        name = _name_in_tf(node)
        gone = deprecated(name) if name is not None else []
        for level, text in [*(addons_notes(name) if gone else ()), *gone]:
            self.notes.append((node.lineno, node.col_offset, level, text))
        if not gone:
            self.generic_visit(node)


def rewrite(text, mode="DEFAULT", upgrade_compat_v1_import=True):
    """The Rewritten of a program's text."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return Rewritten(text, failure=traceback.format_exc())
    source = Source(text)
    if mode == "SAFETY":
        notes = imports.to_compat_v1(tree, source)
        finder = _Deprecated()
        finder.visit(tree)
        return Rewritten(source.text(), notes + finder.notes)
    notes, goes_on = imports.check(tree, source, upgrade_compat_v1_import)
    if goes_on:
        rewriter = _Rewriter(source)
        rewriter.visit(tree)
        notes += rewriter.notes
    return Rewritten(source.text(), notes)
