"""tf.compat.v1.make_template: functions that make their variables once."""

import functools

from headrace._load import _headrace
from headrace.graph import collections, stack
from headrace.graph.variable_scope import variable_scope

_KEYS = collections.GraphKeys


def make_template(
    name_,
    func_,
    create_scope_now_=False,
    unique_name_=None,
    custom_getter_=None,
    **kwargs,
):
    """A Template of `func_`: variables that it asks of get_variable are made by the
    first call and found by later ones.

    Args:
      name_: the scope of the variables, made unique; `unique_name_` is taken as it is.
      create_scope_now_: the scope is made here, not where the first call is.
      custom_getter_: for get_variable inside.
      kwargs: arguments that each call gets.
    """
    function = functools.partial(func_, **kwargs) if kwargs else func_
    return Template(name_, function, create_scope_now_, unique_name_, custom_getter_)


class Template:
    """What make_template gives. ValueError where a later call wants new variables."""

    def __init__(self, name, func, create_scope_now, unique_name, custom_getter):
        self._name, self._func = name, func
        self._unique_name = unique_name
        self._custom_getter = custom_getter
        self._scope = None
        self._called = False
        self._eager = {}  # variables of calls outside of graphs, by name
        if create_scope_now:
            with self._new_scope() as self._scope:
                pass

    def _new_scope(self):
        getter = self._custom_getter
        if self._unique_name is not None:
            return variable_scope(self._unique_name, custom_getter=getter)
        return variable_scope(None, default_name=self._name, custom_getter=getter)

    def __call__(self, *args, **kwargs):
        if _headrace.is_eager():
            return self._call_eagerly(args, kwargs)
        if self._scope is None:
            with self._new_scope() as self._scope:
                return self._first(args, kwargs)
        if not self._called:
            with variable_scope(self._scope):
                return self._first(args, kwargs)
        with variable_scope(self._scope, reuse=True):
            return self._func(*args, **kwargs)

    def _first(self, args, kwargs):
        """The call that makes variables: until one has, the next may still do."""
        graph = stack.current()
        before = len(graph.get_collection(_KEYS.GLOBAL_VARIABLES))
        result = self._func(*args, **kwargs)
        self._called = len(graph.get_collection(_KEYS.GLOBAL_VARIABLES)) > before
        return result

    def _call_eagerly(self, args, kwargs):
        first = not self._eager
        made = self._eager

        def found(getter, name, *getter_args, **getter_kwargs):
            if name not in made:
                if not first:
                    raise ValueError(
                        f"Variable {name} does not exist, or was not created with "
                        "tf.get_variable() by the first call of the template "
                        f"{self._name}."
                    )
                made[name] = getter(name, *getter_args, **getter_kwargs)
            return made[name]

        if self._scope is None:
            with self._new_scope() as self._scope:
                pass
        with variable_scope(self._scope, custom_getter=found):
            return self._func(*args, **kwargs)

    @property
    def name(self):
        """The name given."""
        return self._name

    @property
    def func(self):
        """The function given, with the arguments given."""
        return self._func

    @property
    def variable_scope(self):
        """The scope of the variables; None before it is made."""
        return self._scope

    var_scope = variable_scope

    @property
    def variable_scope_name(self):
        """The scope's name; None before it is made."""
        return None if self._scope is None else self._scope.name

    def _collected(self, key):
        if self._eager or self._scope is None:
            return list(self._eager.values())
        graph = stack.default_graph()
        return graph.get_collection(key, f"{self._scope.name}/")

    @property
    def global_variables(self):
        """Its variables that are no local ones: a list."""
        return self._collected(_KEYS.GLOBAL_VARIABLES)

    @property
    def local_variables(self):
        """Its local variables: a list."""
        return [] if self._eager else self._collected(_KEYS.LOCAL_VARIABLES)

    @property
    def variables(self):
        """All of its variables: a list."""
        return self.global_variables + self.local_variables

    @property
    def trainable_variables(self):
        """Those that are trained: a list."""
        if self._eager:
            return [v for v in self._eager.values() if v.trainable]
        return self._collected(_KEYS.TRAINABLE_VARIABLES)

    @property
    def non_trainable_variables(self):
        """Those that are not trained: a list."""
        trained = {id(v) for v in self.trainable_variables}
        return [v for v in self.variables if id(v) not in trained]

    weights = variables
    trainable_weights = trainable_variables
    non_trainable_weights = non_trainable_variables
