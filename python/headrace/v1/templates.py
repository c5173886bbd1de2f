"""tf.compat.v1.make_template: functions that keep the variables of their first call."""

import contextlib
import functools
import traceback

from headrace._load import _headrace
from headrace.context import stack
from headrace.context.properties import read_only
from headrace.framework.trackable import Trackable, node_of
from headrace.train.saver_graph import parts_of
from headrace.v1 import variable_scope
from headrace.v1.collections import GraphKeys


def make_template(
    name_,
    func_,
    create_scope_now_=False,
    unique_name_=None,
    custom_getter_=None,
    **kwargs,
):
    """`func_` as a function whose calls share the variables that get_variable makes.

    The first call makes them, in a variable scope `name_` (made unique) or exactly
    `unique_name_`; later calls find them, and raise ValueError where they would make
    trainable ones. `create_scope_now_` opens the scope here rather than at the first
    call, `custom_getter_` is called in place of get_variable, `kwargs` are arguments of
    every call. Eagerly ValueError for a `unique_name_`.
    """
    if kwargs:
        func_ = functools.partial(func_, **kwargs)
    if _headrace.is_eager() and unique_name_ is not None:
        raise ValueError("unique_name_ cannot be used when eager execution is enabled.")
    made = Template(name_, func_, create_scope_now_, unique_name_, custom_getter_)
    outer = variable_scope.templates_called()
    if outer:
        outer[-1]._add_template(made)
    return made


class Template(Trackable):
    """What make_template() returns. Checkpoints know its variables by the names that
    the function gives them, and templates that it makes by theirs."""

    def __init__(self, name, func, create_scope_now, unique_name, custom_getter):
        self._name, self._func = name, func
        self._unique_name, self._custom_getter = unique_name, custom_getter
        self._scope = None
        self._called = False
        self._children = {}
        # Variables of eager calls by name, shared with the template around.
        outer = variable_scope.templates_called()
        self._eager_variables = outer[-1]._eager_variables if outer else {}
        self._defined_at = traceback.extract_stack(limit=4)[:-2]
        if create_scope_now:
            with self._new_scope() as scope:
                self._scope = scope

    def _new_scope(self):
        return variable_scope.variable_scope(
            self._unique_name, self._name, custom_getter=self._custom_getter
        )

    @contextlib.contextmanager
    def _inside(self):
        called = variable_scope.templates_called()
        called.append(self)
        try:
            if self._scope is None:
                with self._new_scope() as self._scope:
                    yield
            else:
                reuse = True if self._called else None
                with variable_scope.variable_scope(self._scope, reuse=reuse):
                    yield
        finally:
            called.pop()

    def __call__(self, *args, **kwargs):
        try:
            with self._inside():
                before = self._counts()
                result = self._func(*args, **kwargs)
                after = self._counts()
                if self._called and after[0] != before[0]:
                    raise ValueError(
                        "Trainable variable created when calling a template after the "
                        "first time, perhaps you used tf.Variable when you meant "
                        f"tf.get_variable: {self.trainable_variables}"
                    )
            # Until a call has made variables, the next one may still do.
            self._called = self._called or after != before
            return result
        except Exception as e:
            where = "".join(traceback.format_list(self._defined_at))
            first, *others = e.args or ("",)
            e.args = (f"{first}\n\noriginally defined at:\n{where}", *others)
            raise

    def _counts(self):
        """How many trainable and how many other variables there are."""
        if _headrace.is_eager():
            return 0, len(self._eager_variables)
        graph = stack.default_graph()
        keys = (GraphKeys.GLOBAL_VARIABLES, GraphKeys.LOCAL_VARIABLES)
        others = sum(len(graph.get_collection(key)) for key in keys)
        return len(graph.get_collection(GraphKeys.TRAINABLE_VARIABLES)), others

    # --- what it holds ---

    def _made(self, name, variable):
        """get_variable made one inside the call: a child under what the function calls
        it."""
        self._add_child(name.removeprefix(self.variable_scope_name), variable)

    def _add_template(self, template):
        self._add_child(template._unique_name or template._name, template)

    def _add_child(self, name, child):
        if name in self._children:
            return
        self._children[name] = child
        if not isinstance(child, Trackable):
            _attach(node_of(self), name, child)
        else:
            node_of(self).attach(name, node_of(child))

    def _trackable_items(self):
        return list(self._children.items())

    name = read_only("_name", "The name that was given to make_template.")
    func = read_only("_func", "The function that calls run.")
    variable_scope = read_only(
        "_scope", "The VariableScope of the calls; None before the first one."
    )

    var_scope = variable_scope

    @property
    def variable_scope_name(self):
        """The scope's name with a slash at its end; None before the first call."""
        return None if self._scope is None else f"{self._scope.name}/"

    @property
    def variables(self):
        """A list of all variables that calls made: global and local ones."""
        return self.global_variables + self.local_variables

    def _collected(self, key):
        """What calls made of the variables in a collection."""
        if self._scope is None:
            return []
        prefix = self.variable_scope_name
        if not _headrace.is_eager():
            return stack.default_graph().get_collection(key, prefix)
        made = [v for n, v in self._eager_variables.items() if n.startswith(prefix)]
        if key == GraphKeys.TRAINABLE_VARIABLES:
            return [v for v in made if v.trainable]
        return made if key == GraphKeys.GLOBAL_VARIABLES else []

    @property
    def global_variables(self):
        """A list of the variables that calls made and that are saved."""
        return self._collected(GraphKeys.GLOBAL_VARIABLES)

    @property
    def local_variables(self):
        """A list of the variables that calls made and that are not saved."""
        return self._collected(GraphKeys.LOCAL_VARIABLES)

    @property
    def trainable_variables(self):
        """A list of those that optimizers change."""
        return self._collected(GraphKeys.TRAINABLE_VARIABLES)

    @property
    def non_trainable_variables(self):
        """A list of the other ones."""
        trainable = {id(v) for v in self.trainable_variables}
        return [v for v in self.variables if id(v) not in trainable]

    weights = variables
    trainable_weights = trainable_variables
    non_trainable_weights = non_trainable_variables


def _attach(node, name, variable):
    """A checkpoint's value of a variable just made is its first one."""
    for part in parts_of(variable):
        node.attach(name, node_of(part))
        operation = getattr(part, "_restoring", None)
        if operation is not None:  # a variable of a graph
            part._starts_with(operation)
