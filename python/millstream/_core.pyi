# SPDX-License-Identifier: Apache-2.0
# Made by python/tests/test_stub.py --write.
"""
The C++ core of millstream: graphs, compilation to plans, and runs of Python callables by a plan.
"""

from collections.abc import Callable, Mapping, Sequence


class Error(RuntimeError):
    """
    What the core refuses.

    code: the error's number, for example "E02" (docs/errors.md has cause and remedy of each).
    word: its word, for example "conflict".
    what: the message alone.
    where: "FILE:LINE" of the Python program, or None.
    help: what to do, one line each; may be empty.
    notes: more facts.
    """

    code: str
    word: str
    what: str
    where: str | None
    help: str
    notes: list[str]

class Graph:
    """
    A computation graph under work. Nodes and values have ids 0, 1, ... in order of adding, apart from each other.
    Names are checked by compile.
    """

    def __init__(self, name: str = 'graph', *, dynamic: bool = False) -> None:
        """
        An empty graph. dynamic: its shapes are only known when it runs; strategy ge then goes by the rules for dynamic shapes.
        """

    def add_input(self, name: str, dtype: str, shape: Sequence[int | str]) -> int:
        """
        A value that each run is given. Returns its value id.

        dtype: a name of torch, numpy or the text format ("float32", "f32"). shape: sizes of 0 or more; a str is a size known only at run time.
        Raises ValueError for an unknown dtype or a negative size.
        """

    def add_constant(self, name: str, dtype: str, shape: Sequence[int | str]) -> int:
        """
        A value that exists before every run: a weight, a lifted constant. Its bytes stay with Python, so to the plan it is an input.
        Returns its value id. Arguments and errors: those of add_input.
        """

    def add_node(self, type: str, name: str, *, inputs: Sequence[int | None] = [], outputs: Sequence[tuple[str, Sequence[int | str]]] = [], after: Sequence[int] = [], attributes: Mapping[str, bool | int | float | str | Sequence[int] | Sequence[float] | Sequence[str]] = {}, engine: str = '', source: str = '', cost: float | None = None) -> int:
        """
        A node behind those added so far. Returns its node id.

        type: the operator; one that is not known has a task and the default cost. inputs: value ids, None for one left out.
        outputs: (dtype, shape) of each. after: ids of nodes that must have ended before this one starts.
        attributes: the names of docs/dumps.md ("_user_stream_label", "_user_stream_priority", ...) say what the planner reads; others are kept for dumps.
        engine: fixes the engine. source: "FILE:LINE" for messages. cost: microseconds.
        Raises IndexError for an id that does not exist, ValueError for dtypes, sizes and costs that are none.
        """

    def output(self, node: int, index: int = 0) -> int:
        """The value id of an output of a node. Raises IndexError."""

    def set_outputs(self, values: Sequence[int]) -> None:
        """
        Says which values a run returns; without it those that no node reads. Raises IndexError for an id that does not exist.
        """

    @property
    def name(self) -> str: ...

    @property
    def node_count(self) -> int: ...

    @property
    def value_count(self) -> int: ...

    def node_name(self, node: int) -> str:
        """Raises IndexError."""

    def value_name(self, value: int) -> str:
        """Raises IndexError."""

    def text(self) -> str:
        """
        The graph in the text format (docs/text-format.md), which `millstream compile` reads. Raises Error E40 for a graph that is not sound.
        """

class Plan:
    """
    What compile decided: streams, order and waits of a graph. Never changes. Nodes have the ids of the graph.
    """

    @property
    def warnings(self) -> list[str]:
        """What compile has to say, as text."""

    @property
    def streams(self) -> int:
        """Number of streams on the device, at least 1."""

    @property
    def threads_per_op(self) -> int:
        """Threads that the plan gives one operator."""

    @property
    def waits(self) -> list[tuple[int, int]]:
        """
        (waiting node, awaited node) of each pair across streams, in the plan's order.
        """

    def stream_of(self, node: int) -> int | None:
        """
        The stream that launches a node; None for one without a task. Raises IndexError.
        """

    def logical_stream_of(self, node: int) -> int | None:
        """
        The same before streams that are too long for the device are cut: nodes of one label have one. Raises IndexError.
        """

    def allocation_summary(self) -> str:
        """One line for each logical stream that has nodes, then the counts."""

    def explain(self, node: int | None = None) -> str:
        """
        Which rule placed each node (or one), which waits it needs, and what implies the others. Raises IndexError.
        """

    def simulate(self) -> list[tuple[int, int, float, float]]:
        """
        (node, stream, start, end) of each launch on the target's simulated device, by stream, then as they ran; microseconds of its virtual time.
        """

    def dump(self, format: str = 'pbtxt') -> str:
        """
        The compiled graph as the ecosystem's dumps show it (docs/dumps.md), with records and waits: "pbtxt" as ge_onnx_*.pbtxt, "txt" as
        ge_proto_*.txt. Raises ValueError for another format.
        """

    def report(self) -> str:
        """
        The report page (docs/report.md): one HTML document with a simulated run.
        """

    def verify(self) -> list[str]:
        """
        What the independent verifier finds: races, deadlocks, limits of the target. Empty: proved.
        """

    def text(self) -> str:
        """
        Graph and lanes in the text format: `millstream check` and `millstream run` read it.
        """

def compile(graph: Graph, options: Mapping[str, str | int | bool | None] = {}, *, passes: Sequence[str] = []) -> Plan:
    """
    Decides streams and waits, and verifies them.

    options: the keys of docs/options.md, their ecosystem names too, and target (a built-in's name or a file; default cpu), cores, pass_policy.
    Values are str, int or bool; None counts as not given. passes: paths of libraries with stream passes (docs/passes.md).
    Environment variables are not read. Raises Error: E12 for an option, E40 for the graph, else that of the stage.
    """

class Runner:
    """
    Runs a plan's nodes as Python callables, on the streams and events of the runtime's cpu device. Reusable, from any thread.
    """

    def __init__(self, plan: Plan, workers: int = 0) -> None:
        """
        workers: threads that call, the caller of run among them; 0: one a stream, up to the cores (over the threads that a
        plan for cpu gives an operator).
        Raises Error E65 for a plan with control flow on the device.
        """

    def run(self, calls: Sequence[Callable[[], object] | None]) -> None:
        """
        Calls each node's callable, without arguments, on its stream once all that the plan orders before it has ended.

        calls: one a node, in the order of their ids; None: nothing to do. What they return is dropped. They hold the GIL; what releases it,
        as PyTorch's operators do, runs beside the other streams. They run on several threads: thread-local modes of the caller do not hold in them.
        Once one raises, no more are called; when all streams are quiet, the exception of the first node by id that raised is raised here.
        A run inside a callable, and runs from several threads, are independent of each other.
        Raises Error E33 for another number of calls than nodes, and for a call of a node without a task.
        """

    def last_trace(self) -> list[tuple[int, int, int, float, float]]:
        """
        (node, stream, worker, start, end) of each call of the run that ended last, by stream, then as they ran. Microseconds from the run's begin;
        a call starts when it has the GIL. Workers are numbered in the order of their first call. Calls that were dropped are missing.
        """

    @property
    def workers(self) -> int: ...
