from ._core import Error, Graph, Plan, compile
