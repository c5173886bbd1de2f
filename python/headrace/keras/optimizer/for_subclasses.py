"""What legacy optimizers of users' own override and call, by TensorFlow's names."""

import inspect

from headrace import _api as tf
from headrace._load import raw
from headrace.context.properties import read_only
from headrace.keras.optimizer import rules
from headrace.keras.optimizer.schedule import LearningRateSchedule

_UPDATES = (
    "_resource_apply_dense",
    "_resource_apply_sparse",
    "_resource_apply_sparse_duplicate_indices",
)


class ForSubclasses:
    """Mixed into the legacy Optimizer.

    `apply_state` is a dict of what updates share: by (device, dtype) of variables a
    dict with "lr_t", the learning rate now, and what _prepare_local adds.
    """

    _extended = False  # whether updates are those of a subclass
    _use_locking = True

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        own = [n for n in _UPDATES if getattr(cls, n) is not getattr(ForSubclasses, n)]
        cls._extended = bool(own)
        cls._stateless = {
            n for n in own if "apply_state" not in _parameters(getattr(cls, n))
        }

    # --- to override ---

    def _resource_apply_dense(self, grad, handle, apply_state=None):
        """Updates a variable by a gradient of its shape: as the class's rule says."""
        self._by_rule(grad, handle, apply_state)

    def _resource_apply_sparse(self, grad, handle, indices, apply_state=None):
        """Updates rows of a variable: `indices`, none of which comes twice."""
        slices = tf.IndexedSlices(grad, indices, tf.shape(handle))
        self._by_rule(slices, handle, apply_state)

    def _resource_apply_sparse_duplicate_indices(self, grad, handle, indices, **kwargs):
        """_resource_apply_sparse where indices may come several times, whose gradients
        are summed."""
        slices = tf.IndexedSlices(grad, indices, tf.shape(handle))
        values, rows = rules.summed_rows(slices)
        state = kwargs.get("apply_state")
        return self._call("_resource_apply_sparse", state, values, handle, rows)

    def _create_slots(self, var_list):
        """Makes what is remembered of these variables, by add_slot: here what the
        class's rule needs. Optimizers around others call this for the inner one."""
        self._make_slots(var_list)

    def _prepare_local(self, var_device, var_dtype, apply_state):
        """Puts what updates of variables there share into the dict of these."""
        if self._hypers["learning_rate"] is not None:
            rate = tf.identity(self._decayed_lr(var_dtype))
            apply_state[(var_device, var_dtype)]["lr_t"] = rate

    # --- to call ---

    def _prepare(self, var_list):
        """The apply_state of these variables."""
        state = {}
        for variable in var_list:
            self._prepare_for(variable, state)
        return state

    def _fallback_apply_state(self, var_device, var_dtype):
        """What the apply_state of a variable there would be."""
        state = {(var_device, var_dtype): {}}
        self._prepare_local(var_device, var_dtype, state)
        return state[(var_device, var_dtype)]

    def _get_hyper(self, name, dtype=None):
        """A hyper-parameter: its variable, a schedule, or a tensor of the dtype."""
        value = self._hyper_now(name)
        if isinstance(value, LearningRateSchedule):
            return value
        if callable(value) and not isinstance(value, tf.Variable):
            value = value()
        return value if dtype is None else tf.cast(value, dtype)

    def _decayed_lr(self, var_dtype):
        """The learning rate now, behind its schedule and decay: a scalar."""
        return self._rate(var_dtype)

    def get_slot_names(self):
        """A list of the names of the slots that each variable gets."""
        made = {name: None for row in self._slots.values() for name in row}
        return list(dict.fromkeys([*super().get_slot_names(), *made]))

    def _create_hypers(self):
        """Makes the variables of the hyper-parameters that are numbers."""
        super()._make_hypers()

    def _create_all_weights(self, var_list):
        """Makes all variables that updates of these need."""
        self.build(var_list)

    def _serialize_hyperparameter(self, hyperparameter_name):
        """A hyper-parameter's value, or the configuration of its schedule."""
        return self._serialized(hyperparameter_name)

    @staticmethod
    def _call_if_callable(param):
        """What a function gives, or the value itself."""
        return param() if callable(param) else param

    # A dict of hyper-parameters by name, as they were set.
    _hyper = read_only(
        "_hypers", "What was set, by name: numbers, schedules, functions."
    )

    @staticmethod
    def _resource_scatter_update(x, i, v):
        """Sets the rows i of a variable to v: its value behind that."""
        raw.ResourceScatterUpdate(x.handle, i, v)
        return x.value()

    @staticmethod
    def _resource_scatter_add(x, i, v):
        """Adds v to the rows i of a variable: its value behind that."""
        raw.ResourceScatterAdd(x.handle, i, v)
        return x.value()

    @property
    def _dense_apply_args(self):
        """The names of the parameters of _resource_apply_dense, self's first."""
        return inspect.getfullargspec(self._resource_apply_dense).args

    @property
    def _sparse_apply_args(self):
        """The names of the parameters of _resource_apply_sparse, self's first."""
        return inspect.getfullargspec(self._resource_apply_sparse).args

    @property
    def _iterations(self):
        """The variable that counts steps; None before there is one."""
        return self._hyper_variables.get("iter")

    @_iterations.setter
    def _iterations(self, variable):
        """Lends it the variable of the optimizer around it, which is none of its own
        weights."""
        self._hyper_variables["iter"] = variable
        object.__setattr__(self, "_counts_itself", False)

    _counts_itself = True
    _weights = read_only("variables", "The step count and the slots of its own.")

    # --- how they are called ---

    def _make_hypers(self):
        self._create_hypers()

    def _hyper_dtype(self, name, value):
        """Numbers of the rule may become fractions later; what a program's own class
        sets is as it is: an int, a bool."""
        if name in ("learning_rate", "decay", *self._config_names):
            return super()._hyper_dtype(name, value)
        return None

    def build(self, var_list):
        """Makes what is missing for these variables."""
        super().build(var_list)
        self._create_slots(var_list)

    def _coefficients(self, dtype):
        if self._hypers["learning_rate"] is None:
            return {}
        return super()._coefficients(dtype)

    def _by_rule(self, gradient, variable, apply_state):
        known = self._coefficients(variable.dtype)
        shared = (apply_state or {}).get((variable.device, variable.dtype.base_dtype))
        if shared and "lr_t" in shared and "lr" in known:
            known["lr"] = shared["lr_t"]  # which a subclass may have changed
        super()._step(gradient, variable, known)

    def _step(self, gradient, variable, known):
        if not self._extended:
            super()._step(gradient, variable, known)
            return
        state = known.setdefault("apply_state", {})
        self._prepare_for(variable, state)
        if isinstance(gradient, tf.IndexedSlices):
            given = gradient.values, variable, gradient.indices
            self._call("_resource_apply_sparse_duplicate_indices", state, *given)
        else:
            self._call("_resource_apply_dense", state, gradient, variable)

    def _prepare_for(self, variable, state):
        key = variable.device, variable.dtype.base_dtype
        if key not in state:
            state[key] = {}
            self._prepare_local(*key, state)

    def _call(self, name, state, *given):
        kwargs = {} if name in self._stateless else {"apply_state": state}
        return getattr(self, name)(*given, **kwargs)


def _parameters(function):
    found = inspect.signature(function).parameters
    if any(p.kind is p.VAR_KEYWORD for p in found.values()):
        return {"apply_state", *found}
    return set(found)
