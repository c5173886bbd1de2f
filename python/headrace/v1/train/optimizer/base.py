"""tf.compat.v1.train.Optimizer: what the optimizers of graphs share."""

import contextlib
import functools

from headrace import _api as tf
from headrace._load import _headrace, raw
from headrace.context import stack, strategies
from headrace.eager import graph_gradients
from headrace.framework import execution
from headrace.framework.support import signatures
from headrace.framework.trackable import AutoTrackable, node_of
from headrace.keras.base.tracking import attach_new, start_restored
from headrace.train.saver_graph import is_variable, parts_of
from headrace.v1 import collections
from headrace.v1.train.optimizer.for_subclasses import ForSubclasses
from headrace.v1.variable_scope import variable_scope, variable_v1

GraphKeys = collections.GraphKeys


def in_plain_graph():
    """True where operations go to a graph that sessions run, or a branch of one."""
    return stack.plain_graph() is not None or stack.in_branch_of_plain_graph()


def is_resource(variable):
    return isinstance(variable, _headrace.VariableBase)


def name_of(variable):
    """The variable's name without ":0"."""
    return variable.name.partition(":")[0]


def _key(variable):
    return variable._key if is_resource(variable) else id(variable)


def trainable_variables():
    graph = stack.default_graph()
    return graph.get_collection(GraphKeys.TRAINABLE_VARIABLES) + graph.get_collection(
        GraphKeys.TRAINABLE_RESOURCE_VARIABLES
    )


_NEEDS_REPLICA = (
    "apply_gradients() must be called in a replica's code: inside of Strategy.run"
)


class Optimizer(ForSubclasses, AutoTrackable):
    """Changes variables by gradients; subclasses make slots and update one variable.

    In a graph every call adds operations and returns the last of them; eagerly and in
    tf.function variables change at once.
    """

    GATE_NONE, GATE_OP, GATE_GRAPH = 0, 1, 2

    # What one op does for a variable is said by rows; subclasses with more to do
    # override the methods that read them.
    _op = None  # "Adagrad": ApplyAdagrad and SparseApplyAdagrad update variables
    _slots_begin = {}  # slots, and what they begin with: a number or its attribute
    _slot_inputs = {}  # slots that the op calls otherwise, and how
    _number_inputs = {}  # the op's input -> the attribute with the number
    _more_numbers = ()  # attributes with numbers that the op does not take
    _attributes = {}  # parameters that are kept under names of their own
    _tensors = {}  # the attributes' numbers, as tensors of a graph
    # What these are called where it is not the attribute's name.
    _number_names = {
        "_lr": "learning_rate",
        "_l1": "l1_regularization_strength",
        "_l2": "l2_regularization_strength",
        "_shrinkage": "l2_shrinkage_regularization_strength",
        "_power": "learning_rate_power",
    }

    def _begin(self):
        """What a constructor made by `takes` does behind keeping its parameters."""

    def __init__(self, use_locking, name, use_own_namescope_for_non_slot_vars=False):
        if not name:
            raise ValueError("Must specify the optimizer name")
        for key, value in (
            ("_name", name),
            ("_use_locking", use_locking),
            ("_own_scope", use_own_namescope_for_non_slot_vars),
            ("_slots", {}),  # slot name -> {variable: slot}
            ("_plain", {}),  # other variables, by (name, graph)
            ("_updates", []),  # operations of the call under way
            ("_first_variable", None),
        ):
            object.__setattr__(self, key, value)

    def get_name(self):
        """The name given to the constructor."""
        return self._name

    # --- gradients ---

    @signatures.having(
        "self, loss, global_step=None, var_list=None, gate_gradients=GATE_OP, "
        "aggregation_method=None, colocate_gradients_with_ops=False, name=None, "
        "grad_loss=None",
        GATE_OP=GATE_OP,
    )
    def minimize(self, loss, global_step, name, **how):
        """Changes variables so that the loss falls; counts the step."""
        pairs = self.compute_gradients(loss, **how)
        variables = [v for g, v in pairs if g is not None]
        if not variables:
            raise ValueError(
                "No gradients provided for any variable, check your graph for ops "
                "that do not support gradients, between variables "
                f"{[str(v) for _, v in pairs]} and loss {loss}."
            )
        return self.apply_gradients(pairs, global_step=global_step, name=name)

    def compute_gradients(
        self,
        loss,
        var_list=None,
        gate_gradients=GATE_OP,
        aggregation_method=None,
        colocate_gradients_with_ops=False,
        grad_loss=None,
    ):
        """(gradient, variable) pairs of a loss: a tensor, or eagerly a function."""
        if gate_gradients not in (self.GATE_NONE, self.GATE_OP, self.GATE_GRAPH):
            raise ValueError(
                "gate_gradients must be one of: Optimizer.GATE_NONE, "
                f"Optimizer.GATE_OP, Optimizer.GATE_GRAPH.  Not {gate_gradients}"
            )
        if callable(loss):
            return self._by_tape(loss, var_list, grad_loss)
        execution.only_in_graphs(
            "`loss` passed to Optimizer.compute_gradients should be a function when "
            "eager execution is enabled."
        )
        variables = _flat(trainable_variables() if var_list is None else var_list)
        if not variables:
            raise ValueError("No variables to optimize.")
        _check_real(loss.dtype)
        found = graph_gradients.gradients_v1(
            loss,
            variables,
            grad_loss,
            gate_gradients=gate_gradients == self.GATE_OP,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
        )
        if gate_gradients == self.GATE_GRAPH and any(g is not None for g in found):
            found = tf.tuple(found)
        return list(zip(found, variables))

    @staticmethod
    def _by_tape(loss, var_list, grad_loss):
        with tf.GradientTape() as tape:
            if var_list is not None:
                tape.watch(var_list)
            value = loss()
        if var_list is None:
            var_list = tape.watched_variables()
        _check_real(value.dtype)
        return list(zip(tape.gradient(value, var_list, grad_loss), var_list))

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        """Changes variables by their gradients; counts the step."""
        pairs = tuple(grads_and_vars)
        if not pairs:
            raise ValueError("No variables provided.")
        given = [(g, v) for g, v in pairs if g is not None]
        if not given:
            raise ValueError(
                f"No gradients provided for any variable: {[str(v) for _, v in pairs]}."
            )
        for _, v in given:
            if isinstance(v, tf.Tensor):
                raise NotImplementedError(f"Trying to update a Tensor: {v}")
        mode = strategies.mode()
        if mode is None or mode.is_default:
            owner = getattr(given[0][1], "_distribute_strategy", None)
            if owner is not None:  # outside of its scope: all copies change alike
                with owner.scope():
                    return self._apply_to_copies(
                        owner, given, global_step, name, "MEAN"
                    )
            return self._apply_here(given, global_step, name)
        if mode.copy is not None and mode.replica is None:
            return self._apply_here(given, global_step, name)
        if mode.replica is None:
            raise RuntimeError(_NEEDS_REPLICA)
        return mode.replica.merge_call(
            self._apply_to_copies, (given, global_step, name)
        )

    def _apply_to_copies(self, strategy, given, global_step, name, op="SUM"):
        """Called once for all replicas, with their gradients."""
        variables = [v for _, v in given]
        extended = strategy.extended
        gradients = [extended.reduce_to(op, g, destinations=v) for g, v in given]

        def apply(own):
            return self._apply_here(list(zip(own, variables)), global_step, name)

        self._make_ready(variables)
        return extended._update_all(apply, gradients)

    def _make_ready(self, variables):
        # What is the optimizer's own lies beside the first variable of all.
        first = min(variables, key=lambda v: v.name)
        object.__setattr__(self, "_first_variable", first)
        with tf.init_scope():
            self._create_slots(variables)

    def _apply_here(self, given, global_step, name):
        self._make_ready([v for _, v in given])
        with tf.name_scope(name or self._name) as scope:
            object.__setattr__(self, "_updates", [])
            self._prepare()
            for gradient, variable in given:
                self._apply_one(gradient, variable)
            return self._finished(global_step, scope)

    def _apply_one(self, gradient, variable):
        constraint = getattr(variable, "constraint", None)
        with tf.name_scope(f"update_{name_of(variable)}"), beside(variable):
            if not isinstance(gradient, tf.IndexedSlices):
                gradient = tf.convert_to_tensor(gradient)
                dense = self._apply_dense
                if is_resource(variable):
                    dense = self._resource_apply_dense
                self._note(dense(gradient, variable))
                if constraint is not None:
                    self._constrain(variable, constraint)
                return
            if constraint is not None:
                raise RuntimeError(
                    "Cannot use a constraint function on a sparse variable."
                )
            if is_resource(variable):
                values, rows = gradient.values, gradient.indices
                several = self._resource_apply_sparse_duplicate_indices
                self._note(several(values, variable, rows))
            else:
                self._note(self._apply_sparse_duplicate_indices(gradient, variable))

    def _constrain(self, variable, constraint):
        """Puts what the variable's constraint makes of its new value in place of it."""
        after = self._updates[-1:] if in_plain_graph() else []
        with tf.control_dependencies(after):
            value = variable.read_value() if after else variable
            if is_resource(variable):
                self._done(variable.assign(constraint(value), read_value=False))
            else:
                self._done(variable.assign(constraint(value)))

    def _finished(self, global_step, scope):
        """The operation after all updates, called like their scope; None where they
        are done."""
        if not in_plain_graph():
            self._after_updates()
            self._finish([], scope)
            if global_step is not None:
                return global_step.assign_add(1)
            return None
        graph = stack.current()
        with graph.control_dependencies(self._updates):
            self._after_updates()
        if global_step is None:
            result = self._finish(self._updates, scope)
        else:
            done = self._finish(self._updates, "update")
            with graph.control_dependencies([done]), beside(global_step):
                result = _counted(global_step, scope)
        collection = graph.get_collection_ref(GraphKeys.TRAIN_OP)
        if result not in collection:
            collection.append(result)
        return result

    # --- for subclasses ---

    def _create_slots(self, variables):
        """Makes what the optimizer remembers of these variables."""
        for v in variables:
            for slot_name, first in self._slots_begin.items():
                value = getattr(self, first) if isinstance(first, str) else first
                label = self._label(slot_name)
                self._make_slot(v, slot_name, label, filled(v, value))

    def _label(self, slot_name):
        """What names of the slot's variables say behind their variable's."""
        return self._name

    def _prepare(self):
        """Makes tensors of what numbers and functions the optimizer was given: in a
        graph once for all variables."""
        object.__setattr__(self, "_tensors", {})
        if in_plain_graph():
            for name in (*self._number_inputs.values(), *self._more_numbers):
                value = self._value(getattr(self, name))
                label = self._number_names.get(name, name.removeprefix("_"))
                self._tensors[name] = tf.convert_to_tensor(value, name=label)

    def _after_updates(self):
        """What else changes behind all updates."""

    def _arguments(self, variable):
        """What the op is given besides the variable and its gradient."""
        slots = {
            self._slot_inputs.get(name, name): self.get_slot(variable, name)
            for name in self._slots_begin
        }
        numbers = {
            name: self._number(attribute, variable)
            for name, attribute in self._number_inputs.items()
        }
        return {**slots, **numbers}

    def _change(self, gradient, variable):
        if self._op is None:
            raise NotImplementedError(f"{type(self).__name__} changes no variable")
        arguments = self._arguments(variable)
        self._update(f"Apply{self._op}", variable, grad=gradient, **arguments)

    def _change_rows(self, values, rows, variable):
        """`values` are the gradient of the different `rows`."""
        if self._op is None:
            raise NotImplementedError(
                f"{type(self).__name__}: gradients of rows are not supported"
            )
        arguments = self._arguments(variable)
        self._update(
            f"SparseApply{self._op}", variable, grad=values, indices=rows, **arguments
        )

    def _value(self, value):
        """A number, or what a function gives now."""
        return value() if callable(value) and not is_resource(value) else value

    def _number(self, attribute, variable):
        """The number of that attribute as a tensor like the variable."""
        value = self._tensors.get(attribute)
        if value is None:
            value = tf.convert_to_tensor(self._value(getattr(self, attribute)))
        return tf.cast(value, variable.dtype.base_dtype)

    def _done(self, result):
        """Notes an operation of a graph, the last one made unless it is given."""
        if not in_plain_graph():
            return None
        graph = stack.current()
        op = getattr(result, "op", result)
        if op is None:
            op = graph._last_operation()
        self._updates.append(op)
        return op

    def _note(self, result):
        """What a subclass's update gave, if it is an operation that is not noted yet."""
        if result is not None and in_plain_graph():
            op = getattr(result, "op", result)
            if not any(op is known for known in self._updates):
                self._updates.append(op)

    def _update(self, op, variable, **arguments):
        """An update op; variables among the arguments go by handle or reference."""
        if is_resource(variable):
            op = "Resource" + op
        named = {
            k: v.handle if is_resource(v) else v._ref() if hasattr(v, "_ref") else v
            for k, v in {"var": variable, **arguments}.items()
        }
        result = _headrace.raw_op(op)(use_locking=self._use_locking, **named)
        return self._done(result)

    # --- slots ---

    def _make_slot(self, variable, slot_name, op_name, value):
        """The slot of that name, made of value() unless it is there."""
        slots = self._slots.setdefault(slot_name, {})
        found = slots.get(_key(variable))
        if found is not None:
            return found[1]
        known = [
            row[_key(variable)][1]
            for row in self._slots.values()
            if _key(variable) in row
        ]
        taken = sum(s.name.startswith(f"{name_of(variable)}/{op_name}") for s in known)
        with beside(variable):
            slot = slot_variable(variable, op_name, value, taken)
        slots[_key(variable)] = variable, slot
        if is_resource(variable):
            node_of(self).attach_slot(node_of(variable), slot_name, node_of(slot))
            start_restored(slot)
        return slot

    def _zeros_slot(self, variable, slot_name, op_name):
        return self._make_slot(variable, slot_name, op_name, filled(variable, 0))

    def _make_plain(self, name, value):
        """A variable of the optimizer itself: in a graph where the first variable lies,
        and of its kind."""
        key = name, stack.outside_functions()
        found = self._plain.get(key)
        if found is None:
            make = tf.Variable
            if in_plain_graph():
                first = self._first_variable
                resource = first is None or is_resource(first)
                make = functools.partial(variable_v1, use_resource=resource)
            full = f"{self._name}/{name}" if self._own_scope else name
            with beside(self._first_variable):
                found = self._plain[key] = make(value, trainable=False, name=full)
            if is_resource(found):
                attach_new(node_of(self), name, found)
        return found

    def _plain_variable(self, name, graph=None):
        return self._plain.get((name, graph or stack.outside_functions()))

    def get_slot(self, var, name):
        """The slot of a variable, or None."""
        found = self._slots.get(name, {}).get(_key(var))
        return None if found is None else found[1]

    def get_slot_names(self):
        """A sorted list of the names of the slots that exist, such as "momentum"."""
        return sorted(self._slots)

    def variables(self):
        """What the optimizer remembers: of the current graph, or outside of graphs."""
        graph = stack.outside_functions()
        slots = [s for row in self._slots.values() for _, s in row.values()]
        kept = [v for v in (*self._plain.values(), *slots) if _graph_of(v) is graph]
        return sorted(kept, key=lambda v: v.name)


def _graph_of(variable):
    """The graph that has a variable; None where it has a value of its own."""
    if not is_resource(variable):
        return variable.graph
    return getattr(variable.handle, "graph", None)


@contextlib.contextmanager
def beside(variable):
    """What a graph makes inside lies where the variable does, and says so."""
    if variable is None or not in_plain_graph():
        yield
        return
    graph, strategy = stack.current(), strategies.strategy()
    with contextlib.ExitStack() as entered:
        if strategy is not None:
            entered.enter_context(strategy.extended._near(variable))
        entered.enter_context(graph._exactly_at(variable.device))
        entered.enter_context(graph.colocate_with(variable))
        yield


def filled(variable, value):
    """What makes a tensor of that value, like the variable; of the shape that the
    variable has when it starts, where it may change."""

    def make():
        dtype, shape = variable.dtype.base_dtype, variable.shape
        if shape.is_fully_defined():
            if isinstance(value, int):  # 0 or 1
                return (tf.ones if value else tf.zeros)(shape, dtype)
            return tf.constant(value, dtype, shape)
        initial = getattr(variable, "initial_value", None)
        shape = tf.shape(variable if initial is None else initial)
        return tf.fill(shape, tf.constant(value, dtype))

    return make


def _counted(step, name):
    """The operation that adds 1 to a step."""
    if not is_resource(step):
        return step.assign_add(1, read_value=False, name=name)
    graph = stack.current()
    one = tf.constant(1, step.dtype.base_dtype, name="value")
    raw.AssignAddVariableOp(step.handle, one, name=name)
    return graph._last_operation()


def _flat(variables):
    return [p for v in tf.nest.flatten(variables) for p in parts_of(v)]


def _check_real(dtype):
    if not (dtype.base_dtype.is_floating or dtype.base_dtype.is_complex):
        raise ValueError(
            f"Invalid type {dtype!r} for the loss, expected: a float type."
        )


def slot_variable(primary, op_name, value, taken):
    """A variable named after the variable or tensor that it belongs to, as
    `dense/kernel/Adam`; `taken` is how many have that name. It lies where the variable
    does; a tensor's, where the graph's device scopes say."""
    base = f"{name_of(primary)}/{op_name}"
    if not in_plain_graph():
        name = f"{base}_{taken}" if taken else base
        return tf.Variable(value(), trainable=False, name=name)
    graph = stack.current()
    with variable_scope(None, base, auxiliary_name_scope=False) as scope:
        name = scope.name
    shares = is_variable(primary) or primary.dtype != primary.dtype.base_dtype
    with graph.name_scope(""), beside(primary if shares else None):
        slot = variable_v1(
            initial_value=value,
            trainable=False,
            name=name,
            use_resource=not hasattr(primary, "_ref"),
        )
    info = getattr(primary, "_save_slice_info", None)
    if info is not None:
        # Upstream's rule: of a name that begins with a scope, too, as many characters go.
        suffix = name[len(name_of(primary)) + 1 :]
        slot._set_save_slice_info(info.renamed(f"{info.full_name}/{suffix}"))
    return slot
