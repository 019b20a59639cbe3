"""What PyTorch does with scopes: the thirteen questions that the front-end is built on.

    python python/tests/probes.py [P1 P5 ...]

Each probe prints what it saw. docs/torch.md holds the answers for the version that we build on; run this
on another version of PyTorch before trusting them there.
"""

import os
import subprocess
import sys
import threading

import torch
from torch._dynamo.backends.common import aot_autograd
from torch.fx.node import has_side_effect

LIB = torch.library.Library("mstprobe", "DEF")


def define(schema, kernel, fake=None):
    """Defines an operator with a side effect and one kernel for every device."""
    name = schema.split("(")[0]
    LIB.define(schema)
    LIB.impl(name, kernel, "CompositeExplicitAutograd")
    torch.library.register_fake(f"mstprobe::{name}", fake or kernel, lib=LIB)
    op = getattr(torch.ops.mstprobe, name).default
    has_side_effect(op)
    return op


RAN = []
ENTER = define("enter(str[] keys, str[] values) -> ()", lambda k, v: RAN.append(v), lambda k, v: None)
EXIT = define("exit() -> ()", lambda: None)
MARK = define("mark(Tensor self, Tensor dependency) -> ()", lambda s, d: None)


class Scope:
    """The smallest scope: two markers."""

    def __init__(self, label):
        self.label = label

    def __enter__(self):
        ENTER(["label"], [self.label])

    def __exit__(self, *exc):
        EXIT()


def names(gm):
    return [n.target.__name__ if callable(n.target) else n.target for n in gm.graph.nodes]


def capture(fn, *args, aot=True, **kw):
    """The graphs that Dynamo, or AOT behind it, gives for fn(*args): [(kind, graph module)]."""
    torch._dynamo.reset()
    seen = []

    def keep(kind):
        def compiler(gm, _):
            seen.append((kind, gm))
            return gm
        return compiler

    backend = keep("dynamo")
    if aot:
        backend = aot_autograd(fw_compiler=keep("forward"), bw_compiler=keep("backward"),
                               inference_compiler=keep("inference"))
    result = torch.compile(fn, backend=backend, **kw)(*args)
    return seen, result


def two_scopes(a, b):
    add = a + b
    with Scope("1"):
        mm = torch.mm(a, b)
    with Scope("2"):
        out = add + mm
    return out


X, Y = torch.randn(2, 2), torch.randn(2, 2)


def p1():
    """Dynamo: both markers, in order, with fullgraph."""
    seen, _ = capture(two_scopes, X, Y, aot=False, fullgraph=True)
    print(names(seen[0][1]))


def p2():
    """Behind AOT, inference: the same markers in the same places."""
    with torch.no_grad():
        seen, _ = capture(two_scopes, X, Y, fullgraph=True)
    print(seen[0][0], names(seen[0][1]))


def p3():
    """meta["custom"] written on Dynamo's nodes is found on ATen nodes, also on decomposed ones."""
    torch._dynamo.reset()
    from torch._decomp import get_decompositions
    aten, seen = torch.ops.aten, []
    inner = aot_autograd(fw_compiler=lambda gm, _: seen.append(gm) or gm,
                         decompositions=get_decompositions([aten.addmm, aten._softmax, aten.t]))

    def backend(gm, args):
        for i, n in enumerate(gm.graph.nodes):
            n.meta.setdefault("custom", {})["scope"] = f"{i}:{n.name}"
        return inner(gm, args)

    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Softmax(1))
    with torch.no_grad():
        torch.compile(model, backend=backend)(X)
    print([(n.name, n.meta.get("custom", {}).get("scope")) for n in seen[0].graph.nodes])


def p4():
    """Training: where markers land, and meta["custom"] of backward nodes."""
    torch._dynamo.reset()
    seen = []

    def keep(kind):
        return lambda gm, _: seen.append((kind, gm)) or gm
    inner = aot_autograd(fw_compiler=keep("forward"), bw_compiler=keep("backward"))

    def backend(gm, args):
        for n in gm.graph.nodes:
            n.meta.setdefault("custom", {})["scope"] = n.name
        return inner(gm, args)
    w = torch.randn(2, 2, requires_grad=True)
    torch.compile(two_scopes, backend=backend)(X, w).sum().backward()
    for kind, gm in seen:
        print(kind, [(n.name, n.meta.get("custom", {}).get("scope")) for n in gm.graph.nodes])


def p5():
    """A marker that returns nothing survives and names the value that later uses read, also behind .view and .add_."""
    def plain(a, b):
        dep = a + b
        MARK(b, dep)
        return torch.mm(a, b)

    def view(a, b):
        v = b.view(4)
        MARK(v, a + 1)
        return v * 2 + b.view(4)

    def inplace(a, b):
        c = b * 1
        c.add_(1)
        MARK(c, a + 1)
        return torch.mm(a, c)
    for fn in (plain, view, inplace):
        with torch.no_grad():
            seen, _ = capture(fn, X, Y)
        print(fn.__name__, [(n.name, [str(a) for a in n.args]) for n in seen[0][1].graph.nodes if n.op != "placeholder"])


def p6():
    """An operator whose fake kernel returns its input rebinds later uses (the fallback)."""
    LIB.define("same(Tensor self, Tensor dependency) -> Tensor")
    LIB.impl("same", lambda s, d: s.clone(), "CPU")
    LIB.impl("same", lambda s, d: s, "Meta")

    def fn(a, b):
        torch.ops.mstprobe.same(b, a + b)
        return torch.mm(a, b)
    with torch.no_grad():
        seen, _ = capture(fn, X, Y)
    print([(n.name, [str(a) for a in n.args]) for n in seen[0][1].graph.nodes])


def p7():
    """A graph break in a block: the error with fullgraph, the pieces and what ran eagerly without."""
    def fn(a):
        with Scope("1"):
            b = a + 1
            print("(a print in the model)")
            c = b * 2
        return c
    try:
        capture(fn, X, fullgraph=True)
    except Exception as e:
        print(type(e).__name__, str(e).splitlines()[0])
    RAN.clear()
    with torch.no_grad():
        seen, _ = capture(fn, X, aot=False)
    print([names(gm) for _, gm in seen], "eager enters:", RAN)


def p8():
    """An exception inside a block."""
    def fn(a):
        try:
            with Scope("1"):
                b = a + 1
                raise ValueError("mine")
        except ValueError:
            return b * 2
    for full in (True, False):
        try:
            seen, _ = capture(fn, X, aot=False, fullgraph=full)
            print(full, [names(gm) for _, gm in seen])
        except Exception as e:
            print(full, type(e).__name__, str(e).splitlines()[0])


def p9():
    """The entry point in a fresh process."""
    code = "import torch._dynamo as d; print('millstream' in d.list_backends())"
    print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip())


def p10():
    """CI=1: does an operator that returns its input raise, does the marker?"""
    code = ("import sys; sys.path.insert(0, %r); import warnings; warnings.simplefilter('error')\n"
            "from probes import *\nimport torch._functorch.config as c\n"
            "print('check', c.check_custom_op_aliasing, 'error', c.error_on_custom_op_aliasing)\n"
            "LIB.define('alias(Tensor x) -> Tensor'); LIB.impl('alias', lambda x: x, 'CPU'); LIB.impl('alias', lambda x: x, 'Meta')\n"
            "for f in (lambda a: MARK(a, a + 1) or a * 2, lambda a: torch.ops.mstprobe.alias(a) * 2):\n"
            "    try: capture(f, X); print('ok')\n"
            "    except Exception as e: print(type(e).__name__, str(e)[:90])\n")
    env = dict(os.environ, CI="1")
    out = subprocess.run([sys.executable, "-c", code % os.path.dirname(os.path.abspath(__file__))],
                         capture_output=True, text=True, env=env)
    print(out.stdout.strip(), out.stderr.strip()[-300:])


def p11():
    """dynamic=True: symbols in the graph, and the labels around them."""
    def fn(a, b):
        with Scope("1"):
            return (a.view(-1, a.shape[0]) + a.shape[1]) @ b[: a.shape[0]]
    with torch.no_grad():
        seen, _ = capture(fn, torch.randn(3, 3), torch.randn(3, 3), dynamic=True)
    print([(n.name, str(n.meta.get("val"))[:40]) for n in seen[0][1].graph.nodes])


def p12():
    """str[] arguments: tag from a constant, an attribute, an f-string of an int."""
    class Model(torch.nn.Module):
        tag = "side"

        def forward(self, a):
            for i in range(2):
                with Scope(f"layer{i}"):
                    a = a + 1
            with Scope(self.tag):
                return a * 2
    seen, _ = capture(Model(), X, aot=False, fullgraph=True)
    print([n.args for n in seen[0][1].graph.nodes if n.target is ENTER])


def p13():
    """Two threads compile at once."""
    torch._dynamo.reset()
    out = {}

    def work(i):
        def fn(a):
            with Scope(str(i)):
                return a * i
        got = []
        backend = aot_autograd(fw_compiler=lambda gm, _: got.append(names(gm)) or gm)
        out[i] = (torch.equal(torch.compile(fn, backend=backend)(X), X * i), got)
    threads = [threading.Thread(target=work, args=(i,)) for i in (2, 3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    print(out)


if __name__ == "__main__":
    print("torch", torch.__version__)
    wanted = [a.lower() for a in sys.argv[1:]]
    for i in range(1, 14):
        probe = globals()[f"p{i}"]
        if not wanted or probe.__name__ in wanted:
            print(f"\nP{i}", probe.__doc__)
            probe()
