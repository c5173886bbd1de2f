"""What a task runs of a function: its graph in one step, or, where a loop uses resources
of several tasks, in a step before the loop, one a turn, and one behind.

A loop lies on one task as a whole. One that is spread over several is driven from here:
its variables come back at each turn, and are sent with the next.
"""

import itertools

from headrace._load import _headrace, raw
from headrace.context import errors
from headrace.distribute.remote import inlining
from headrace.framework import dtypes
from headrace.framework.support import protos

_LOOPS = ("While", "StatelessWhile")
_RESOURCE, _VARIANT = (
    dtypes.resource.as_datatype_enum,
    dtypes.variant.as_datatype_enum,
)
_IN_BRANCH = ("/then_branch/", "/else_branch/")
_FREE = ("Const", "VarHandleOp")  # what may be computed again in each step


def _source(name):
    """The node that an input names."""
    return name.lstrip("^").partition(":")[0]


def _data(node):
    return [i for i in node.input if not i.startswith("^")]


class Program:
    """A graph without calls on a task.

    Args:
      task: the Task.
      graph_def: the GraphDef.
      given: {name of a placeholder: tensor of the task's graph}.
      arguments: names of placeholders, whose values each run is given.
      outputs: names of the tensors that runs give.
      effects: names of operations that are to run as well.
      name: of the scope that the nodes get.
      kept: (name of a tensor, _Kept) pairs of what runs leave there.
    """

    def __init__(
        self, task, graph_def, given, arguments, outputs, effects, name, kept=()
    ):
        self._task, self._arguments, self._outputs = task, arguments, outputs
        self._cut = cut = _Cut(task, graph_def, given, arguments, outputs)
        leaves = [*cut.first_kept(), *((n, None, keep) for n, keep in kept)]
        names = cut.tensors() + [n for n, _, _ in leaves if n not in cut.given]
        names = list(dict.fromkeys(names))
        steps = cut.steps(outputs, effects)
        targets = [t for step in steps for t in step.targets]
        bound = {f"{n}:0": tensor for n, tensor in cut.given.items()}
        wanted = [n if ":" in n else f"{n}:0" for n in names]
        found = task.import_graph(cut.graph_def, bound, [*wanted, *targets], name)
        tensors = dict(zip(names, found))
        self.scope = found[0].op.name.removesuffix(_source(names[0])) if names else ""
        nodes = dict(zip(targets, (o._node for o in found[len(names) :])))
        self._steps = [_Placed(step, tensors, nodes) for step in steps]
        for left, level, keep in leaves:
            value = cut.given.get(left, tensors.get(left))
            self._steps[cut.level(left) if level is None else level].add_target(
                keep.assign(task, value, again=level is None)
            )
        self._loops = [
            [_Loop(task, cut, node) for node in cut.loops_at(level)]
            for level in range(len(steps))
        ]

    def run(self, values):
        """A list of tensors: the outputs, of the arguments' values."""
        known = dict(zip(self._arguments, values))
        for step, loops in zip(self._steps, self._loops):
            step.run(self._task, known)
            for loop in loops:
                loop.run(known)
        return self._outputs_in(known)

    def _outputs_in(self, known):
        return [known[self._cut.settled(t)] for t in self._outputs]

    def one_step(self, values):
        """(what the step is asked, a function that makes the outputs of the arrays that it
        gives), where the program is one step; else None."""
        if len(self._steps) > 1 or self._loops[0] or self._steps[0].is_empty():
            return None
        known = dict(zip(self._arguments, values))
        (step,) = self._steps

        def outputs(found):
            step.take(found, known)
            return self._outputs_in(known)

        return step.asked(known), outputs


class _Kept:
    """A variable of a task for a value that cannot leave it: a variant."""

    def __init__(self, task):
        with task.building():
            self._handle = raw.VarHandleOp(
                dtype=dtypes.variant,
                shape=None,
                container=task.container,
                shared_name=f"kept_{next(_numbers)}",
            )
            self.read = raw.ReadVariableOp(self._handle, dtype=dtypes.variant)

    def assign(self, task, value, again):
        """The node that puts a value there; with `again` behind reading the last one."""
        with task.building():
            before = [self.read.op] if again else []
            with task.graph.control_dependencies(before):
                return raw.AssignVariableOp(self._handle, value)._node


_numbers = itertools.count()


class _Step:
    """Names of the tensors that a step is fed and gives, and of what else it runs."""

    def __init__(self, feeds, fetches, targets):
        self.feeds, self.fetches, self.targets = feeds, fetches, targets


class _Placed:
    """A step's tensors and nodes in a task's graph."""

    def __init__(self, step, tensors, nodes):
        self._feed_names, self._fetch_names = step.feeds, step.fetches
        self._feeds = [tensors[n] for n in step.feeds]
        self._fetches = [tensors[n] for n in step.fetches]
        self._targets = [nodes[n] for n in step.targets]
        self._dtypes = [t.dtype for t in self._fetches]
        for tensor in self._fetches:
            if tensor.dtype in (dtypes.resource, dtypes.variant):
                raise errors.UnimplementedError._of(
                    f"{tensor.name}: a {tensor.dtype.name} cannot leave its task"
                )

    def add_target(self, node):
        self._targets.append(node)

    def is_empty(self):
        return not self._fetches and not self._targets

    def run(self, task, known):
        if not self.is_empty():
            self.take(task.run(*self.asked(known)), known)

    def asked(self, known):
        """What Task.run takes."""
        values = [known[n] for n in self._feed_names]
        return self._fetches, self._targets, self._feeds, values

    def take(self, found, known):
        """Puts what the step gave among what is known."""
        for name, array, dtype in zip(self._fetch_names, found, self._dtypes):
            known[name] = _headrace.make_tensor(array, dtype)


class _Cut:
    """A graph in levels: each is run when the loops of those below it have been.

    Attributes:
      graph_def: without the loops, of whose outputs placeholders are left.
    """

    def __init__(self, task, graph_def, given, arguments, outputs):
        self._nodes = {node.name: node for node in graph_def.node}
        self.given, self._arguments = dict(given), set(arguments)
        self.kept = {}  # (loop, number of a variable): _Kept
        self._loops = {n.name: n for n in graph_def.node if self._is_spread(n)}
        self.library = graph_def.library
        self._aliases, self._levels = {}, {}
        self.graph_def = graph_def
        self._used = {}  # tensor -> the levels where it is wanted
        if self._loops:
            self._find_levels()
            self._replace_loops(task)
        self._last = max(self._levels.values(), default=0)
        for node in self.graph_def.node if self._loops else ():
            for name in _data(node):
                self._use(name, self._level(node.name))
        for loop in self._loops.values():
            for name, dtype in zip(_data(loop), loop.attr["T"].list.type):
                if dtype not in (_RESOURCE, _VARIANT):
                    self._use(self.settled(name), self._levels[loop.name] + 1)
        for name in outputs:
            self._use(self.settled(name), self._last + 1)

    def _is_spread(self, node):
        if node.op not in _LOOPS:
            return False
        used = [
            self._device(name)
            for name, dtype in zip(_data(node), node.attr["T"].list.type)
            if dtype == _RESOURCE
        ]
        if len(set(used)) < 2:
            return False
        if any(part in f"/{node.name}" for part in _IN_BRANCH):
            raise errors.UnimplementedError._of(
                f"the loop {node.name}, which is within a branch, uses resources of "
                "several tasks of a cluster"
            )
        return True

    def _device(self, name):
        """The task that a resource lies on: "" for that of the step."""
        tensor = self.given.get(_source(name))
        return "" if tensor is None else tensor.device.partition("/device")[0]

    def _find_levels(self):
        """A node's level is that of what it uses, one more behind a loop."""
        for first in self._nodes:
            todo = [first]
            while todo:
                node = self._nodes[todo[-1]]
                needs = [_source(i) for i in node.input]
                missing = [n for n in needs if n not in self._levels]
                if missing:
                    todo.extend(missing)
                    continue
                todo.pop()
                self._levels[node.name] = max(
                    (self._levels[n] + (n in self._loops) for n in needs), default=0
                )

    def _replace_loops(self, task):
        made = protos.GraphDef(library=self.library, versions=self.graph_def.versions)
        for loop in self._loops.values():
            for i, dtype in enumerate(loop.attr["T"].list.type):
                output = f"{loop.name}:{i}" if i else loop.name
                if dtype == _RESOURCE:
                    self._aliases[output] = _data(loop)[i]
                    continue
                node = made.node.add(name=f"{loop.name}/after_{i}", op="Placeholder")
                node.attr["dtype"].type = dtype
                self._levels[node.name] = self._levels[loop.name]
                self._aliases[output] = node.name
                if dtype == _VARIANT:
                    keep = self.kept[loop.name, i] = _Kept(task)
                    self.given[node.name] = keep.read
                else:
                    self._arguments.add(node.name)
        for name, node in self._nodes.items():
            if name in self._loops:
                continue
            copy = made.node.add()
            copy.CopyFrom(node)
            del copy.input[:]
            copy.input.extend(map(self.settled, _data(node)))
            own = self._levels[name]
            copy.input.extend(
                i
                for i in node.input
                if i.startswith("^")
                and _source(i) not in self._loops
                and self._levels[_source(i)] == own
            )
        self.graph_def = made
        self._nodes = {node.name: node for node in made.node}

    def settled(self, name):
        """What a tensor is called here."""
        name = name.removesuffix(":0")
        while name in self._aliases:
            name = self._aliases[name].removesuffix(":0")
        return name

    def first_kept(self):
        """(tensor, level, _Kept) of what loops begin with and cannot leave the task."""
        for (loop, i), keep in self.kept.items():
            name = self.settled(_data(self._loops[loop])[i])
            is_given = _source(name) in self.given
            level = self._levels[loop] if is_given else self.level(name)
            yield name, level, keep

    def level(self, tensor):
        """That of a tensor's node."""
        return self._level(_source(tensor))

    def _level(self, name):
        return self._levels.get(name, 0)

    def _is_free(self, name):
        node = self._nodes[name]
        return name in self.given or (node.op in _FREE and not node.input)

    def _use(self, name, level):
        self._used.setdefault(name.removesuffix(":0"), set()).add(level)

    def tensors(self):
        """Names of all that steps are fed or give."""
        found = dict.fromkeys(self._arguments)
        found.update(dict.fromkeys(n for n in self._used if n not in self.given))
        return list(found)

    def loops_at(self, level):
        """The nodes of the loops that follow a level."""
        return [n for n in self._loops.values() if self._levels[n.name] == level]

    def steps(self, outputs, effects):
        """A _Step a level."""
        if not self._loops:
            fed = [n for n in self._arguments if n not in self.given]
            outputs = dict.fromkeys(map(self.settled, outputs))
            fetched = [n for n in outputs if n not in self._arguments]
            return [_Step(sorted(fed), fetched, list(effects))]
        read = {
            (_source(i), self._level(n.name))
            for n in self.graph_def.node
            for i in n.input
        }
        return [self._step(level, read) for level in range(self._last + 1)]

    def _step(self, level, read):
        feeds, fetches = [], []
        for name, wanted in self._used.items():
            source = _source(name)
            if source in self.given:
                continue
            own = self._level(source)
            if source in self._arguments:
                if level in wanted:
                    feeds.append(name)
            elif own < level:
                if level in wanted and not self._is_free(source):
                    feeds.append(name)
            elif own == level and max(wanted) > level:
                fetches.append(name)
        targets = [
            n.name
            for n in self.graph_def.node
            if self._level(n.name) == level
            and (n.name, level) not in read
            and n.op not in (*_FREE, "Placeholder")
        ]
        return _Step(feeds, fetches, targets)


class _Loop:
    """A loop that is driven turn by turn."""

    def __init__(self, task, cut, node):
        types = list(node.attr["T"].list.type)
        self._inputs = [cut.settled(i) for i in _data(node)]
        self._outputs = [
            cut.settled(f"{node.name}:{i}" if i else node.name)
            for i in range(len(types))
        ]
        self._carried = [
            i for i, t in enumerate(types) if t not in (_RESOURCE, _VARIANT)
        ]
        self._kept = {i: k for (name, i), k in cut.kept.items() if name == node.name}
        bound = {
            f"argument_{i}": cut.given[_source(self._inputs[i])]
            for i, t in enumerate(types)
            if t == _RESOURCE
        }
        bound.update((f"argument_{i}", k.read) for i, k in self._kept.items())
        cond, body = node.attr["cond"].func.name, node.attr["body"].func.name
        given = task, cut.library, types, bound
        self._asks, _ = self._program(*given, cond)
        self._turns, self._changed = self._program(*given, body, cond)

    def _program(self, task, library, types, bound, *functions):
        """(a Program, the numbers of the variables that it gives anew)."""
        made, arguments, outputs, effects = inlining.body_of(library, types, *functions)
        carried = [arguments[i] for i in self._carried]
        changed, kept = [], []
        if len(functions) > 1:
            new = outputs[0]
            changed = [i for i in self._carried if new[i] != arguments[i]]
            kept = [
                (new[i], k) for i, k in self._kept.items() if new[i] != arguments[i]
            ]
        wanted = [*(outputs[0][i] for i in changed), outputs[-1][0]]
        how = carried, wanted, effects, "loop", kept
        return Program(task, made, bound, *how), changed

    def run(self, known):
        """Turns as long as the condition holds; puts what variables are then among what is
        known."""
        now = {i: known[self._inputs[i]] for i in self._carried}
        (go_on,) = self._asks.run(list(now.values()))
        while go_on.numpy():
            *new, go_on = self._turns.run(list(now.values()))
            now.update(zip(self._changed, new))
        known.update((self._outputs[i], value) for i, value in now.items())
