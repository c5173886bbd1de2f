"""break, continue and return in terms of flags, so that blocks have one end.

A flag's test guards what follows a statement that may jump:

    for x in xs:                      for x in xs:     # extra test: not break_
        if f(x):                          continue_ = False
            break                         if f(x):
        g(x)                                  break_ = True
                                              continue_ = True
                                          if not continue_:
                                              g(x)
"""

import ast

from headrace.autograph.conversion import names

_LOOPS = (ast.For, ast.While)
_NO_JUMPS = (*names.FUNCTIONS, ast.Lambda, ast.ClassDef)


def flag(name, ctx=None):
    """A name that the converter made; it is read as it is."""
    node = ast.Name(name, ctx or ast.Load())
    node.is_flag = True
    return node


def _set(name, value, at):
    target = flag(name, ast.Store())
    node = ast.Assign([target], ast.Constant(value))
    return ast.copy_location(node, at)


def _unless(name, body, at):
    node = ast.If(ast.UnaryOp(ast.Not(), flag(name)), body, [])
    return ast.copy_location(node, at)


def _jumps(node, kinds):
    """True where a jump of `kinds` leaves the statement, one of its own loops apart."""
    if isinstance(node, kinds):
        return True
    if isinstance(node, _NO_JUMPS):
        return False
    own_loop = isinstance(node, _LOOPS) and ast.Return not in kinds
    for holder, field in names.blocks(node):
        if own_loop and field == "body":
            continue
        if any(_jumps(n, kinds) for n in getattr(holder, field)):
            return True
    return False


class _Jumps:
    """Replaces the jumps of one kind in a block by assignments to flags.

    Subclasses say which statements jump, what stands for them and which flag is set
    behind one.
    """

    kinds = ()
    flag = None

    def replaced(self, node):
        raise NotImplementedError

    def block(self, statements):
        out = []
        for i, node in enumerate(statements):
            if isinstance(node, self.kinds):
                return out + self.replaced(node)  # what follows is never reached
            may_jump = _jumps(node, self.kinds)
            rest = statements[i + 1 :]
            if may_jump and rest and self.takes_rest(node, rest):
                return out + self.statement(node)
            out += self.statement(node)
            if may_jump and rest:
                return out + [_unless(self.flag, self.block(rest), rest[0])]
        return out

    def takes_rest(self, node, rest):
        """True where `rest` was moved into a branch of the statement."""
        return False

    def statement(self, node):
        """The statements for one that is no jump."""
        if isinstance(node, _NO_JUMPS):
            return [node]
        ends_in_jump = False
        if isinstance(node, (ast.Try, ast.TryStar)):
            self.guard_else(node)
            ends_in_jump = any(_jumps(n, self.kinds) for n in node.finalbody)
        for holder, field in names.blocks(node):
            if not self.is_own(node, field):
                continue
            setattr(holder, field, self.block(getattr(holder, field)))
        return [self.forgotten(node)] if ends_in_jump else [node]

    def is_own(self, node, field):
        """False for blocks whose jumps are another loop's."""
        return True

    def guard_else(self, node):
        """Python leaves `else` out where the body of a `try` jumps."""
        if node.orelse and any(_jumps(n, self.kinds) for n in node.body):
            node.orelse = [_unless(self.flag, node.orelse, node.orelse[0])]

    def forgotten(self, node):
        """A `try` whose `finally` jumps: Python then forgets what was raised."""
        raises = ast.If(flag(self.flag), [ast.Pass()], [ast.Raise()])
        everything = ast.Name("BaseException", ast.Load())
        handler = ast.ExceptHandler(everything, None, [raises])
        out = ast.Try([node], [handler], [], [])
        return ast.copy_location(out, node)


class _LoopJumps(_Jumps):
    """break and continue of one loop."""

    kinds = (ast.Break, ast.Continue)

    def __init__(self, break_, continue_):
        self.break_, self.flag = break_, continue_

    def replaced(self, node):
        sets = [_set(self.flag, True, node)]
        if isinstance(node, ast.Break):
            sets.insert(0, _set(self.break_, True, node))
        return sets

    def is_own(self, node, field):
        return not (isinstance(node, _LOOPS) and field == "body")


class _Returns(_Jumps):
    """return, with the function's value in a variable."""

    kinds = (ast.Return,)

    def __init__(self, do_return, value):
        self.flag, self.value = do_return, value

    def replaced(self, node):
        """Where the value raises, nothing was returned: an outer `try` may go on."""
        value = node.value or ast.Constant(None)
        keep = ast.Assign([flag(self.value, ast.Store())], value)
        undo = [_set(self.flag, False, node), ast.Raise()]
        handler = ast.ExceptHandler(None, None, undo)
        out = ast.Try([_set(self.flag, True, node), keep], [handler], [], [])
        out.is_return = True
        return [ast.copy_location(out, node)]

    def takes_rest(self, node, rest):
        if not isinstance(node, ast.If):
            return False
        ends, else_ends = _always(node.body), _always(node.orelse)
        if ends and else_ends:
            return True  # never reached
        if ends:
            node.orelse = node.orelse + rest
        elif else_ends:
            node.body = node.body + rest
        return ends or else_ends

    def statement(self, node):
        returns = _jumps(node, self.kinds)
        out = super().statement(node)
        if returns and isinstance(node, _LOOPS):
            node.stops = (self.flag, *getattr(node, "stops", ()))
        return out


def _always(statements):
    """True where the block always ends in a return."""
    if not statements:
        return False
    last = statements[-1]
    if isinstance(last, ast.If):
        return _always(last.body) and _always(last.orelse)
    return isinstance(last, ast.Return)


class Lowering:
    """Lowers the body of one function.

    Loops that may end early get an attribute `stops`: the flags, one of which is set
    where the loop has to end. `returns`: (flag, variable of the value), or None.
    """

    def __init__(self, namer):
        self._namer = namer
        self.returns = None

    def body(self, statements):
        statements = self._loops(statements)
        if any(_jumps(n, (ast.Return,)) for n in statements):
            self.returns = self._namer("do_return"), self._namer("retval_")
            statements = _Returns(*self.returns).block(statements)
        return statements

    def _loops(self, statements):
        out = []
        for node in statements:
            if isinstance(node, _NO_JUMPS):
                out.append(node)
                continue
            for holder, field in names.blocks(node):
                setattr(holder, field, self._loops(getattr(holder, field)))
            out += self._loop(node) if isinstance(node, _LOOPS) else [node]
        return out

    def _loop(self, node):
        breaks = any(_jumps(n, (ast.Break,)) for n in node.body)
        continues = any(_jumps(n, (ast.Continue,)) for n in node.body)
        if not breaks and not continues:
            return [node]
        break_ = self._namer("break_") if breaks else None
        continue_ = self._namer("continue_")
        body = _LoopJumps(break_, continue_).block(node.body)
        node.body = [_set(continue_, False, node), *body]
        if not breaks:
            return [node]
        node.stops = (break_,)
        return [_set(break_, False, node), node]
