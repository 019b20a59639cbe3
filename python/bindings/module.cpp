// SPDX-License-Identifier: Apache-2.0
#include "python/bindings/bindings.h"

NB_MODULE(_core, m) {
  // PyTorch keeps compiled code, and with it plans and runners, until the interpreter is gone: no leak to warn of.
  nanobind::set_leak_warnings(false);
  m.doc() = "The C++ core of millstream: graphs, compilation to plans, and runs of Python callables by a plan.";
  millstream::python::bind_errors(m);
  millstream::python::bind_graph(m);
  millstream::python::bind_plan(m);
  millstream::python::bind_runner(m);
}
